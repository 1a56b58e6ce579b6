"""Reductions and normalisations that leave out elements, and MaskedTensor, which keeps its mask with it.

`mask` is True where an element counts. `maskedtensor` has the class; the functions take plain tensors and a mask beside them.
"""

from . import _ops
from ._ops import *  # noqa: F403
from ._ops import __all__ as _reductions
from ._ops import _canonical_dim, _combine_input_and_mask, _input_mask, _output_mask, _reduction_identity, _where
from .maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [*_reductions, "MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
