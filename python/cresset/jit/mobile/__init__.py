"""cresset.jit.mobile: models for phones. Files that PyTorch's `_save_for_lite_interpreter` wrote are loaded and run here; what is written here has
the bytecode beside the code that runs elsewhere, so that PyTorch's runtime for phones executes it."""

import os as _os

import cresset as _cresset

__all__ = ["LiteScriptModule", "validate_map_location"]


class LiteScriptModule:
    """A model from a file for phones: it runs its methods, and has no parameters to look at."""

    def __init__(self, cpp_module, operators=()):
        self._c, self._operators = cpp_module, frozenset(operators)

    def __call__(self, *input):
        return self.forward(*input)

    def find_method(self, method_name):
        """Is there a method of that name?"""
        return self._c._has_method(method_name)

    def forward(self, *input):
        """The method of that name."""
        return self.run_method("forward", *input)

    def run_method(self, method_name, *input):
        """Call a method by name. RuntimeError when there is none."""
        if not self._c._has_method(method_name):
            raise RuntimeError(f"Method '{method_name}' is not defined.")
        return self._c._get_method(method_name)(*input)


class OperatorInfo:
    """What a file says of an operator: with how many arguments it is called, or None when any number is possible."""

    def __init__(self, num_schema_args):
        self.num_schema_args = num_schema_args

    def __repr__(self):
        return f"OperatorInfo(num_schema_args={self.num_schema_args})"


def validate_map_location(map_location=None):
    """A device from a text or a device. ValueError for other types."""
    if isinstance(map_location, str):
        map_location = _cresset.device(map_location)
    elif not (map_location is None or isinstance(map_location, _cresset.device)):
        raise ValueError(f"map_location should be either None, string or torch.device, but got type: {type(map_location)}")
    return map_location


def _contents(f):
    """The bytes of a path or a binary file."""
    if not isinstance(f, (str, _os.PathLike)):
        return f.read()
    path = _os.fspath(f)
    if not _os.path.exists(path):
        raise ValueError(f"The provided filename {path} does not exist")
    if _os.path.isdir(path):
        raise ValueError(f"The provided filename {path} is a directory")
    with open(path, "rb") as file:
        return file.read()


def _read_bytecode(data):
    """What bytecode.pkl of a file holds: its version, then an entry for each method."""
    import io
    import zipfile

    from ._pickled import read_plain

    if not data.startswith(b"PK"):
        raise RuntimeError("_load_for_lite_interpreter: Unrecognized data format: a zip archive with bytecode was required.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.endswith("/bytecode.pkl") and name.count("/") == 1]
        if not names:
            raise RuntimeError(
                "_load_for_lite_interpreter: a file with bytecode was required; it has no bytecode.pkl (file not found). Write it with "
                "_save_for_lite_interpreter, or read it with jit.load."
            )
        return read_plain(archive.read(names[0]))


def _parts(entry):
    return dict(entry[1])


def _operators_of(entries):
    """{name.overload: number of arguments or None} of all methods."""
    found = {}
    for entry in entries:
        for name, overload, *count in _parts(entry)["operators"]:
            found[f"{name}.{overload}" if overload else name] = count[0] if count and count[0] >= 0 else None
    return found


def _load_for_lite_interpreter(f, map_location=None):
    """Read a model for phones from a path or binary file: a LiteScriptModule, whose code runs as that of any script."""
    import io

    from ..serialization import load_object

    device, data = validate_map_location(map_location), _contents(f)
    entries = _read_bytecode(data)[1:]
    return LiteScriptModule(load_object(io.BytesIO(data), device), _operators_of(entries))


def _export_operator_list(module):
    """The names of the operators that a LiteScriptModule calls, as a set."""
    return set(module._operators)


def _get_model_bytecode_version(f_input):
    """The version of a file's bytecode."""
    return _read_bytecode(_contents(f_input))[0]


def _get_model_ops_and_info(f_input):
    """{name: OperatorInfo} of the operators that a file calls."""
    return {name: OperatorInfo(count) for name, count in _operators_of(_read_bytecode(_contents(f_input))[1:]).items()}


def _get_mobile_model_contained_types(f_input):
    """The types that a file's instructions name, as a set of texts."""
    return {text for entry in _read_bytecode(_contents(f_input))[1:] for text in _parts(entry)["types"]}
