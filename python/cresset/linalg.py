"""Linear algebra. The operators whose names begin with `linalg_`, without the prefix."""

from . import _C

_PREFIX = "linalg_"


def _fill():
    for name, function in vars(_C._linalg).items():
        if not name.startswith("__"):
            globals()[name.removeprefix(_PREFIX)] = function


_fill()

LinAlgError = _C._LinAlgError
