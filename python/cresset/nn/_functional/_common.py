"""What the families of nn.functional share: reductions, and the types of arguments.

Scripts compile these functions from their own text (docs/design/script.md).
"""

import warnings
from typing import Optional

from cresset import Tensor


class number:
    """int, float, complex or bool."""

    _script_type = "NumberType"  # of cresset._C


class Ints1:
    """List[int]; one int may be given."""

    _broadcasts = (1, int)


class Ints2:
    """List[int] of two; one int may be given for both."""

    _broadcasts = (2, int)


class Ints3:
    """List[int] of three; one int may be given for all."""

    _broadcasts = (3, int)


class Floats1:
    """List[float]; one float may be given."""

    _broadcasts = (1, float)


class Floats2:
    """List[float] of two; one float may be given for both."""

    _broadcasts = (2, float)


class Floats3:
    """List[float] of three; one float may be given for all."""

    _broadcasts = (3, float)


def chosen_by(name, if_true, if_false):
    """Decorator for a function whose result has another type when its bool argument `name` is set: what scripts call in its place."""

    def mark(function):
        function._script_choice = (name, if_true, if_false)
        return function

    return mark


def legacy_reduction(size_average: Optional[bool], reduce: Optional[bool], emit_warning: bool = True) -> str:
    """The reduction that the old arguments `size_average` and `reduce` mean."""
    reduction = "mean" if size_average is None or size_average else "sum"
    if reduce is not None and not reduce:
        reduction = "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def reduction_code(reduction: str, size_average: Optional[bool] = None, reduce: Optional[bool] = None) -> int:
    """0, 1 or 2 for "none", "mean" or "sum"; ValueError for anything else."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction == "mean":
        return 1
    if reduction == "none":
        return 0
    if reduction == "sum":
        return 2
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3
        )
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def reduced(loss: Tensor, code: int) -> Tensor:
    """`loss` reduced as `reduction_code` says."""
    if code == 0:
        return loss
    return loss.mean() if code == 1 else loss.sum()


def ntuple(value, n):
    """`value` as a tuple of n: one number is repeated."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * n


def softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that softmax takes when none is given."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1
