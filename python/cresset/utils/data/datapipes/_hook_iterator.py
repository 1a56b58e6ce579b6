"""How far a stream is, under the name that PyTorch gives it."""

from .datapipe import _SnapshotState

__all__ = ["_SnapshotState"]
