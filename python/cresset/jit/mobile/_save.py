"""The archive of a script module with bytecode."""

import io
import zipfile

from ._bytecode import VERSION, method_entry
from ._pickled import pickled, read_plain

__all__ = ["with_bytecode"]


def _slots(value, found):
    """{class: names of its attributes} of all objects that a file's data has, in the order in which they are saved."""
    if isinstance(value, dict):
        for item in value.values():
            _slots(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _slots(item, found)
    elif hasattr(value, "state"):
        if isinstance(value.state, dict):
            found[value.name] = list(value.state)
        for item in (value.args, value.state):
            _slots(item, found)
    return found


def _entries(c, slots):
    """Of the methods of the module itself, of how the modules in it are put together again, and, when an interface is called, of all
    methods of these."""
    seen, interfaces = {}, False

    def add(module, names):
        nonlocal interfaces
        for name in names:
            method = module._get_method(name)
            if method.qualified_name not in seen:
                seen[method.qualified_name], calls = method_entry(method, slots)
                interfaces |= calls

    inner = [module for _, module in c.named_modules() if module._id() != c._id()]
    add(c, c._method_names())
    for module in inner:
        add(module, ["__setstate__"] if module._has_method("__setstate__") else ())
    if interfaces:
        for module in inner:
            add(module, module._method_names())
    return seen.values()


def with_bytecode(data, c):
    """The bytes of a module's archive, and the bytecode of its object."""
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as archive:
        names = archive.namelist()
        root = names[0].partition("/")[0]
        slots = _slots(read_plain(archive.read(f"{root}/data.pkl")), {})
        for _, module in c.named_modules():  # those with a __getstate__ of their own
            slots.setdefault(module._type().annotation_str, [name for name, *_ in module._attributes()])
        constants = {archive.read(name): name.rpartition("/")[2] for name in names if name.startswith(f"{root}/constants/")}

        def keep(tensor):
            data = bytes(tensor.untyped_storage())
            if data not in constants:
                constants[data] = f"{len(constants)}.storage"
                archive.writestr(f"{root}/constants/{constants[data]}", data)
            return constants[data]

        entries = (VERSION, *_entries(c, slots))
        archive.writestr(f"{root}/bytecode.pkl", pickled(entries, keep))
    return buffer.getvalue()
