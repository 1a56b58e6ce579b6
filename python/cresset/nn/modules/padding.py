"""Padding layers. `padding` is one int for all sides, or (last before, last after, second last before, ...)."""

from cresset import Tensor
from cresset.nn import functional as F
from cresset.nn._functional._common import ntuple

from .module import Module

__all__ = [f"{kind}Pad{n}d" for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)]


class _PadNd(Module):
    _mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = ntuple(padding, 2 * self._ndim)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _CircularPadNd(_PadNd):
    _ndim = 0

    def forward(self, input: Tensor) -> Tensor:
        n = self._ndim
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, "circular")


def _make(kind, n, bases, what):
    return type(f"{kind}Pad{n}d", bases, {"__module__": __name__, "__doc__": f"Pads the last {n} dimension(s) {what}.", "_ndim": n})


ConstantPad1d, ConstantPad2d, ConstantPad3d = (_make("Constant", n, (_ConstantPadNd,), "with one value") for n in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_make("Zero", n, (_ZeroPadNd, constant), "with zeros") for n, constant in enumerate((ConstantPad1d, ConstantPad2d, ConstantPad3d), 1))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_make("Reflection", n, (_ReflectionPadNd,), "by reflection, without repeating the edge") for n in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_make("Replication", n, (_ReplicationPadNd,), "by repeating the edge") for n in (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = (_make("Circular", n, (_CircularPadNd,), "from the opposite side") for n in (1, 2, 3))
