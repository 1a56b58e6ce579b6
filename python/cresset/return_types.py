"""Named tuples of operators with several named results. A type appears here after the first call of its operator."""

from . import _C


def __getattr__(name):
    try:
        return _C._return_types[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__():
    return sorted(_C._return_types)
