"""Safetensors files: state dictionaries and nested containers of tensors.

A file is an 8-byte header length, a JSON header, and the raw data. A dictionary of tensors is written so that any safetensors reader
understands it; what nests deeper keeps its structure as JSON in the header's metadata.
"""

import json
import math
import os
from collections import OrderedDict
from collections.abc import Mapping

import cresset
from cresset import Tensor, _C

from ._errors import damage, damaged
from ._files import bytes_left
from ._locations import device_of_tag, location_tag
from ._zip import fill

__all__ = ["is_safetensors", "read_safetensors", "write_safetensors"]

_DTYPES = frozenset(name for name, value in vars(_C).items() if isinstance(value, _C.dtype))
_CODES = {code: dtype for name in _DTYPES if (code := _C._safetensors_code(dtype := getattr(_C, name)))}
_STRUCTURE, _VERSIONS, _COMPLEX128 = "cresset.structure", "cresset.versions", "cresset.complex128"
_DEVICES = "cresset.devices"  # name -> "tag:index" of the tensors that were on a device
_BACKEND_META = "cresset.backend_meta"  # name -> what the backend keeps beside the tensor
_MAX_HEADER = 100_000_000


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def _buffer(tensor):
    """The bytes of a contiguous CPU tensor, shared with it."""
    return memoryview(tensor.reshape(-1).view(cresset.uint8))


# Structure ------------------------------------------------------------------------------------------------------------


class _Encoder:
    """Takes the tensors out of a nested object; what is left is JSON."""

    def __init__(self):
        self.tensors = {}
        self._names = {}

    def _tensor(self, tensor, path):
        name = self._names.get(id(tensor))
        if name is None:
            name = path if path and path != "__metadata__" else "tensor"
            while name in self.tensors:  # "a.b" may be one key or two
                name += "_"
            self._names[id(tensor)] = name
            self.tensors[name] = tensor
        return {"tensor": name}

    def encode(self, value, path=""):
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, (list, tuple)):
            items = [self.encode(v, f"{path}.{i}" if path else str(i)) for i, v in enumerate(value)]
            return {"list" if isinstance(value, list) else "tuple": items}
        if isinstance(value, Mapping):
            items = [[self._key(k, path), self.encode(v, f"{path}.{k}" if path else str(k))] for k, v in value.items()]
            if not isinstance(value, OrderedDict):
                return {"dict": items}
            metadata = getattr(value, "_metadata", None)
            return {"ordered": items} if metadata is None else {"ordered": items, "metadata": self._plain(metadata)}
        if isinstance(value, cresset.dtype):
            return {"dtype": _dtype_name(value)}
        if isinstance(value, cresset.device):
            return {"device": str(value)}
        self._refuse(value, path)

    def _key(self, key, path):
        if isinstance(key, (str, int, float)) or key is None:
            return key
        if isinstance(key, tuple):
            return {"tuple": [self._key(k, path) for k in key]}
        self._refuse(key, path, "key ")

    def _plain(self, metadata):
        return [[k, self.encode(dict(v))] for k, v in metadata.items()]

    @staticmethod
    def _refuse(value, path, what=""):
        hint = " Save module.state_dict()." if hasattr(value, "state_dict") else ""
        raise TypeError(
            f"save: tensors, numbers, strings, None, dtypes and devices in dicts, lists and tuples are required; got {what}"
            f"{type(value).__name__}{f' at {path!r}' if path else ''}.{hint}"
        )


def _decode(value, tensors):
    if isinstance(value, list):
        raise _broken("the structure has a bare list")
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "float" in value:
        return float(value["float"])
    if "list" in value:
        return [_decode(v, tensors) for v in value["list"]]
    if "tuple" in value:
        return tuple(_decode(v, tensors) for v in value["tuple"])
    if "dict" in value:
        return {_decode(k, tensors): _decode(v, tensors) for k, v in value["dict"]}
    if "ordered" in value:
        result = OrderedDict((_decode(k, tensors), _decode(v, tensors)) for k, v in value["ordered"])
        if "metadata" in value:
            result._metadata = OrderedDict((k, _decode(v, tensors)) for k, v in value["metadata"])
        return result
    if "dtype" in value:
        if value["dtype"] not in _DTYPES:
            raise _broken(f"the structure has the unknown dtype {value['dtype']!r}")
        return getattr(cresset, value["dtype"])
    if "device" in value:
        return device_of_tag(value["device"])
    raise _broken(f"the structure has an unknown entry {sorted(value)}")


