"""Several modules at once, each in a thread of its own."""

import threading

import cresset
from cresset._utils import ExceptionWrapper

__all__ = ["parallel_apply", "get_a_var"]


def get_a_var(obj):
    """The first tensor in nested lists and dictionaries, or None."""
    if isinstance(obj, cresset.Tensor):
        return obj
    for value in obj.values() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ():
        if (found := get_a_var(value)) is not None:
            return found
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """`module(*input, **kwargs)` of each module, in threads with this one's settings of gradients and autocast; the list of results.

    An input that is no tuple is the one argument. The first error is raised, with the text of its place.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs_tup = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    if len(modules) != len(kwargs_tup):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of kwargs {len(kwargs_tup)}")
    if devices is not None and len(modules) != len(devices):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}")
    gradients = cresset.is_grad_enabled()
    casting, dtype = cresset.is_autocast_enabled("cpu"), cresset.get_autocast_dtype("cpu")
    results = [None] * len(modules)

    def run(i):
        try:
            with cresset.set_grad_enabled(gradients), cresset.autocast("cpu", enabled=casting, dtype=dtype):
                given = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
                results[i] = modules[i](*given, **kwargs_tup[i])
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device {None if devices is None else devices[i]}")

    if len(modules) == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results
