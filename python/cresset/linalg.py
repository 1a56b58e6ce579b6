"""Linear algebra. The operators whose names begin with `linalg_`, without the prefix."""

from . import _C

_PREFIX = "linalg_"


def _fill():
    # Aliases of operators with other names ("special_expit" of sigmoid) stand among the functions.
    for place in (_C._VariableFunctions, _C._linalg):
        for name, function in vars(place).items():
            if name.startswith(_PREFIX):
                globals()[name.removeprefix(_PREFIX)] = function


_fill()

LinAlgError = _C._LinAlgError
