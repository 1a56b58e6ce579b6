"""Masks the rows of smallest norm of each gate of an LSTM."""

from .base_structured_sparsifier import BaseStructuredSparsifier
from .parametrization import FakeStructuredSparsity
from .saliency_pruner import lowest_rows

__all__ = ["LSTMSaliencyPruner"]


class LSTMSaliencyPruner(BaseStructuredSparsifier):
    """Of each of the four gates that weight_ih_l{k} and weight_hh_l{k} hold, a quarter of the rows, the fraction "sparsity_level" is masked: those of smallest 1-norm."""

    def update_mask(self, module, tensor_name, **kwargs):
        weights = getattr(module, tensor_name)
        for p in getattr(module.parametrizations, tensor_name):
            if isinstance(p, FakeStructuredSparsity):
                if weights.dim() <= 1:
                    raise Exception("Structured pruning can only be applied to a 2+dim weight tensor!")
                size = len(p.mask) // 4
                for mask, part in zip(p.mask.split(size), weights.split(size)):
                    mask[lowest_rows(part, kwargs["sparsity_level"])] = False
