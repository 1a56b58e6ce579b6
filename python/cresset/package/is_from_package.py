"""Does something come out of a package?"""

import types

from ._mangling import is_mangled

__all__ = ["is_from_package"]


def is_from_package(obj):
    """True when `obj` is a module that a PackageImporter loaded, or an object of a class that such a module defines."""
    if isinstance(obj, types.ModuleType):
        return is_mangled(obj.__name__)
    return is_mangled(type(obj).__module__)
