"""Names of the script compiler that libraries import from here."""

from cresset import _C
from cresset.jit import Final, _overload, _overload_method, export, fork, ignore, is_scripting, unused, wait  # noqa: F401
from cresset.jit._classes import qualified_name as _qualified_name  # noqa: F401

Future = _C.Future


class _BroadcastingList:
    """In annotations of scripts, `BroadcastingListN[int]` is a list of N numbers for which a call may give one."""

    def __init__(self, size):
        self.size = size

    def __getitem__(self, element):
        return type(f"BroadcastingList{self.size}", (), {"_broadcasts": (self.size, float if element is float else int)})


BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4 = map(_BroadcastingList, range(1, 5))
