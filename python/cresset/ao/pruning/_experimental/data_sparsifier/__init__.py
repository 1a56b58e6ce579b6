"""Sparsity of tensors and embeddings that belong to no model in particular."""

from .base_data_sparsifier import BaseDataSparsifier
from .data_norm_sparsifier import DataNormSparsifier

__all__ = ["BaseDataSparsifier", "DataNormSparsifier"]
