"""What is told of timers that expired."""

from cresset._logging import logger_of

__all__ = ["log_debug_info_for_expired_timers"]

_log = logger_of(__name__)


def log_debug_info_for_expired_timers(run_id, expired_timers):
    """Log which scopes of which processes took too long."""
    if expired_timers:
        _log.info("Timers expired for run:[%s] [%s].", run_id, expired_timers)
