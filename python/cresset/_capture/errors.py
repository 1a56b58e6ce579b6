"""Why a call stays as it is."""

import os

__all__ = ["Unsupported"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Unsupported(Exception):
    """Python code that no graph stands for. `breaks`: PyTorch's compiler would stop here as well; else it is a limit of this one."""

    def __init__(self, reason, *, breaks=False):
        super().__init__(reason)
        self.reason, self.breaks = reason, breaks
        self.place = self.inner = None

    def at(self, filename, line, function):
        """Notes the innermost place, and the innermost outside of this package."""
        inside = filename.startswith(_PACKAGE)
        if inside and self.inner is None and self.place is None:
            self.inner = f"{os.path.relpath(filename, _PACKAGE)}:{line} in {function}"
        if not inside and self.place is None:
            self.place = f"{filename}:{line} in {function}"
        return self

    def __str__(self):
        places = [p for p in (self.place, self.inner) if p]
        return f"{self.reason} ({', through '.join(places)})" if places else self.reason
