"""Prints what a pickle holds, without running anything that it names: `python -m cresset.utils.show_pickle FILE` or `FILE@MEMBER` of a zip archive.

MEMBER may have * and ?; each member that fits is printed.
"""

import fnmatch
import pickle
import pprint
import sys
import zipfile

__all__ = ["DumpUnpickler", "FakeObject", "main"]


class FakeObject:
    """Stands for an object of a class or for the result of a function that a pickle names; it shows the arguments, the state and the items."""

    _name = "object"

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        self.args, self.kwargs, self.state, self.items = args, kwargs, None, []
        return self

    def __init__(self, *args, **kwargs):
        """Everything is noted already."""

    def __setstate__(self, state):
        self.state = state

    def __setitem__(self, key, value):
        self.items.append((key, value))

    def append(self, value):
        self.items.append(value)

    def extend(self, values):
        self.items.extend(values)

    def __hash__(self):
        return id(self)

    def __repr__(self):
        given = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        extra = [f"state={self.state!r}"] if self.state is not None else []
        extra += [f"items={self.items!r}"] if self.items else []
        return f"{self._name}({', '.join(given)})" + (f"({', '.join(extra)})" if extra else "")


class _FakeClass(type):
    def __repr__(cls):
        return cls._name


def _fake(name):
    return _FakeClass(name.rpartition(".")[2], (FakeObject,), {"_name": name})


class DumpUnpickler(pickle.Unpickler):
    """An unpickler that makes FakeObjects of whatever is no plain value."""

    def find_class(self, module, name):
        """A class of FakeObjects; nothing is imported."""
        return _fake(f"{module}.{name}")

    def persistent_load(self, pid):
        """What lies outside of the pickle, such as the bytes of tensors."""
        return _fake("pers.obj")(pid)

    @classmethod
    def dump(cls, in_stream, out_stream):
        """Print the first pickle of a stream; its value with FakeObjects is returned."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream, sort_dicts=False)
        return value


def main(argv, output_stream=None):
    """Print the pickles that argv[1] names. ValueError for another number of arguments, FileNotFoundError for a member that is not there."""
    if len(argv) != 2:
        raise ValueError(f"show_pickle: one argument was required, FILE or FILE@MEMBER; {len(argv) - 1} were given.")
    path, at, pattern = argv[1].partition("@")
    out = output_stream or sys.stdout
    if not at:
        if zipfile.is_zipfile(path):
            raise ValueError(f"show_pickle: {path} is an archive; name a member as {path}@*/data.pkl.")
        with open(path, "rb") as f:
            DumpUnpickler.dump(f, out)
        return
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if fnmatch.fnmatch(name, pattern)]
        if not members:
            raise FileNotFoundError(f"show_pickle: {path} has no member {pattern}.")
        for name in members:
            with archive.open(name) as f:
                DumpUnpickler.dump(f, out)


if __name__ == "__main__":
    main(sys.argv)
