"""The old name of Tensor, by its own module."""

from . import Variable

__all__ = ["Variable", "VariableMeta"]

VariableMeta = type(Variable)
