"""A device kind whose hooks, memory and kernels are Python. Run by test_python_backend.py as a program of its own: a process has one."""

import numpy as np

import cresset
from cresset.utils.backend_registration import _setup_privateuseone_for_python_backend

asked = []


class Hooks(cresset._C._acc.PrivateUse1Hooks):
    def is_available(self):
        asked.append("available")
        return True


def raises(error, words, function):
    try:
        function()
    except error as e:
        assert words in str(e), str(e)
    else:
        raise AssertionError(f"{words}: nothing was raised")


raises(TypeError, "a torch._C._acc.DeviceGuard was required; a int was given", lambda: cresset._C._acc.register_python_privateuseone_device_guard(3))
_setup_privateuseone_for_python_backend("slate", hook=Hooks())
raises(RuntimeError, "has already been set! Current backend: slate", lambda: _setup_privateuseone_for_python_backend("other"))


class Slate(cresset.Tensor):
    @staticmethod
    def __new__(cls, array):
        tensor = cresset._C._acc.create_empty_tensor(array.shape, cresset.float32)
        tensor.__class__ = Slate
        tensor.array = array
        return tensor

    def __init__(self, array):
        pass


def kernel(name):
    def register(function):
        cresset.library.impl(f"aten::{name}", "privateuseone")(function)
        return function

    return register


kernel("add.Tensor")(lambda a, b, alpha=1: Slate(a.array + alpha * b.array))
kernel("mul.Tensor")(lambda a, b: Slate(a.array * (b.array if isinstance(b, Slate) else float(b))))
kernel("sum")(lambda a, dtype=None: Slate(a.array.sum()))
kernel("detach")(lambda a: Slate(a.array))
kernel("expand")(lambda a, size, implicit=False: Slate(np.broadcast_to(a.array, size)))
kernel("view")(lambda a, size: Slate(a.array.reshape(size)))
kernel("as_strided")(lambda a, size, stride, offset=None: Slate(np.lib.stride_tricks.as_strided(a.array, size, [4 * s for s in stride])))


@kernel("ones_like")
def ones_like(a, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return Slate(np.ones_like(a.array))


@kernel("empty.memory_format")
def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return Slate(np.empty(size, np.float32))


@kernel("empty_strided")
def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return Slate(np.empty(size, np.float32))


@kernel("_copy_from")
def copy_from(a, b, non_blocking=False):
    if isinstance(a, Slate):
        b.numpy()[...] = a.array
    else:
        b.array = a.numpy().copy()
    return b


assert cresset.accelerator.is_available() and asked and cresset.accelerator.current_accelerator() == cresset.device("slate")
assert cresset.accelerator.device_count() == 1 and cresset.slate.current_device() == 0 and cresset.slate.is_available()
raises(RuntimeError, "slate: invalid device ordinal 3; a kind that is written in Python has one device.", lambda: cresset.accelerator.set_device_index("slate:3"))
x, y = cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([[10.0, 20.0], [30.0, 40.0]])
a, b = x.to("slate"), y.slate()
assert type(a) is Slate and a.is_slate and a.device == cresset.device("slate:0") and a.shape == (2, 2) and a.stride() == (2, 1)
assert (a + b).array.tolist() == [[11, 22], [33, 44]] and (a * b).cpu().tolist() == [[10, 40], [90, 160]]
a.requires_grad_()
(a * b).sum().backward()
assert a.grad.array.tolist() == [[10, 20], [30, 40]]
raises(RuntimeError, "negative dimension -1", lambda: cresset._C._acc.create_empty_tensor((-1,), cresset.float32))
empty_one = cresset._C._acc.create_empty_tensor((0, 3), cresset.int64)
assert empty_one.shape == (0, 3) and empty_one.dtype == cresset.int64 and empty_one.untyped_storage().nbytes() == 0
raises(NotImplementedError, "aten::exp", lambda: a.exp())
print("all of it")
