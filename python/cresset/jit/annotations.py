"""Types of arguments that only scripts know."""

from .._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4"]
