"""The tensors of .pt2 files."""

import json

import cresset

from ._save import _DTYPES

__all__ = ["read_tensors"]

_DTYPE_OF = {number: getattr(cresset, name) for name, number in _DTYPES.items() if hasattr(cresset, name)}


def _number(entry):
    value = entry.get("as_int")
    if type(value) is not int or value < 0:
        raise RuntimeError(f"export.load: a tensor's size was required; {str(entry)[:80]} was given.")
    return value


def read_tensors(read, kind):
    """{name: tensor} of the weights or constants. read: a function that gives the bytes of an entry by the end of its path, None where there is none.

    RuntimeError for pickles, and where the bytes are not as many as the sizes say. Tensors of one entry share memory.
    """
    config = read(f"/data/{kind}/model_{kind}_config.json")
    if config is None:
        return {}
    found, storages = {}, {}
    for name, entry in json.loads(config)["config"].items():
        if entry.get("use_pickle"):
            raise RuntimeError(f"export.load: '{name}' is stored as a pickle, which is not read.")
        meta, path = entry["tensor_meta"], entry["path_name"]
        dtype = _DTYPE_OF.get(meta["dtype"])
        if dtype is None or meta["layout"] != 7:
            raise RuntimeError(f"export.load: '{name}' is no dense tensor of a known dtype.")
        if path not in storages:
            data = read(f"/data/{kind}/{path}")
            if data is None:
                raise RuntimeError(f"export.load: the entry {path!r} of '{name}' is missing.")
            storages[path] = cresset.frombuffer(bytearray(data), dtype=cresset.uint8) if data else cresset.empty(0, dtype=cresset.uint8)
        sizes, strides = [_number(n) for n in meta["sizes"]], [_number(n) for n in meta["strides"]]
        whole = storages[path].view(dtype)
        tensor = whole.as_strided(sizes, strides, _number(meta["storage_offset"]))
        found[name] = cresset.nn.Parameter(tensor, meta["requires_grad"]) if entry.get("is_param") else tensor.requires_grad_(meta["requires_grad"])
    return found
