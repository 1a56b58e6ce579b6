"""Indices with dimensions: `A[i, j]`, `A[i, [j, k]]`, `A[i + 1, :]`, `A[:, i] = …`."""

import cresset

from ._tensors import Dim, DimensionBindError, DimList, Tensor, _Tensor, aligned, over_examples, plain_of, position, union, wrapped

__all__ = ["bind_split", "get_item", "set_item"]


def _is_group(entry):
    """A list or tuple of dimensions, which one dimension is taken apart into."""
    return isinstance(entry, (list, tuple)) and len(entry) > 0 and all(isinstance(d, (Dim, DimList)) for d in entry)


def _taken(entry):
    """How many dimensions of the tensor an entry of the index takes; None: all that are left."""
    if entry is None:
        return 0
    if entry is Ellipsis or isinstance(entry, DimList) and not entry.is_bound:
        return None
    if isinstance(entry, DimList):
        return len(entry)
    if isinstance(entry, cresset.Tensor) and entry.dtype in (cresset.bool, cresset.uint8):
        return entry.dim()
    return 1


def bind_split(group, size):
    """Bind the dimensions that one of a size is taken apart into; one of them may have no size yet."""
    group = [d for one in group for d in (list(one) if isinstance(one, DimList) else [one])]
    known, unknown = 1, [d for d in group if not d.is_bound]
    for d in group:
        known *= d.size if d.is_bound else 1
    if len(unknown) > 1:
        raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
    if size != known and not unknown or unknown and (known == 0 or size % known):
        shown = tuple(d.size if d.is_bound else "?" for d in group)
        raise DimensionBindError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {shown}")
    if unknown:
        unknown[0].size = size // known
    return group


def _entries(index, positional):
    """The index as one entry for each positional dimension (and None for new ones): no ellipsis, no DimList."""
    index = list(index) if isinstance(index, tuple) else [index]
    taken = [_taken(e) for e in index]
    if taken.count(None) > 1:
        raise DimensionBindError("at most one ... or unbound dimension list can exist in indexing list but found 2")
    left = positional - sum(n for n in taken if n is not None)
    if left < 0:
        raise ValueError(f"at least {positional - left} indices were supplied but the tensor only has {positional} dimensions")
    found = []
    for entry, n in zip(index, taken):
        if entry is Ellipsis:
            found += [slice(None)] * left
        elif isinstance(entry, DimList):
            if n is None:
                entry.bind_len(left)
            found += list(entry)
        else:
            found.append(entry)
    if None not in taken:
        found += [slice(None)] * left
    return found


def _apart(x, index):
    """(the tensor with dimensions taken apart where the index has groups, the entries of the index for it)."""
    plain, own = plain_of(x)
    entries, sizes, found, at = _entries(index, plain.dim() - len(own)), list(plain.shape[: len(own)]), [], len(own)
    split = False
    for entry in entries:
        if _is_group(entry):
            group = bind_split(entry, plain.shape[at])
            sizes += [d.size for d in group]
            found += group
            split = True
        else:
            found.append(entry)
            sizes += plain.shape[at : at + _taken(entry)]
        at += _taken(entry)
    return (wrapped(plain.reshape(sizes), own) if split else x), found


def _labelled(x, entries):
    """(the tensor with the entries that are its own new dimensions as first-class ones, the entries that are left). A dimension that occurs twice, or that
    the tensor has already, is an index like other tensors."""
    plain, own = plain_of(x)
    new, axes, rest, at = [], [], [], len(own)
    for entry in entries:
        if isinstance(entry, Dim) and position(entry, [*own, *new]) is None and sum(e is entry for e in entries) == 1:
            entry.size = plain.shape[at]
            new.append(entry)
            axes.append(at)
        else:
            if isinstance(entry, Dim):
                entry.size = plain.shape[at]
            rest.append(entry)
        at += _taken(entry)
    if not new:
        return x, entries
    others = [a for a in range(len(own), plain.dim()) if a not in axes]
    return wrapped(plain.permute(*range(len(own)), *axes, *others), (*own, *new)), rest


def get_item(x, index):
    """x[index]."""
    x, entries = _apart(x, index)
    x, entries = _labelled(x, entries)
    if all(isinstance(e, slice) and e == slice(None) for e in entries):
        return x
    return over_examples(cresset.Tensor.__getitem__, (x, tuple(entries)), {})


def set_item(x, index, value):
    """x[index] = value: all at once, for each combination of indices along the dimensions of the index."""
    x, entries = _apart(x, index)
    x, entries = _labelled(x, entries)
    tensors = [e for e in entries if isinstance(e, _Tensor)]
    dims = union([*([x] if isinstance(x, Tensor) else []), *tensors])
    if isinstance(value, _Tensor) and (more := [d for d in value.dims if position(d, dims) is None]):
        raise DimensionBindError(f"the value that is assigned has the dimension {more[0]}, which the index has not.")
    if any(e.ndim for e in tensors) or any(isinstance(e, cresset.Tensor) for e in entries):
        raise NotImplementedError("tensors with positional dimensions cannot stand in an index with dimensions that is assigned to. Bind them: ids[i].")
    plain, own = plain_of(x)
    if not tensors:
        target, entries = plain, (*[slice(None)] * len(own), *entries)
        target[entries] = _value(value, list(own), plain[entries].dim() - len(own))
        return
    if any(e is None for e in entries):
        raise NotImplementedError("None cannot stand in an index with dimensions that is assigned to.")
    # One index for each axis that tensors choose from; these axes are in front.
    chosen = [aligned(d, dims, 0) for d in own]
    axes = list(range(len(own)))
    for at, e in enumerate(entries, len(own)):
        if isinstance(e, _Tensor):
            chosen.append(aligned(e, dims, 0))
            axes.append(at)
    rest = [a for a in range(plain.dim()) if a not in axes]
    target = plain.permute(*axes, *rest)
    entries = (*chosen, *(entries[a - len(own)] for a in rest))
    target[entries] = _value(value, dims, target[entries].dim() - len(dims))


def _value(value, dims, positional):
    return aligned(value, dims, positional) if isinstance(value, _Tensor) else value