_KIND = "a safetensors file"


def _broken(why):
    return damaged(why, _KIND)


def _damage(part):
    return damage(part, _KIND)


# Writing --------------------------------------------------------------------------------------------------------------


def _is_flat(obj):
    return isinstance(obj, Mapping) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in obj.items())


def write_safetensors(obj, write):
    """Write `obj` through `write`, a function of bytes-like objects.

    `obj` is a state dict, or nests dicts, lists and tuples around tensors, numbers, strings and None (an optimiser's state dict,
    a checkpoint of several). TypeError names anything else. Views are written out in full.
    """
    encoder = _Encoder()
    metadata = {"format": "pt"}
    if _is_flat(obj) and "__metadata__" not in obj:
        tensors = dict(obj)
        versions = getattr(obj, "_metadata", None)
        if versions is not None:
            metadata[_VERSIONS] = json.dumps(encoder._plain(versions))
    else:
        metadata[_STRUCTURE] = json.dumps(encoder.encode(obj))
        tensors = encoder.tensors
    plain, complex128, devices, backend_meta = {}, [], {}, {}
    for name, tensor in tensors.items():
        if facts := _C._backend_meta(tensor):
            backend_meta[name] = facts
        tensor = tensor.detach()
        if tensor.is_complex():
            tensor = tensor.resolve_conj()
        if _dtype_name(tensor.dtype) == "complex128":  # the format has no such dtype
            tensor = cresset.view_as_real(tensor)
            complex128.append(name)
        if not _C._safetensors_code(tensor.dtype):
            raise TypeError(f"save: the dtype of {name!r} has no safetensors code; got {tensor.dtype}. Cast it first.")
        if tensor.is_meta:
            raise NotImplementedError(f"save: a tensor with data was required; {name!r} is on the meta device.")
        if tensor.device.type != "cpu":
            devices[name] = location_tag(tensor.device)
        plain[name] = tensor.cpu().contiguous()
    if complex128:
        metadata[_COMPLEX128] = json.dumps(complex128)
    if devices:
        metadata[_DEVICES] = json.dumps(devices)
    if backend_meta:
        metadata[_BACKEND_META] = json.dumps(backend_meta)

    # The widest dtypes come first, which aligns every tensor; the header keeps the caller's order.
    layout = sorted(plain, key=lambda name: -plain[name].element_size())
    offsets, end = {}, 0
    for name in layout:
        start, end = end, end + plain[name].numel() * plain[name].element_size()
        offsets[name] = [start, end]
    header = {"__metadata__": metadata}
    for name, tensor in plain.items():
        header[name] = {
            "dtype": _C._safetensors_code(tensor.dtype), "shape": list(tensor.shape), "data_offsets": offsets[name],
        }  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    write(len(text).to_bytes(8, "little"))
    write(text)
    for name in layout:
        if plain[name].numel():
            write(_buffer(plain[name]))


# Reading --------------------------------------------------------------------------------------------------------------


def _read_header(f):
    head = f.read(8)
    if len(head) < 8:
        raise _broken("it ends within the header")
    size = int.from_bytes(head, "little")
    if not 2 <= size <= _MAX_HEADER:
        raise _broken(f"the header would have {size} bytes")
    text = f.read(size)
    if len(text) < size:
        raise _broken("it ends within the header")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise _broken(f"the header is not JSON ({e})") from None
    if not isinstance(header, dict):
        raise _broken("the header is not an object")
    return header


