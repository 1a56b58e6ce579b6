"""Which handler writes errors down."""

from .error_handler import ErrorHandler

__all__ = ["get_error_handler"]


def get_error_handler():
    """A handler that writes JSON files."""
    return ErrorHandler()
