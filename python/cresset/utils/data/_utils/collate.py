"""From a list of samples to a batch."""

import copy
import re
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import cresset
from cresset import Tensor

__all__ = ["default_collate", "default_convert", "collate", "default_collate_fn_map"]

_STRINGS = (str, bytes)
default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
np_str_obj_array_pattern = re.compile(r"[SaUO]")  # codes of NumPy's types whose arrays become no tensors


def _is_numpy(value):
    # Without importing NumPy: only a program that uses it can have such a value.
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def default_convert(data):
    """`data` with NumPy arrays turned into tensors, inside containers as well; everything else is kept."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        return data if data.dtype.kind in "SUO" else cresset.as_tensor(data)
    if isinstance(data, Mapping):
        items = {key: default_convert(value) for key, value in data.items()}
        return _like(data, items, lambda: kind(items), items)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, _STRINGS):
        items = [default_convert(d) for d in data]
        return _like(data, dict(enumerate(items)), lambda: kind(items), items)
    return data


def _like(original, items, build, plain):
    """A container of the type of `original` with new `items`; `plain` when that type cannot be built."""
    try:
        if isinstance(original, (MutableMapping, MutableSequence)):
            # Copied, so that attributes of the caller's own type survive.
            clone = copy.copy(original)
            if isinstance(clone, MutableMapping):
                clone.update(items)
            else:
                for i, item in items.items():
                    clone[i] = item
            return clone
        return build()
    except TypeError:
        return plain


def collate(batch, *, collate_fn_map=None):
    """Merge the samples of `batch`; `collate_fn_map` maps types to functions `f(batch, *, collate_fn_map)` tried first."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(first, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if _is_numpy(first):
        return _collate_numpy(batch, collate_fn_map)
    if isinstance(first, Mapping):
        items = {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in first}
        return _like(first, items, lambda: kind(items), items)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        size = len(first)
        if any(len(sample) != size for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        if isinstance(first, tuple):
            return columns
        return _like(first, dict(enumerate(columns)), lambda: kind(columns), columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _collate_numpy(batch, collate_fn_map):
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(default_collate_err_msg_format.format(first.dtype))
    if getattr(first, "ndim", 0) == 0:
        return cresset.as_tensor(batch)
    return collate([cresset.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    batch = tuple(batch)
    for kind, found in (("nested", any(t.is_nested for t in batch if isinstance(t, Tensor))), ("sparse", any(t.layout != cresset.strided for t in batch if isinstance(t, Tensor)))):
        if found:
            raise RuntimeError(
                f"Batches of {kind} tensors are not currently supported by the default collate_fn; please provide a custom collate_fn to handle "
                "them appropriately."
            )
    first, worker = batch[0], sys.modules[f"{__package__}.worker"]
    # In a worker process the result lies where the program's process can see it, so that it need not be copied there.
    if worker._worker_info is not None and all(_is_like(t, first) for t in batch):
        return cresset.stack(batch, 0, out=cresset.empty((len(batch), *first.shape), dtype=first.dtype).share_memory_())
    return cresset.stack(batch, 0)


def _is_like(tensor, first):
    return type(tensor) is cresset.Tensor and tensor.is_cpu and not tensor.requires_grad and tensor.dtype == first.dtype and tensor.shape == first.shape


def collate_float_fn(batch, *, collate_fn_map=None):
    return cresset.tensor(batch, dtype=cresset.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return cresset.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """Merge samples: tensors and arrays are stacked, numbers become tensors, strings stay a list, containers go inside."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
