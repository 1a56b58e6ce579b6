"""Messages of lowering: six levels, loggers for contexts.

    with cresset.lowering.logging.graphs():
        cresset.lowering.lower(module)      # prints the graph behind every pass
"""

from __future__ import annotations

import contextlib

from cresset import _C

LEVELS = ("internal_error", "error", "warning", "info", "debug", "graph")


def current():
    """The logger of this thread's innermost context: level(), set_level(), set_prefix(), set_colour(), set_sink(f), log(level, text)."""
    return _C._lowering_logger()


def set_level(level: str) -> None:
    current().set_level(level)


def set_prefix(prefix: str) -> None:
    current().set_prefix(prefix)


def set_colour(on: bool) -> None:
    current().set_colour(on)


@contextlib.contextmanager
def level(name: str):
    """Another level of the current logger for a while."""
    logger = current()
    old = logger.level()
    logger.set_level(name)
    try:
        yield logger
    finally:
        logger.set_level(old)


def internal_errors():
    return level("internal_error")


def errors():
    return level("error")


def warnings():
    return level("warning")


def info():
    return level("info")


def debug():
    return level("debug")


def graphs():
    return level("graph")


@contextlib.contextmanager
def context(prefix: str = "[Cresset] - ", level: str = "warning", sink=None):
    """A logger of its own for what this thread lowers inside; `sink(level, line)` receives the lines instead of standard error."""
    logger = _C._lowering_new_logger(prefix, level)
    if sink is not None:
        logger.set_sink(sink)
    _C._lowering_push_logger(logger)
    try:
        yield logger
    finally:
        _C._lowering_pop_logger()


@contextlib.contextmanager
def capture(level: str = "graph"):
    """A context whose lines come as a list of (level, line)."""
    lines: list[tuple[str, str]] = []
    with context(level=level, sink=lambda name, line: lines.append((name, line))):
        yield lines
