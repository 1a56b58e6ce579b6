"""Masks the rows of smallest norm."""

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["SaliencyPruner"]


def lowest_rows(weights, sparsity_level):
    """Indices of the fraction `sparsity_level` of the rows, those of smallest 1-norm."""
    saliency = -weights.norm(dim=tuple(range(1, weights.dim())), p=1)
    return saliency.topk(k=int(sparsity_level * len(saliency)), dim=0, largest=True).indices


class SaliencyPruner(BaseStructuredSparsifier):
    """The fraction "sparsity_level" of the rows, those of smallest 1-norm, is masked."""

    def update_mask(self, module, tensor_name, **kwargs):
        weights = getattr(module, tensor_name)
        if weights.dim() <= 1:
            raise Exception("Structured pruning can only be applied to a 2+dim weight tensor!")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data[lowest_rows(weights, kwargs["sparsity_level"])] = False
