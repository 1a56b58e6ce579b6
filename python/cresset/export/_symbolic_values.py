"""meta["val"] of nodes whose sizes vary: fake tensors that show expressions as sizes, and numbers that do. They are what the example had, besides."""

import types

import cresset
from cresset._subclasses.fake_tensor import FakeTensor
from cresset.utils._python_dispatch import no_dispatch

from ._sizes import SizeExpr

__all__ = ["SizeNumber", "with_sizes"]


class SizeNumber(int, cresset.SymInt):
    """The example's size, shown as its expression. `node.expr` is that."""

    def __new__(cls, number, expression):
        self = super().__new__(cls, number)
        self.node = types.SimpleNamespace(expr=expression, hint=int(number), has_hint=lambda: True)
        return self

    def __repr__(self):
        return str(self.node.expr)

    __str__ = __repr__

    def __format__(self, spec):
        return format(str(self), spec)

    def __reduce__(self):
        return SizeNumber, (int(self), self.node.expr)


class _Size(tuple):
    """A torch.Size with SizeNumbers in it."""

    __slots__ = ()

    def numel(self):
        """How many elements the example has."""
        return cresset.Size(self).numel()

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"


class _SizedFake(FakeTensor):
    """A fake tensor some of whose sizes are SizeNumbers."""

    @property
    def shape(self):
        """The sizes."""
        return self._shown_sizes

    def size(self, dim=None):
        """The sizes, or one of them."""
        return self._shown_sizes if dim is None else self._shown_sizes[dim]

    def __deepcopy__(self, memo):
        known = id(self) in memo
        copy = super().__deepcopy__(memo)
        return copy if known else _shown(copy, self._shown_sizes)


_SizedFake.__name__ = FakeTensor.__name__  # as what it is printed


def _shown(fake, sizes):
    fake.__class__ = _SizedFake
    fake._shown_sizes = _Size(sizes)
    return fake


def _of_tensor(value, sizes):
    if type(value) is not FakeTensor or all(isinstance(n, int) or n is None for n in sizes):
        return value
    shown = [SizeNumber(hint, n) if isinstance(n, SizeExpr) else int(hint) for n, hint in zip(sizes, value.shape)]
    with no_dispatch(), cresset.no_grad():
        copy = value.fake_mode._wrap(value._elem, value.fake_device)
    copy.requires_grad_(value.requires_grad)
    return _shown(copy, shown)


def with_sizes(value, sizes):
    """The value of a node with its sizes, as meta["sizes"] has them, to see: a tensor, or several in a list or tuple."""
    if isinstance(value, cresset.Tensor):
        return _of_tensor(value, sizes)
    rest = iter(sizes)
    return type(value)([_of_tensor(v, next(rest)) if isinstance(v, cresset.Tensor) else v for v in value]) if type(value) in (list, tuple) else value
