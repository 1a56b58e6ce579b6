"""What several distributions share: broadcasting of parameters, lazy attributes, probabilities and log-odds, triangles as vectors."""

from functools import update_wrapper
from math import sqrt
from numbers import Number

import cresset
import cresset.nn.functional as F

__all__ = [
    "broadcast_all", "logits_to_probs", "clamp_probs", "probs_to_logits", "lazy_property", "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060  # Euler and Mascheroni's


def broadcast_all(*values):
    """The values as tensors of one shape. Numbers take dtype and device of the first tensor, or the default dtype; ValueError otherwise."""
    if not all(isinstance(v, (cresset.Tensor, Number)) or hasattr(type(v), "__torch_function__") for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    options = {"dtype": cresset.get_default_dtype()}
    for value in values:
        if isinstance(value, cresset.Tensor):
            options = {"dtype": value.dtype, "device": value.device}
            break
    return cresset.broadcast_tensors(*(cresset.tensor(v, **options) if isinstance(v, Number) else v for v in values))


def _standard_normal(shape, dtype, device):
    return cresset.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value, dim):
    """`value` summed over its last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log-odds (`is_binary`), or of unnormalised log-probabilities along the last dimension."""
    return cresset.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1 by the epsilon of their dtype."""
    eps = cresset.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Log-odds of probabilities (`is_binary`), or their logarithms."""
    clamped = clamp_probs(probs)
    return cresset.log(clamped) - cresset.log1p(-clamped) if is_binary else cresset.log(clamped)


class lazy_property:
    """An attribute that is computed at the first reading, with gradients on, and kept in the instance."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with cresset.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What the class shows, so that documentation tools see a property."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """The lower triangle of `(*, D, D)` up to diagonal `diag`, row by row, as `(*, N)`; ValueError for a diagonal outside of it."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = cresset.arange(n, device=mat.device)
    return mat[..., rows < rows.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec, diag=0):
    """`(*, N)` as lower triangles `(*, D, D)` up to diagonal `diag`; ValueError if no square matrix has that many elements there."""
    # n of D: D*(D+1)/2 + diag*D for diag <= 0, and the corner above diag is missing for diag > 0; solved for D
    count = vec.shape[-1]
    n = (sqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) - (1 + 2 * diag)) / 2
    if abs(round(n) - n) >= cresset.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    rows = cresset.arange(n, device=vec.device)
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., rows < rows.view(-1, 1) + (diag + 1)] = vec
    return mat
