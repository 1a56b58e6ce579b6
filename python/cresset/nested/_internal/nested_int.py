"""The size of a dimension that differs between the components: a symbol, and shapes that have one."""

import itertools
import math

import cresset

__all__ = ["NestedInt", "NestedSize"]

_count = itertools.count(1)


class NestedInt(cresset.SymInt):
    """`j1`, `j2`, … equal only itself. Compared with numbers it is at least 2; other questions have no answer (ValueError)."""

    def __init__(self, number=None, factor=1):
        self._number, self._factor = next(_count) if number is None else number, factor

    def __repr__(self):
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    def __eq__(self, other):
        return isinstance(other, NestedInt) and (other._number, other._factor) == (self._number, self._factor)

    def __hash__(self):
        return hash(("j", self._number, self._factor))

    def __mul__(self, other):
        return NestedInt(self._number, self._factor * other) if type(other) is int else self._no_operand(other)

    def _no_operand(self, other):
        if isinstance(other, cresset.Tensor):
            raise RuntimeError(f"invalid argument {self!r}: a number or a tensor was required; the size of a ragged dimension is neither.")
        return NotImplemented

    __rmul__ = __mul__
    __radd__ = __rsub__ = __rtruediv__ = _no_operand

    def _compare(self, other, name):
        if isinstance(other, NestedInt) and other._number == self._number:
            return {"ge": int.__ge__, "gt": int.__gt__, "le": int.__le__, "lt": int.__lt__}[name](self._factor, other._factor)
        if type(other) is int and other < 2:
            return name in ("ge", "gt")
        raise ValueError(f"{name}: relation is indeterminate")

    def __ge__(self, other):
        return self._compare(other, "ge")

    def __gt__(self, other):
        return self._compare(other, "gt")

    def __le__(self, other):
        return self._compare(other, "le")

    def __lt__(self, other):
        return self._compare(other, "lt")

    def __bool__(self):
        return True

    def __int__(self):
        raise TypeError(f"{self!r} is the size of a ragged dimension: it is a number for each component, not one. offsets() has them.")

    __index__ = __int__


class NestedSize(tuple):
    """A shape with a NestedInt."""

    __slots__ = ()

    def __repr__(self):
        return f"{repr(cresset.Size(())).partition('(')[0]}({list(self)})"

    def numel(self):
        return math.prod(self)
