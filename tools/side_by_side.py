"""PyTorch and Cresset in one process: the same arguments for both, and what differs between their results.

Shared by tools/oracle.py and tools/differential, in the interpreter that enter() of oracle.py continues in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cresset
import numpy as np
import replay
import torch

torch.set_num_threads(1)


class Unsupported(Exception):
    """The arguments cannot be given to Cresset, which is no fault of the operator: other layouts, functions, objects."""


# Copies of arguments in both packages. Strides, conjugation and requires_grad are kept.


def copied(t: torch.Tensor, track: bool) -> torch.Tensor:
    """A copy of a strided tensor over memory of its own, with the same strides."""
    if t.layout is not torch.strided or t.device.type != "cpu":
        raise Unsupported(f"{t.layout} on {t.device}")
    resolved = t.detach().resolve_conj().resolve_neg()
    strides = t.stride()
    span = sum((n - 1) * stride for n, stride in zip(t.shape, strides)) + 1 if t.numel() else 0
    copy = torch.zeros(span, dtype=t.dtype).as_strided(t.shape, strides)
    # Elements that share a place hold the same value.
    for d, stride in enumerate(strides):
        if stride == 0 and t.shape[d] > 1:
            resolved = resolved.narrow(d, 0, 1)
    copy.as_strided(resolved.shape, strides).copy_(resolved)
    if t.is_conj():
        copy = copy.conj_physical_().conj()
    return copy.requires_grad_() if track and t.requires_grad else copy


def translated(t: torch.Tensor) -> cresset.Tensor:
    """The same tensor in Cresset, from a copy that nothing else uses."""
    dtype = str(t.dtype).split(".")[-1]
    if not hasattr(cresset, dtype) or t.dtype == torch.complex32:
        raise Unsupported(f"dtype {dtype}")
    data = t.detach()
    data = data.conj() if data.is_conj() else data
    flat = torch.as_strided(data, (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1 if t.numel() else 0,), (1,), 0)
    numbers = (flat.view(torch.int16) if t.dtype == torch.bfloat16 else flat).numpy().copy()
    made = cresset.from_numpy(numbers)
    made = (made.view(cresset.bfloat16) if t.dtype == torch.bfloat16 else made).as_strided(list(t.shape), list(t.stride()))
    if t.is_conj():
        made = made.conj()
    return made.requires_grad_() if t.requires_grad else made


def mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """The value with every leaf replaced; lists, tuples, dictionaries and slices are opened."""
    if isinstance(value, torch.Size):
        return leaf(value)
    if isinstance(value, (list, tuple)):
        items = [mapped(v, leaf) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: mapped(v, leaf) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(v, leaf) for v in (value.start, value.stop, value.step)))
    return leaf(value)


def to_cresset(value: Any) -> Any:
    """A leaf of the arguments in Cresset."""
    if isinstance(value, torch.Tensor):
        return translated(value)
    if isinstance(value, torch.Size):
        return cresset.Size(value)
    if isinstance(value, torch.device):
        return cresset.device(str(value))
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        name = str(value).split(".")[-1]
        if not hasattr(cresset, name):
            raise Unsupported(str(value))
        return getattr(cresset, name)
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, np.generic, np.ndarray)):
        return value
    raise Unsupported(type(value).__name__)


# Comparison.


def as_numpy(t: Any) -> np.ndarray:
    t = t.detach().resolve_conj().resolve_neg()
    name = str(t.dtype).split(".")[-1]
    t = t.float() if name == "bfloat16" or name.startswith("float8") else t.cfloat() if name == "complex32" else t
    # force: PyTorch's gradients may be zeros without memory.
    return t.numpy(force=True) if isinstance(t, torch.Tensor) else t.numpy()


def difference(want: Any, got: Any, operator: str, values: bool, slack: Callable[[], float]) -> str | None:
    """What differs between a leaf of PyTorch's result and of ours, or None."""
    if not isinstance(want, torch.Tensor):
        if isinstance(want, (torch.dtype, torch.device)):
            want, got = str(want).split(".")[-1], str(got).split(".")[-1]
        same = want == got or not values or (want != want and got != got)
        near = isinstance(want, (float, complex)) and isinstance(got, (int, float, complex)) and np.isclose(got, want, rtol=1e-6, atol=1e-6)
        return None if same or near else f"scalar: want {want!r}, got {got!r}"
    if not isinstance(got, cresset.Tensor):
        return f"type: want tensor, got {type(got).__name__}"
    dtype = str(want.dtype).split(".")[-1]
    if str(got.dtype).split(".")[-1] != dtype:
        return f"dtype: want {dtype}, got {got.dtype}"
    if list(got.shape) != list(want.shape):
        return f"shape: want {list(want.shape)}, got {list(got.shape)}"
    if not values or not want.numel():
        return None
    if want.layout is not torch.strided:
        return None
    e, g = as_numpy(want), as_numpy(got)
    if e.dtype.kind not in "fc":
        return None if np.array_equal(e, g) else "value: integer results differ"
    relative, absolute = replay.TOLERANCE.get(dtype, (1e-3, 1e-3))
    factor = replay.LONG_FACTOR if replay.LONG_ARITHMETIC.search(operator) else replay.FACTOR

    def close(more: float) -> bool:
        near = lambda a, b: np.allclose(a, b, rtol=relative * factor, atol=absolute * factor + more, equal_nan=True)  # noqa: E731
        # By parts, too: where one is infinite the other may be rounded.
        return near(g, e) or (e.dtype.kind == "c" and near(g.real, e.real) and near(g.imag, e.imag))

    # Sums that cancel are as exact as what is added up.
    with np.errstate(all="ignore"):
        largest = float(np.nanmax(np.where(np.isfinite(e), np.abs(e), 0))) if e.size else 0.0
    if close(0.0) or close(1e-13 * largest) or close(8 * slack()):
        return None
    if not np.array_equal(np.isnan(g), np.isnan(e)):
        return f"value: {np.isnan(g).sum()} NaN, want {np.isnan(e).sum()}"
    with np.errstate(all="ignore"):
        return f"value: max abs diff {np.nanmax(np.abs(g - e)):.3g}"


def opened(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)) and not isinstance(value, (torch.Size, cresset.Size)):
        return [leaf for item in value for leaf in opened(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in opened(item)]
    return [value]


def other_strides(want: Any, got: Any) -> bool:
    """Whether strides differ that matter: of dimensions with several elements."""
    if not isinstance(want, torch.Tensor) or not isinstance(got, cresset.Tensor) or not want.numel() or want.layout is not torch.strided:
        return False
    return any(a != b for a, b, n in zip(want.stride(), got.stride(), want.shape) if n > 1)


def same_class(want: Exception, got: Exception) -> bool:
    """Whether an except clause for PyTorch's error catches ours."""
    return type(want).__name__ in [base.__name__ for base in type(got).__mro__]
