"""The level of loggers where the environment says none."""

__all__ = ["get_log_level"]


def get_log_level():
    """WARNING."""
    return "WARNING"
