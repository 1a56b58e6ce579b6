"""`cresset.classes`: C++ classes that extensions registered, by namespace and name."""

import types

from . import _C
from ._C import ScriptObject

__all__ = ["classes", "ScriptObject"]

_PREFIX = "__torch__.torch.classes."
_class_name = ScriptObject._type


def _type(self):
    """The type of scripts that the object's class is."""
    return _C._jit_custom_class_type(_class_name(self))


ScriptObject._type = _type


class _CustomClass:
    """A registered class: calling it makes an object; its static methods are attributes."""

    def __init__(self, qualified_name):
        self._qualified_name = qualified_name
        self.__name__ = qualified_name.rpartition(".")[2]
        self.__doc__ = _C._custom_class_doc(qualified_name)

    def __call__(self, /, *args, **kwargs):
        return _C._make_custom_object(self._qualified_name, args, kwargs)

    def __getattr__(self, name):
        method = None if name.startswith("__") else _C._custom_static_method(self._qualified_name, name)
        if method is None:
            raise AttributeError(f"class {self.__name__!r} has no static method {name!r}")
        return method

    def __repr__(self):
        return f"<class {self._qualified_name!r}>"


class _ClassNamespace(types.ModuleType):
    """The classes of one namespace."""

    def __init__(self, name):
        super().__init__(f"cresset.classes.{name}")
        self.name = name

    def __getattr__(self, name):
        qualified_name = f"{_PREFIX}{self.name}.{name}"
        if qualified_name not in _C._custom_class_names():
            if name.startswith("__"):
                raise AttributeError(name)
            raise RuntimeError(
                f"Tried to instantiate class '{self.name}.{name}', but it does not exist! Ensure that it is registered via torch::class_ "
                f"(known in this namespace: {', '.join(self.__dir__()) or 'none'}; classes.load_library loads more)."
            )
        found = self.__dict__[name] = _CustomClass(qualified_name)
        return found

    def __dir__(self):
        prefix = f"{_PREFIX}{self.name}."
        return sorted(n[len(prefix) :] for n in _C._custom_class_names() if n.startswith(prefix))


class _Classes(types.ModuleType):
    """Namespaces of classes, and libraries that register more."""

    __file__ = "_classes.py"

    def __init__(self):
        super().__init__("cresset.classes")

    def __getattr__(self, name):
        if name.startswith("__") and name != "__backends__":
            raise AttributeError(name)
        namespace = _ClassNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def __dir__(self):
        return sorted({"load_library", "loaded_libraries", *(n[len(_PREFIX) :].partition(".")[0] for n in _C._custom_class_names())})

    @property
    def loaded_libraries(self):
        from ._ops import ops

        return ops.loaded_libraries

    def load_library(self, path):
        """Load a shared library, which registers its classes while it is loaded."""
        from ._ops import ops

        ops.load_library(path)


classes = _Classes()
