"""Which modules a function enters."""

import sys

__all__ = ["trace_dependencies"]


def trace_dependencies(callable, inputs):
    """Names of the modules whose functions run while `callable(*arguments)` does, for each tuple of arguments in `inputs`."""
    used = set()

    def record(frame, event, _):
        if event == "call":
            name = frame.f_globals.get("__name__")
            if name:
                used.add(name)

    before = sys.getprofile()
    try:
        sys.setprofile(record)
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(before)
    return list(used)
