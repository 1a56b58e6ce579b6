"""Signal processing. `windows` has the symmetric and periodic windows."""

from . import windows

__all__ = ["windows"]
