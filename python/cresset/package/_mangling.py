"""Names of modules from packages: `<torch_package_N>.` in front, N counting the importers of the process."""

import itertools
import re

__all__ = ["PackageMangler", "demangle", "get_mangle_prefix", "is_mangled"]

_PREFIX = re.compile(r"<torch_package_\d+>")
_count = itertools.count()


class PackageMangler:
    """The names of one importer."""

    def __init__(self):
        self._parent = f"<torch_package_{next(_count)}>"

    def mangle(self, name):
        assert name, "mangle: a name was required; an empty one was given."
        return f"{self._parent}.{name}"

    def demangle(self, mangled):
        """The name without this importer's prefix; another importer's stays."""
        prefix = self._parent + "."
        return mangled[len(prefix) :] if mangled.startswith(prefix) else mangled

    def parent_name(self):
        return self._parent


def is_mangled(name):
    return bool(_PREFIX.match(name))


def demangle(name):
    """The name without the prefix of any importer."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name):
    return name.partition(".")[0] if is_mangled(name) else name
