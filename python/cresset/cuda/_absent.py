"""What the modules of this package say where a device is needed: there is none."""

__all__ = ["refuse", "refusal", "absent_class", "absent_management", "no_storage"]

MESSAGE = "Torch not compiled with CUDA enabled"


def refuse(*args, **kwargs):
    """Raises AssertionError: Torch not compiled with CUDA enabled."""
    raise AssertionError(MESSAGE)


def refusal(name):
    """A function of this name that raises as `refuse`."""

    def function(*args, **kwargs):
        raise AssertionError(MESSAGE)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises AssertionError: {name} needs a CUDA device, and none is built in."
    return function


def absent_class(name, module, bases=(object,), error=RuntimeError("Tried to instantiate dummy base class {}")):
    """A class for isinstance() that cannot be made: `error`, in PyTorch's words, with the class's name."""

    def new(cls, *args, **kwargs):
        raise type(error)(str(error).format(cls.__name__))

    return type(name, bases, {"__new__": new, "__module__": module, "__doc__": f"A {name} of CUDA devices: RuntimeError, since none is built in."})


def no_storage(way):
    """A way to make storages in memory of the CPU that those of CUDA devices do not have: RuntimeError, in PyTorch's words."""

    def function(*args, **kwargs):
        raise RuntimeError(f"{way}: Not available for CUDA storage")

    function.__name__ = function.__qualname__ = way
    return function


def absent_management(name):
    """A question that NVIDIA's management library answers: ModuleNotFoundError, in PyTorch's words."""

    def function(device=None):
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises ModuleNotFoundError: no device answers it."
    return function
