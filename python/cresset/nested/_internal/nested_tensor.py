"""NestedTensor: tensors of one dimension that differs, one behind the other in one tensor (torch.jagged).

It is a Python type of tensor over `__torch_function__`: each function is computed on the packed values, which carry the gradient; ops.py has how.
"""

import weakref

import cresset

from .nested_int import NestedInt, NestedSize

__all__ = ["NestedTensor"]


class _Rows:
    """What the offsets (and lengths) of nested tensors say, computed once for all that share them."""

    def __init__(self, offsets, lengths):
        self.offsets, self.lengths, self.size = offsets, lengths, NestedInt()
        self._counts = self._index = None

    @property
    def counts(self):
        """The length of each component."""
        if self._counts is None:
            with cresset.no_grad():
                self._counts = (self.offsets.diff() if self.lengths is None else self.lengths).tolist()
        return self._counts

    @property
    def starts(self):
        return self.offsets.tolist()[: len(self.counts)]

    def index(self):
        """(component, position in it, position in the values) of each row."""
        if self._index is None:
            with cresset.no_grad():
                device, n = self.offsets.device, len(self.counts)
                counts = cresset.tensor(self.counts, dtype=cresset.int64, device=device)
                component = cresset.arange(n, device=device).repeat_interleave(counts)
                position = cresset.arange(len(component), device=device) - (counts.cumsum(0) - counts)[component]
                self._index = component, position, self.offsets.to(cresset.int64)[component] + position
        return self._index


_known = weakref.WeakValueDictionary()  # ids of tensors, which the rows keep alive -> rows


def rows_of(offsets, lengths=None):
    """The _Rows of offsets; the same ones for the same tensors."""
    key = id(offsets), id(lengths)
    found = _known.get(key)
    if found is None:
        found = _known[key] = _Rows(offsets, lengths)
    return found


def get_tensor_symint(tensor, *, coeff=1):
    """The size of the ragged dimension of nested tensors with these offsets, times a number."""
    return rows_of(tensor).size * coeff if coeff != 1 else rows_of(tensor).size


def padded(nt, fill):
    """(B, …, longest, …) with `fill` behind the components."""
    component, position, row = nt._rows.index()
    values = nt._packed.movedim(nt._ragged_idx - 1, 0)
    shape = (len(nt._rows.counts), max(nt._rows.counts, default=0) if nt._seqlens[1] is None else max(nt._seqlens[1], *nt._rows.counts), *values.shape[1:])
    result = values.new_full(shape, fill).index_put((component, position), values[row])
    return result.movedim(1, nt._ragged_idx)


def _as_size(number, nt):
    """A tensor without elements whose first size is the number; None for None."""
    return None if number is None else nt._packed.new_empty((number, 0))


def _first_of(values):
    """The tensor that values are a view of, or the values."""
    return values._base if values._is_view() else values


class NestedTensor(cresset.Tensor):
    """Components of shapes that differ in one dimension: (B, *, D…), `*` the ragged one. Made by the functions of `cresset.nested`."""

    _call = None  # ops.call, which works on nested tensors

    @staticmethod
    def __new__(cls, values, offsets, *, lengths=None, _ragged_idx=1, _min_seqlen=None, _max_seqlen=None, _rows=None, _root=True):
        # `_root`: what this is a view of; True says that it is one of the values.
        rows = rows_of(offsets, lengths) if _rows is None else _rows
        self = cresset.Tensor._make_wrapper_subclass(cls, (len(offsets) - 1, *values.shape), dtype=values.dtype, device=values.device)
        self._packed, self._ragged_idx, self._rows, self._seqlens = values, _ragged_idx, rows, (_min_seqlen, _max_seqlen)
        self._root = _first_of(values) if _root is True else _root
        return self

    def values(self):
        """The components one behind the other; of shape (sum of the ragged sizes, D…) when dimension 1 is the ragged one."""
        v = self._packed
        return v.view_as(v) if v.requires_grad and v.is_leaf else v

    def offsets(self):
        """Where each component begins in the values, and the end: int64 of shape (B + 1,)."""
        return self._rows.offsets

    def lengths(self):
        """The ragged size of each component where there are holes between them, otherwise None."""
        return self._rows.lengths

    @property
    def _values(self):
        return self._packed

    @property
    def _offsets(self):
        return self._rows.offsets

    @property
    def _lengths(self):
        return self._rows.lengths

    def _get_max_seqlen(self):
        if self._seqlens[1] is None:
            self._seqlens = self._seqlens[0], max(self._rows.counts, default=0)
        return self._seqlens[1]

    def _get_min_seqlen(self):
        if self._seqlens[0] is None:
            self._seqlens = min(self._rows.counts, default=0), self._seqlens[1]
        return self._seqlens[0]

    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)
    _maybe_max_seqlen = property(lambda self: self._seqlens[1])
    _maybe_min_seqlen = property(lambda self: self._seqlens[0])
    _max_seqlen_tensor = property(lambda self: _as_size(self._seqlens[1], self))
    _min_seqlen_tensor = property(lambda self: _as_size(self._seqlens[0], self))

    @property
    def _metadata_cache(self):
        """What is known of the lengths, each as the first size of a tensor."""
        known = zip(("min_seqlen", "max_seqlen"), (self._min_seqlen_tensor, self._max_seqlen_tensor), strict=True)
        return {name: size for name, size in known if size is not None}

    def _view_func(self, base):
        """This view of another base."""
        values = self._packed
        if self._root is not values:
            if isinstance(self._root, NestedTensor):
                base = base._packed
            base = base.as_strided(values.size(), values.stride(), values.storage_offset())
        return self._like(base)

    def to_padded_tensor(self, padding, output_size=None):
        """A dense tensor in which the components are filled up with `padding` to the longest, or to `output_size`. RuntimeError with holes, or
        when `output_size` is smaller."""
        if self._rows.lengths is not None:
            raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
        result = padded(self, padding)
        if output_size is None:
            return result
        missing = [want - have for want, have in zip(output_size, result.shape, strict=True)]
        if min(missing) < 0:
            raise RuntimeError(f"to_padded_tensor(): output_size {tuple(output_size)} is smaller than the padded tensor {tuple(result.shape)}.")
        return cresset.nn.functional.pad(result, [n for m in reversed(missing) for n in (0, m)], value=padding)

    def _shape(self):
        shape = list(self._packed.shape)
        shape[self._ragged_idx - 1] = self._rows.size
        return NestedSize((len(self._rows.counts), *shape))

    def _like(self, values, ragged_idx=None):
        """The nested tensor of other values in the same rows."""
        low, high = self._seqlens
        root = None
        if values._is_view() and _first_of(values) is _first_of(self._packed):
            root = self if self._root is None else self._root
        return NestedTensor(
            values, self._rows.offsets, _ragged_idx=self._ragged_idx if ragged_idx is None else ragged_idx, _min_seqlen=low, _max_seqlen=high, _rows=self._rows,
            _root=root,
        )  # fmt: skip

    def __repr__(self, *, tensor_contents=None):
        packed = self._packed
        facts = f", grad_fn={packed.grad_fn}" if packed.grad_fn is not None else ", requires_grad=True" if packed.requires_grad else ""
        return f"NestedTensor(size={tuple(self._shape())}, offsets={self._rows.offsets}{facts}, contiguous={self.is_contiguous()})"

    def __reduce_ex__(self, protocol):
        rows = self._rows
        return cresset._utils._rebuild_jagged_tensor, (self._packed.detach(), rows.offsets, rows.lengths, self._ragged_idx, *self._seqlens, self._packed.requires_grad)

    def __deepcopy__(self, memo):
        if not self._packed.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = self._like(self._packed.detach().clone().requires_grad_(self._packed.requires_grad))
        return found

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls._call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        # What reaches an operator past __torch_function__ would compute with the shell, which has no values.
        raise NotImplementedError(f"{func}: not supported for nested tensors here; unbind() gives the components, to_padded_tensor() a dense tensor.")


