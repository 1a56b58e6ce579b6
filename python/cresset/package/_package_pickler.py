"""Pickles in packages: their globals are named by an importer, and found by one."""

import pickle

from cresset.serialization._names import _public_name_of, own_name

from .importer import ObjMismatchError, ObjNotFoundError

__all__ = ["PackagePickler", "PackageUnpickler"]


class PackagePickler(pickle._Pickler):
    """Names globals by `importer`; `globals` are those that were written: {(module, name): True}."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, importer, file, protocol):
        super().__init__(file, protocol)
        self._importer, self.globals = importer, {}

    def save_global(self, obj, name=None):
        try:
            module, name = self._importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from None
        module, name = _public_name_of(obj, module, name)
        self.globals[module, name] = True
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        elif "." in name:  # earlier protocols name only what lies directly in a module
            parent, _, last = name.rpartition(".")
            owner = self._importer.import_module(own_name(module, parent)[0])
            for part in parent.split("."):
                owner = getattr(owner, part)
            self.save_reduce(getattr, (owner, last))
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[type(len)] = dispatch[type(lambda: 0)] = save_global

    def save_type(self, obj):
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    dispatch[type] = save_type


class PackageUnpickler(pickle._Unpickler):
    """Finds globals by `importer`."""

    def __init__(self, importer, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._importer = importer

    def find_class(self, module, name):
        found = self._importer.import_module(module)
        try:
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except AttributeError:
            moved, name = own_name(module, name)
            found = self._importer.import_module(moved)
            for part in name.split("."):
                found = getattr(found, part)
            return found
