"""Names of globals in pickles. Files name PyTorch's modules, so both packages read them; docs/design/files.md says how names are mapped."""

import pickle
import sys

import cresset
from cresset._same_names import own_module

__all__ = ["own_name", "public_name", "pickler_class", "unpickler_class"]

_OWN, _PUBLIC = "cresset", "torch"

# Globals that PyTorch keeps in another module: (module, name) here -> there.
_MOVED = {
    ("cresset", "Generator"): ("torch._C", "Generator"),
    ("cresset.optim.adafactor", "Adafactor"): ("torch.optim", "Adafactor"), ("cresset.optim.muon", "Muon"): ("torch.optim", "Muon"),
    ("cresset.nn.modules.parallel", "DataParallel"): ("torch.nn.parallel.data_parallel", "DataParallel"),
    ("cresset._C", "_VariableFunctions"): ("torch._C", "_VariableFunctionsClass"),
}  # fmt: skip
_MOVED_BACK = {new: old for old, new in _MOVED.items()}


def public_name(module, name):
    """(module, name) of a global as files have it."""
    module = own_module(module)
    if (module, name) in _MOVED:
        return _MOVED[module, name]
    if module == _OWN or module.startswith(_OWN + "."):
        module = _PUBLIC + module[len(_OWN) :]
    return module, name


def _public_name_of(obj, module, name):
    """public_name of an object; what lies in a private module and is an attribute of the package is named so."""
    module = own_module(module)
    if module == _OWN and getattr(cresset, name, None) is not obj and getattr(cresset._C._nn, name, None) is obj:
        return _PUBLIC + "._C._nn", name
    if module.startswith(_OWN + "._") and module not in _SHARED and getattr(cresset, name, None) is obj:
        return _PUBLIC, name
    return public_name(module, name)


_SHARED = ("cresset._utils", "cresset._tensor", "cresset._C")  # private modules that PyTorch has, too


def own_name(module, name):
    """(module, name) of what a file's global is here."""
    if (module, name) in _MOVED_BACK:
        return _MOVED_BACK[module, name]
    if module == _PUBLIC or module.startswith(_PUBLIC + "."):
        module = _OWN + module[len(_PUBLIC) :]
    return module, name


def _is_alias():
    return sys.modules.get(_PUBLIC) is cresset


class _NamingPickler(pickle._Pickler):
    """pickle's pickler, which writes Cresset's globals under PyTorch's names."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        if "<locals>" in name:
            raise AttributeError(f"Can't pickle local object '{name}'")
        module = pickle.whichmodule(obj, name)
        public = _public_name_of(obj, module, name)
        if (module, name) == public:
            try:
                super().save_global(obj, name)
            except pickle.PicklingError as error:
                if "not found as" not in str(error):
                    raise
                raise pickle.PicklingError(f"Can't pickle {obj!r}: attribute lookup {name} on {module} failed") from None
            return
        if public[0] != _PUBLIC + "._C._nn":
            self._check_global(obj, module, name)
        module, name = public
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        elif self.proto >= 3 or (module + name).isascii() and "." not in name:
            self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")
        else:  # attributes of classes have no form in older pickles
            super().save_global(obj, name)
            return
        self.memoize(obj)

    @staticmethod
    def _check_global(obj, module, name):
        try:
            __import__(module)
            found = sys.modules[module]
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError):
            found = None
        if found is not obj:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: attribute lookup {name} on {module} failed")

    def save_type(self, obj):
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    dispatch[type] = save_type
    dispatch[type(own_name)] = save_global


def pickler_class(pickle_module):
    """The pickler of a module; of `pickle` itself one that writes PyTorch's names."""
    return _NamingPickler if pickle_module is pickle else pickle_module.Pickler


def find_class_in(find, module, name):
    """A global of a file by `find(module, name)`: Cresset's for PyTorch's names. Under the alias also what only `torch` has."""
    own = own_name(module, name)
    if own == (module, name):
        return find(module, name)
    try:
        return find(*own)
    except (ImportError, AttributeError):
        if not _is_alias():  # torch, if there is one, is PyTorch
            raise
        return find(module, name)


def unpickler_class(pickle_module):
    """The unpickler of a module, which finds Cresset's globals under PyTorch's names."""

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            return find_class_in(super().find_class, module, name)

    return Unpickler


_LAYOUTS = {}


def _get_layout(name):
    """The layout of a name ("torch.strided")."""
    if not _LAYOUTS:
        for value in vars(cresset._C).values():
            if isinstance(value, cresset.layout):
                _LAYOUTS["torch." + str(value).partition(".")[2]] = value
    return _LAYOUTS[name]


_get_layout.__module__ = __package__  # the name that files have