def _prepared(tensors, dtype, device):
    made = [t if isinstance(t, cresset.Tensor) else cresset.tensor(t) for t in tensors]
    if not made:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, kind in (("dim", lambda t: t.dim()), ("dtype", lambda t: t.dtype), ("device", lambda t: t.device)):
        if len({kind(t) for t in made}) > 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must have the same {what}")
    if made[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    return [t.to(dtype=dtype or t.dtype, device=device or t.device) for t in made]


def from_list(tensors, dtype=None, device=None, ragged=None):
    """The nested tensor of a list; gradients flow to its elements. `ragged`: the dimension that may differ where none does. RuntimeError where more
    than one dimension differs."""
    tensors = _prepared(tensors, dtype, device)
    differs = [d for d, sizes in enumerate(zip(*(t.shape for t in tensors), strict=True)) if len(set(sizes)) > 1]
    if len(differs) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows for a single ragged "
            "dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    ragged = differs[0] if differs else ragged or 0
    counts = [t.shape[ragged] for t in tensors]
    offsets = cresset.tensor([0, *counts], dtype=cresset.int64, device=tensors[0].device).cumsum(0)
    return NestedTensor(cresset.cat(tensors, ragged), offsets, _ragged_idx=ragged + 1, _min_seqlen=min(counts), _max_seqlen=max(counts))


def jagged_from_list(tensors, offsets, dtype=None, device=None):
    """(the nested tensor of a list, its offsets): those that are given, so that tensors of the same rows share them, or new ones. Errors as
    from_list's, and RuntimeError for offsets of other sizes."""
    made = from_list(tensors, dtype, device)
    if offsets is None:
        return made, made._rows.offsets
    if offsets.tolist() != made._rows.offsets.tolist():
        raise RuntimeError(f"jagged_from_list: offsets {made._rows.offsets.tolist()} were required; got {offsets.tolist()}.")
    low, high = made._seqlens
    return NestedTensor(made._packed, offsets, _ragged_idx=made._ragged_idx, _min_seqlen=low, _max_seqlen=high), offsets


def nested_from_padded(padded, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None, sum_S=None):
    """The rows of a padded tensor that offsets say, a component of each; gradients flow to it. `sum_S`, the number of rows, is not needed. IndexError where a
    component is longer than the padded tensor."""
    component, position, _ = rows_of(offsets).index()
    values = padded.movedim(ragged_idx, 1)[component, position].movedim(0, ragged_idx - 1)
    return NestedTensor(values, offsets, _ragged_idx=ragged_idx, _min_seqlen=min_seqlen, _max_seqlen=max_seqlen)


def nested_view_from_values_offsets(values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """The nested tensor over values, a view of them."""
    return NestedTensor(values, offsets, _ragged_idx=ragged_idx, _min_seqlen=min_seqlen, _max_seqlen=max_seqlen)


def nested_view_from_values_offsets_lengths(values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """The nested tensor over values with holes, a view of them."""
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged_idx, _min_seqlen=min_seqlen, _max_seqlen=max_seqlen)


def buffer_from_jagged(jagged):
    """The values of a nested tensor."""
    return jagged.values()
