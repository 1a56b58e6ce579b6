"""The names that a call's result is assigned to: `batch, channel = dims()`."""

import dis
import functools

__all__ = ["assigned_names"]

_STORES = frozenset({"STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF"})
_SKIPPED = frozenset({"CACHE", "COPY", "EXTENDED_ARG", "NOP", "PRECALL"})


@functools.lru_cache(1024)
def _behind(code, at):
    """The instructions behind the one at an offset, up to the first that is no assignment of several."""
    return [i for i in dis.get_instructions(code) if i.offset > at and i.opname not in _SKIPPED]


def assigned_names(frame):
    """(how many values the call that runs in a frame is assigned to, their names as far as they are variables), or (None, []) where it is not assigned."""
    behind = _behind(frame.f_code, frame.f_lasti)
    if not behind:
        return None, []
    first = behind[0]
    if first.opname in _STORES:
        return 1, [first.argval]
    if first.opname != "UNPACK_SEQUENCE":
        return None, []
    names = []
    for instruction in behind[1 : 1 + first.arg]:
        if instruction.opname not in _STORES:
            break
        names.append(instruction.argval)
    return first.arg, names
