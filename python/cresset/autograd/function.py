"""Custom functions."""

__all__ = ["Function", "once_differentiable"]


class Function:
    pass


def once_differentiable(fn):
    return fn
