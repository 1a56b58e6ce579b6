"""Keeps what is near the diagonal."""

import cresset

from .base_sparsifier import BaseSparsifier


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Masks of `nearliness` diagonals (an odd number) with the main one in their middle; none for zero and less."""

    def __init__(self, nearliness=1):
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module, tensor_name, nearliness, **kwargs):
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        rows, columns = mask.shape
        if nearliness <= 0:
            mask.zero_()
            return
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        away = nearliness // 2
        if away >= min(rows, columns):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.copy_(cresset.ones_like(mask).tril(away).triu(-away))
