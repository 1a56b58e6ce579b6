"""The rules of operators, a module for each family; `registry` has them all and says what a rule is."""

from . import factories, indexing, lists, losses, matrix, normalisation, pointwise, reductions, views  # noqa: F401: they register themselves
from .registry import batch_word, register, rule_of

__all__ = ["batch_word", "register", "rule_of"]
