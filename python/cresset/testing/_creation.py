"""`make_tensor`: random tensors of any dtype with values that tests can live with."""

import math
import warnings

import cresset

__all__ = ["make_tensor"]

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False, memory_format=None):
    """A tensor with values uniform in [low, high), by default [-9, 9), [0, 10) for uint8, both values for bool.

    The numbers are drawn on the CPU from the default generator and moved, so a seed gives the same tensor on every device.
    noncontiguous gives a tensor with a gap between neighbours when there are two elements or more; exclude_zero replaces zeros by the
    smallest normal number, by 1 for integers. ValueError for an empty or impossible interval.
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    shape = tuple(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}")
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _interval(dtype, low, high)
    gaps = noncontiguous and bool(shape) and math.prod(shape) > 1
    if gaps:
        shape = (*shape[:-1], 2 * shape[-1])
    if dtype == cresset.bool:
        result = cresset.randint(0, 2, shape, dtype=dtype)
    elif dtype.is_complex:
        result = cresset.empty(shape, dtype=dtype)  # no view of its parts
        parts = cresset.view_as_real(result)
        parts.fill_(float(low)) if low == high else parts.uniform_(low, high)
    elif dtype.is_floating_point:
        made_as = cresset.float32 if dtype.itemsize == 1 else dtype
        result = cresset.full(shape, float(low), dtype=made_as) if low == high else cresset.empty(shape, dtype=made_as).uniform_(low, high)
        result = result.to(dtype)
    else:
        result = cresset.randint(low, high, shape, dtype=dtype)
    if exclude_zero:
        result[result == 0] = cresset.finfo(dtype).tiny if floating else 1
    result = result.to(device)
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return result.requires_grad_(requires_grad)


def _interval(dtype, low, high):
    """[low, high) inside of what the dtype holds, integers for integral dtypes."""
    if dtype == cresset.bool:
        lowest, highest, default = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        limit = cresset.finfo(dtype).max
        lowest, highest, default = -limit, limit, (-9, 9)
    else:
        info = cresset.iinfo(dtype)
        lowest, highest, default = info.min, info.max + 1, (0, 10) if str(dtype).rpartition(".")[2] in _UNSIGNED else (-9, 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be removed in 2.3. "
            "Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < lowest or low >= highest:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{lowest}, {highest})")
    low, high = max(low, lowest), min(high, highest)
    return (low, high) if dtype.is_floating_point or dtype.is_complex else (math.ceil(low), math.ceil(high))
