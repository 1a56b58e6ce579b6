"""Where events go: a logging handler for each destination. A program adds its own to the table."""

import logging

__all__ = ["get_logging_handler"]

_log_handlers = {"console": logging.StreamHandler(), "dynamic_rendezvous": logging.NullHandler(), "null": logging.NullHandler()}


def get_logging_handler(destination="null"):
    """The handler of a destination."""
    return _log_handlers[destination]
