"""Loggers by the name of the module that asks."""

import inspect
import logging
import os
import warnings

from .log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name=None):
    """The logger of that name, or of the calling module; $LOGLEVEL is its level."""
    made = logging.getLogger(name or _derive_module_name(depth=2))
    made.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return made


def _derive_module_name(depth=1):
    """The name of the module `depth` calls up, or of its file."""
    try:
        frame = inspect.stack()[depth].frame
        module = inspect.getmodule(frame)
        return module.__name__ if module else os.path.splitext(os.path.basename(frame.f_code.co_filename))[0]
    except Exception as error:
        warnings.warn(f"Error deriving logger module name, using <None>. Exception: {error}", RuntimeWarning, stacklevel=2)
        return None
