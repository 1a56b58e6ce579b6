"""What is known of an input before a graph runs."""

from __future__ import annotations

import dataclasses

import cresset
from cresset import _C

_ANY = 2**63 - 1


@dataclasses.dataclass(frozen=True, init=False)
class Input:
    """A tensor's dtype and sizes, which may be ranges.

        Input((1, 3, 224, 224))
        Input((-1, 3), dtype=cresset.float16)                                        # -1: any size
        Input(min_shape=(1, 3), opt_shape=(8, 3), max_shape=(32, 3), dtype="int64")
        Input("[(1,3);(8,3);(32,3)]@int64")                                          # as on the command line

    ValueError unless min <= opt <= max in as many dimensions, and for texts that cannot be read.
    """

    min_shape: tuple[int, ...]
    opt_shape: tuple[int, ...]
    max_shape: tuple[int, ...]
    dtype: object
    device: str | None

    def __init__(self, shape=None, *, min_shape=None, opt_shape=None, max_shape=None, dtype=None, device=None):
        ranges = (min_shape, opt_shape, max_shape)
        if (shape is None) == (None in ranges) or (shape is not None and ranges != (None, None, None)):
            raise ValueError("Input: a shape, or min_shape, opt_shape and max_shape were required.")
        if isinstance(shape, str):
            text = shape
        else:
            if dtype is None:
                dtype = cresset.float32
            name = dtype if isinstance(dtype, str) else str(dtype).rpartition(".")[2]
            shapes = [_sizes(shape)] if shape is not None else [_sizes(s) for s in ranges]
            text = (shapes[0] if shape is not None else "[" + ";".join(shapes) + "]") + "@" + name
            dtype = None
        least, usual, most, name = _C._lowering_input(text)
        if dtype is not None and dtype is not getattr(cresset, name):
            raise ValueError(f"Input: the text says {name}, dtype says {dtype}.")
        object.__setattr__(self, "min_shape", tuple(least))
        object.__setattr__(self, "opt_shape", tuple(usual))
        object.__setattr__(self, "max_shape", tuple(most))
        object.__setattr__(self, "dtype", getattr(cresset, name))
        object.__setattr__(self, "device", None if device is None else str(device))

    @staticmethod
    def of(value) -> Input:
        """An Input as it is; one like a tensor; or from a shape or text."""
        if isinstance(value, Input):
            return value
        if isinstance(value, cresset.Tensor):
            return Input(tuple(value.shape), dtype=value.dtype, device=value.device)
        return Input(value)

    def text(self) -> str:
        """As parse of the command line reads it; without the device."""
        name = str(self.dtype).rpartition(".")[2]
        if self.min_shape == self.max_shape:
            return f"{_sizes(self.opt_shape)}@{name}"
        shapes = ";".join(_sizes(s) for s in (self.min_shape, self.opt_shape, self.max_shape))
        return f"[{shapes}]@{name}"

    def misfit(self, value) -> str | None:
        """Why the value is not such an input; None when it is."""
        if not isinstance(value, cresset.Tensor):
            return f"a tensor was specified; {type(value).__name__} was given"
        sizes = tuple(value.shape)
        fits = value.dtype == self.dtype and len(sizes) == len(self.min_shape) and all(a <= n <= b for a, n, b in zip(self.min_shape, sizes, self.max_shape))
        if fits and (self.device is None or str(value.device) == self.device):
            return None
        return f"{self.text()} was specified; {sizes} of {value.dtype} on {value.device} was given"


def _sizes(shape) -> str:
    return "(" + ",".join("-1" if n is None else str(int(n)) for n in shape) + ")"