def _check_entry(name, entry):
    """(dtype, shape, start, end) of a header entry whose numbers fit together."""
    try:
        code, shape, (start, end) = entry["dtype"], list(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise _broken(f"the entry {name!r} is incomplete") from None
    if not isinstance(code, str) or code not in _CODES:
        raise _broken(f"{name!r} has the unknown dtype {code!r}")
    dtype = _CODES[code]
    numbers = [start, end, *shape]
    if not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise _broken(f"{name!r} has sizes or offsets that are not whole numbers")
    if end - start != math.prod(shape) * dtype.itemsize:
        raise _broken(f"{name!r} has {end - start} bytes, its shape {shape} needs {math.prod(shape) * dtype.itemsize}")
    return dtype, shape, start, end


def _mapped_tensor(whole, at, dtype, shape):
    """A tensor over a part of a mapped file; a copy where the part is not aligned for its dtype."""
    part = whole[at : at + math.prod(shape) * dtype.itemsize]
    if part.data_ptr() % dtype.itemsize:
        part = part.clone()
    return cresset.storage.tensor_of_storage(part, dtype, 0, shape)


def _read_tensors(f, header, whole):
    entries = {name: _check_entry(name, entry) for name, entry in header.items()}
    there = bytes_left(f)
    if there is not None:  # before memory is asked for
        for name, (*_, end) in entries.items():
            if end > there:
                raise _broken(f"it ends within the data of {name!r}")
    tensors, position = {}, 0
    for name, (dtype, shape, start, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if start != position:
            raise _broken(f"the data of {name!r} begins at byte {start}, not {position}")
        if whole is not None and end > start:
            tensor = _mapped_tensor(whole, f.tell(), dtype, shape)
            f.seek(end - start, os.SEEK_CUR)
        else:
            tensor = cresset.empty(shape, dtype=dtype)
            if end > start:
                fill(f, memoryview(_buffer(tensor)), f"the data of {name!r}", _KIND)
        tensors[name] = tensor
        position = end
    if f.read(1):
        raise _broken("there is more data than the header describes")
    return {name: tensors[name] for name in header}


def is_safetensors(f):
    """Does a file of this format begin at the position of `f`? The position stays."""
    start = f.tell()
    head = f.read(9)
    f.seek(start)
    return len(head) == 9 and head[8:] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= _MAX_HEADER


def _placed(tensor, tag, map_location):
    """The tensor where it belongs by its tag, or where map_location says."""
    if isinstance(map_location, dict):
        return tensor.to(device_of_tag(str(map_location.get(tag, tag))))
    if callable(map_location) and not isinstance(map_location, cresset.device):  # devices are decorators too
        moved = map_location(tensor, tag)
        return tensor.to(device_of_tag(tag)) if moved is None else moved
    return tensor.to(device_of_tag(tag) if map_location is None else map_location)


def read_safetensors(f, map_location, whole=None):
    """The object of an open file; nothing in it can run code.

    A state dict comes back as an OrderedDict with its versions, another flat file as a dict. `map_location` as of load; a function is
    called with the tensor on the CPU. With `whole`, the storage of the mapped file, tensors are parts of it.
    """
    header = _read_header(f)
    metadata = header.pop("__metadata__", {})
    tensors = _read_tensors(f, header, whole)
    with _damage("metadata"):
        facts = {key: json.loads(metadata.get(key, "null")) for key in (_COMPLEX128, _DEVICES, _BACKEND_META, _STRUCTURE, _VERSIONS)}
        for name in facts[_COMPLEX128] or ():
            tensors[name] = cresset.view_as_complex(tensors[name])
        devices = dict(facts[_DEVICES] or {})
        tags = {name: str(devices.get(name, "cpu")) for name in tensors}
    if devices or map_location is not None:
        tensors = {name: _placed(t, tags[name], map_location) for name, t in tensors.items()}
    with _damage("structure"):
        for name, kept in (facts[_BACKEND_META] or {}).items():
            _C._restore_backend_meta(tensors[name], kept)
        if facts[_STRUCTURE] is not None:
            return _decode(facts[_STRUCTURE], tensors)
        if facts[_VERSIONS] is not None:
            result = OrderedDict(tensors)
            result._metadata = OrderedDict((k, _decode(v, tensors)) for k, v in facts[_VERSIONS])
            return result
    return tensors
