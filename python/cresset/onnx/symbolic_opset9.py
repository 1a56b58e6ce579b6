"""Steps of translations: nodes of a graph (whatever has `op(name, *inputs, **attributes)`) in version 9 of ONNX's operator set."""

from .. import _C, tensor

__all__ = ["select", "squeeze", "unsqueeze"]


def unsqueeze(g, self, dim):
    """A new dimension of size one at `dim`."""
    return g.op("Unsqueeze", self, axes_i=[dim])


def squeeze(g, self, dim=None):
    """Without the dimension `dim`, or without all of size one."""
    return g.op("Squeeze", self) if dim is None else g.op("Squeeze", self, axes_i=[dim])


def select(g, self, dim, index):
    """What lies at `index` (a number or a value of the graph) of the dimension `dim`."""
    if isinstance(index, int):
        index = g.op("Constant", value_t=tensor(index, dtype=_C.int64))
    return g.op("Gather", self, index, axis_i=dim)
