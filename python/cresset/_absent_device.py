"""Functions of a kind of device that is not built in: PyTorch's answers and refusals on a machine without one."""

import copy

__all__ = ["answer", "refusal", "DeviceContext"]


def answer(name, value=None, takes=None):
    """A function that gives a new copy of `value` whatever it is asked. takes: what the first argument has to be convertible to."""

    def function(*args, **kwargs):
        if takes is not None:
            takes(*args[:1], *list(kwargs.values())[: 0 if args else 1])
        return copy.copy(value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{value!r}: there is no such device."
    return function


def refusal(name, error):
    """A function that raises `error`."""

    def function(*args, **kwargs):
        raise type(error)(str(error))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises {type(error).__name__}: there is no such device."
    return function


class DeviceContext:
    """`with device(index):` has nothing to change."""

    def __init__(self, device=None):
        self.idx, self.prev_idx = device, -1

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False
