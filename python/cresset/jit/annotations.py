"""Types of arguments that only scripts know."""

from typing import Any, Dict, List, Optional, Tuple  # noqa: F401  (programs import them from here)

from .._script_forms import BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4"]
