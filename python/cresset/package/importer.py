"""Where modules and the names of objects come from: this Python, a package, or several in order."""

import importlib
import pickle
import sys
from abc import ABC, abstractmethod

from cresset._same_names import own_module
from cresset.serialization._names import own_name

from ._mangling import demangle, get_mangle_prefix, is_mangled

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "import_own", "sys_importer"]


class ObjNotFoundError(Exception):
    """An object cannot be found under its name."""


class ObjMismatchError(Exception):
    """Another object lies under an object's name."""


def import_own(name):
    """A module of this Python; modules of torch are Cresset's."""
    try:
        return sys.modules[name]
    except KeyError:
        return importlib.import_module(own_name(name, "")[0])


def module_of_builtin(obj, name, module):
    """The module of a function that says only that it is the package's."""
    import cresset

    module = own_module(module)
    return "cresset._C._nn" if module == "cresset" and not hasattr(cresset, name) and getattr(cresset._C._nn, name, None) is obj else module


class Importer(ABC):
    """Finds modules by name, and the names of objects."""

    @abstractmethod
    def import_module(self, module_name):
        """The module; ModuleNotFoundError without one."""

    def get_name(self, obj, name=None):
        """(module, name) under which this importer finds `obj`. ObjNotFoundError where it finds nothing, ObjMismatchError where it finds another."""
        if name is None:
            name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
        if name is None:
            raise ObjNotFoundError(f"{obj!r} has no name")
        full = self.whichmodule(obj, name)
        module_name = demangle(full)
        try:
            found = self.import_module(module_name)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        there = getattr(found, "__module__", None) or ""

        def origin(module, what):
            if is_mangled(module):
                return f"{what} is from the package that {get_mangle_prefix(module)} names"
            return f"{what} is from the current Python environment"

        raise ObjMismatchError(
            f"\n\nThe object provided for {module_name}.{name} is not the one that was found there:\n"
            f"{origin(full, 'the object provided')}; {origin(there, 'the object found')}. Did you mean to give the importer of its package first?"
        )

    def whichmodule(self, obj, name):
        """The name of the module in which `obj` lies; "__main__" when it is not found."""
        return module_of_builtin(obj, name, pickle.whichmodule(obj, name))


class _SysImporter(Importer):
    """The modules of this Python."""

    def import_module(self, module_name):
        return import_own(module_name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Asks several importers, the first one first."""

    def __init__(self, *args):
        self._importers = list(args)

    def _is_torchpackage_dummy(self, module):
        """Is it a module that a package made only to hold others?"""
        return getattr(module, "__torch_package__", False) and (not hasattr(module, "__path__") or getattr(module, "__file__", None) is None)

    def get_name(self, obj, name=None):
        failed = None
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except ObjNotFoundError as error:
                failed = error
        raise failed or ObjNotFoundError("no importers were given")

    def import_module(self, module_name):
        failed = None
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(f"{importer} is not a Importer. All importers in OrderedImporter must inherit from Importer.")
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as error:
                failed = error
                continue
            if not self._is_torchpackage_dummy(module):
                return module
        raise failed or ModuleNotFoundError(module_name)

    def whichmodule(self, obj, name):
        for importer in self._importers:
            found = importer.whichmodule(obj, name)
            if found != "__main__":
                return found
        return "__main__"
