"""What functions of this package tell a logger: that they were called, and what went wrong. Nothing is shown unless a program asks."""

import functools
import logging
import time

__all__ = []

_c10d_logger = logging.getLogger("c10d-NullHandler-default")
_c10d_logger.propagate = False
if not _c10d_logger.handlers:
    _c10d_logger.addHandler(logging.NullHandler())


def _get_msg_dict(func_name, *args, **kwargs):
    """Who calls what, as {name: text}."""
    from . import _groups

    if not _groups.is_initialized():
        return {"func_name": func_name}
    group = kwargs.get("group") or kwargs.get("process_group")
    name = _groups._get_process_group_name(_groups._group_or_default(group))
    return {
        "func_name": func_name, "pg_name": name, "backend": str(_groups.get_backend(group)), "world_size": str(_groups.get_world_size()),
        "group_size": str(_groups.get_world_size(group)), "global_rank": str(_groups.get_rank()), "local_rank": str(_groups.get_rank(group)),
    }  # fmt: skip


def _exception_logger(func):
    """The function, which tells the logger of an error that leaves it."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        try:
            return func(*args, **kwargs)
        except Exception as error:
            facts = _get_msg_dict(func.__name__, *args, **kwargs)
            facts["error"] = f"{error}"
            _c10d_logger.debug(facts)
            raise

    return wrapper


def _time_logger(func):
    """The function, which tells the logger how long it took."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        begin = time.monotonic_ns()
        value = func(*args, **kwargs)
        facts = _get_msg_dict(func.__name__, *args, **kwargs)
        facts["time_spent"] = f"{time.monotonic_ns() - begin}ns"
        _c10d_logger.debug(facts)
        return value

    return wrapper
