"""Kernels that come and go: what is called is what is registered now, and the process needs no more memory for the thousandth."""

import contextlib
import ctypes
import gc
import threading

import pytest

import cresset
from cresset.library import Library


@contextlib.contextmanager
def block_of(ns, kind):
    library = Library(ns, kind)
    try:
        yield library
    finally:
        library._destroy()


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def allocated():
    """Bytes that the C library has handed out."""
    gc.collect()
    figures = ctypes.CDLL(None).mallinfo2
    figures.restype = Memory
    now = figures()
    return now.uordblks + now.hblkhd


def kernel():
    with block_of("removed", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        assert cresset.ops.removed.f(cresset.ones(1)).item() == 2


def several_kernels():
    with block_of("removed", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
        library.impl("f", lambda keys, x: x * 3, "CPU", with_keyset=True)
        assert cresset.ops.removed.f(cresset.ones(1)).item() == 3


def fallthrough():
    with block_of("removed", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", cresset.library.fallthrough_kernel, "Autograd")


def fallback():
    with block_of("_", "IMPL") as library:
        library.fallback(lambda op, *args, **kwargs: op(*args, **kwargs), "PrivateUse3")


@pytest.mark.parametrize("register", [kernel, several_kernels, fallthrough, fallback], ids=lambda f: f.__name__)
def test_memory(register):
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("the C library says nothing about its memory")
    for _ in range(100):
        register()
    before = allocated()
    for _ in range(1000):
        register()
    assert allocated() - before < 20_000


def test_the_kernel_that_is_registered_now():
    """Objects of removed kernels are taken over by the next ones of the same place, in whatever order they go."""
    define = Library("removed", "DEF")
    define.define("f(Tensor x) -> Tensor")
    blocks = {}
    x = cresset.zeros(1)
    f = cresset.ops.removed.f

    def add(value):
        blocks[value] = block = Library("removed", "IMPL")
        block.impl("f", lambda x: x + value, "CPU", allow_override=True)

    try:
        for a in range(1, 40, 3):
            add(a)
            add(a + 1)
            assert f(x).item() == a + 1
            blocks.pop(a)._destroy()
            assert f(x).item() == a + 1
            add(a + 2)
            assert f(x).item() == a + 2
            blocks.pop(a + 2)._destroy()
            assert f(x).item() == a + 1
            blocks.pop(a + 1)._destroy()
            with pytest.raises(NotImplementedError):
                f(x)
    finally:
        for block in blocks.values():
            block._destroy()
        define._destroy()


def test_keys_and_keysets_have_kernels_of_their_own():
    for role in range(6):
        with block_of("removed", "DEF") as library:
            library.define("f(Tensor x, Tensor? y=None) -> Tensor")
            if role % 2:
                library.impl("f", lambda keys, x, y=None: x + 10 * (keys is not None), "CPU", with_keyset=True)
            else:
                library.impl("f", lambda x, y: x + (5 if y is None else 7), "CPU")
            assert cresset.ops.removed.f(cresset.zeros(1)).item() == (10 if role % 2 else 5)


def test_calls_while_kernels_come_and_go():
    """Another thread's call finds a kernel of this operator, an older or a newer one, or that there is none."""
    define = Library("removed", "DEF")
    define.define("f(Tensor x) -> Tensor")
    define.define("g(Tensor x) -> Tensor")
    end, wrong = threading.Event(), []

    def call():
        x = cresset.zeros(1)
        while not end.is_set():
            try:
                got = cresset.ops.removed.f(x).item()
            except (NotImplementedError, RuntimeError):
                continue
            if got not in range(1, 100):
                wrong.append(got)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for k in range(400):
            with block_of("removed", "IMPL") as block:
                block.impl("f", lambda x, k=k: x + (1 + k % 99), "CPU")
                block.impl("g", lambda x: x - 1, "CPU")
    finally:
        end.set()
        for thread in threads:
            thread.join()
        define._destroy()
    assert not wrong
