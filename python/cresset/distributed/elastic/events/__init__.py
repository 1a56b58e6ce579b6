"""Records of what happens to agents, workers and rendezvous, given to the logging handler of a destination; nowhere by default."""

import inspect
import logging
import os
import socket
import traceback

from .api import Event, EventSource, NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = ["Event", "EventSource", "NodeState", "RdzvEvent", "construct_and_record_rdzv_event", "get_logging_handler", "record", "record_rdzv_event"]

_loggers = {}


def _get_or_create_logger(destination="null"):
    """The logger that only has the destination's handler."""
    if destination not in _loggers:
        made = logging.getLogger(f"torchelastic-events-{destination}")
        made.setLevel(logging.INFO)
        made.propagate = False
        made.addHandler(get_logging_handler(destination))
        _loggers[destination] = made
    return _loggers[destination]


def record(event, destination="null"):
    """Give an event to its destination."""
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event):
    """Give an event of a rendezvous to its destination."""
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id, message, node_state, name="", hostname="", pid=None, master_endpoint="", local_id=None, rank=None
):
    """Record what happens in a rendezvous, unless nobody listens. The name is that of the calling function."""
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    if not name:
        caller = inspect.stack()[1]
        name = f"{os.path.splitext(os.path.basename(caller.filename))[0]}:{caller.function}"
    trace = traceback.format_exc() if node_state == NodeState.FAILED else ""
    record_rdzv_event(
        RdzvEvent(
            name=name, run_id=run_id, message=message, hostname=hostname or socket.getfqdn(), pid=os.getpid() if pid is None else pid,
            node_state=node_state, master_endpoint=master_endpoint, rank=rank, local_id=local_id, error_trace=trace,
        )
    )  # fmt: skip
