"""Functions of a kind of device that is not built in: PyTorch's answers and refusals on a machine without one."""

import copy

__all__ = ["answer", "refusal", "seed_taker", "DeviceContext"]


def answer(name, value=None):
    """A function that gives a new copy of `value` whatever it is asked."""

    def function(*args, **kwargs):
        return copy.copy(value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{value!r}: there is no such device."
    return function


def seed_taker(name):
    """A function of a seed that reaches nobody; ValueError or TypeError for what is no number."""

    def function(seed):
        int(seed)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "There is no such device to be seeded."
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
