"""What is told of timers that expired."""

import logging

__all__ = ["log_debug_info_for_expired_timers"]

_log = logging.getLogger(__name__)


def log_debug_info_for_expired_timers(run_id, expired_timers):
    """Log which scopes of which processes took too long."""
    if expired_timers:
        _log.info("Timers expired for run:[%s] [%s].", run_id, expired_timers)
