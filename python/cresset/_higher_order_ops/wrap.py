"""A function as the argument of an operator."""

from cresset._higher_order import HigherOrderOperator

__all__ = ["wrap"]


class Wrap(HigherOrderOperator):
    """wrap(function, …): what the function gives."""

    def __init__(self):
        super().__init__("wrap")

    def __call__(self, func, *args, **kwargs):
        return func(*args, **kwargs)


wrap = Wrap()
