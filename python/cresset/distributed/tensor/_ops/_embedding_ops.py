"""The placement of what embeddings look up in tables that are divided by rows."""

from .._rules.indexing import _MaskPartial

__all__ = ["_MaskPartial"]
