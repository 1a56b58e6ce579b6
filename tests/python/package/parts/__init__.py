"""A package to be packaged."""

from .inner import helpers

NAME = "parts"


class Holder:
    def __init__(self, value):
        self.value = value

    def doubled(self):
        return helpers.twice(self.value)
