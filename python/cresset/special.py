"""Special functions. The operators whose names begin with `special_`, without the prefix."""

from . import _C

_PREFIX = "special_"


def _fill():
    # Aliases of operators with other names ("special_expit" of sigmoid) stand among the functions.
    for place in (_C._VariableFunctions, _C._special):
        for name, function in vars(place).items():
            if name.startswith(_PREFIX) and not name.endswith("_"):
                globals()[name.removeprefix(_PREFIX)] = function


_fill()
__all__ = sorted(name for name in globals() if name[0] != "_")  # noqa: PLE0605
