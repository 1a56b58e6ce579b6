"""What passes over exported programs raise."""

__all__ = ["InternalError"]


class InternalError(Exception):
    """An operator that a pass needs is not there."""
