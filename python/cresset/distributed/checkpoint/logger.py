"""The logger of checkpoints; it is quiet until a program gives it a level and a handler."""

import logging

__all__ = []

_dcp_logger = logging.getLogger("c10d-NullHandler-dcp_logger")
_dcp_logger.addHandler(logging.NullHandler())
