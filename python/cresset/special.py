"""Special functions. The operators whose names begin with `special_`, without the prefix."""

from . import _C

_PREFIX = "special_"


def _fill():
    for name, function in vars(_C._special).items():
        if not name.startswith("__"):
            globals()[name.removeprefix(_PREFIX)] = function


_fill()
