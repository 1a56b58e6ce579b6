"""Functions of nn.functional that several layers share one `forward` for."""

from cresset.nn import functional


class ByName:
    """Class attribute: the function of nn.functional of this name as it stands when the layer runs, for programs put their own in its place."""

    def __init__(self, name):
        self.name = name

    def __get__(self, instance, owner=None):
        return getattr(functional, self.name)
