"""Names of modules: packages that have a function and a submodule of one name (the attribute is the function), and names under the alias."""

import sys
import types

__all__ = ["own_module", "prefer_functions"]


def own_module(name):
    """The name of a module or a thing in one that begins with "cresset", also where as_torch has it begin with "torch"."""
    if isinstance(name, str) and name.partition(".")[0] == "torch" and sys.modules.get("torch") is sys.modules["cresset"]:
        return "cresset" + name[len("torch") :]
    return name


def prefer_functions(package, *names):
    """Importing `package.name` puts the function of that name into the package, not the module."""

    class Package(types.ModuleType):
        def __setattr__(self, name, value):
            super().__setattr__(name, getattr(value, name) if name in names and isinstance(value, types.ModuleType) else value)

    sys.modules[package].__class__ = Package
