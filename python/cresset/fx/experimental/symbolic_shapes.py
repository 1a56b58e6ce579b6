"""Errors about sizes that a program needs to know. Sizes here are always numbers: `export` compares runs of several sizes instead."""

__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode"]


class ConstraintViolationError(RuntimeError):
    """A size is not in the range that was declared for it."""


class GuardOnDataDependentSymNode(RuntimeError):
    """Code needs the value of a tensor, which is not there while a program is recorded."""

    def __init__(self, cond, *args):
        super().__init__(cond, *args)
        self.cond = cond

    def __str__(self):
        return str(self.cond)
