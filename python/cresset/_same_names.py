"""Packages that have a function and a submodule of one name: the attribute is the function."""

import sys
import types

__all__ = ["prefer_functions"]


def prefer_functions(package, *names):
    """Importing `package.name` puts the function of that name into the package, not the module."""

    class Package(types.ModuleType):
        def __setattr__(self, name, value):
            super().__setattr__(name, getattr(value, name) if name in names and isinstance(value, types.ModuleType) else value)

    sys.modules[package].__class__ = Package
