"""What the families of nn.functional share: the override check, reductions, and argument shapes."""

import warnings

from cresset._C import _has_torch_function as overrides  # noqa: F401  (a tuple of arguments)
from cresset._C import _has_torch_function_unary as overrides1  # noqa: F401  (one tensor argument)

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def handle(function, relevant, *args, **kwargs):
    """Send a call to the `__torch_function__` of the arguments in `relevant`."""
    from cresset.overrides import handle_torch_function

    return handle_torch_function(function, relevant, *args, **kwargs)


def legacy_reduction(size_average, reduce, emit_warning=True):
    """The reduction that the old arguments `size_average` and `reduce` mean."""
    if size_average is None:
        size_average = True
    if reduce is None:
        reduce = True
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def reduction_code(reduction, size_average=None, reduce=None):
    """0, 1 or 2 for "none", "mean" or "sum"; ValueError for anything else."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    code = _REDUCTIONS.get(reduction)
    if code is None:
        if reduction == "elementwise_mean":
            warnings.warn(
                "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3
            )
            return 1
        raise ValueError(f"{reduction} is not a valid value for reduction. Use 'none', 'mean' or 'sum'.")
    return code


def reduced(loss, code):
    """`loss` reduced as `reduction_code` says."""
    if code == 0:
        return loss
    return loss.mean() if code == 1 else loss.sum()


def ntuple(value, n):
    """`value` as a tuple of n ints: one int is repeated."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * n


def softmax_dim(name, ndim, stacklevel):
    """The dimension that softmax takes when none is given."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1
