"""The context of a fake implementation (`register_fake`)."""

import contextlib
import threading

__all__ = ["FakeContext", "MissingFake", "fake_impls", "get_ctx", "sizes_from", "sizes_given"]


class MissingFake(RuntimeError):
    """A custom operator has no fake implementation."""


_active = threading.local()
fake_impls = {}  # "ns::name.overload" → function; they run on fake tensors as they are, other Meta kernels on the meta tensors inside


class FakeContext:
    """Active while a fake implementation runs; `get_ctx()` gives it."""

    def __init__(self, qualname):
        self._qualname = qualname

    def __enter__(self):
        self._outer = getattr(_active, "context", None)
        _active.context = self
        return self

    def __exit__(self, *exc_info):
        _active.context = self._outer

    def new_dynamic_size(self, *, min=0, max=None):
        """A size that depends on values. There are no symbolic sizes, so nobody knows it: on fake tensors this raises
        DynamicOutputShapeException, on meta tensors RuntimeError. `opcheck` gives the size that it has seen on real tensors."""
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal to 0: this API can only create non-negative sizes."
            )
        source = getattr(_active, "sizes", None)
        if source is not None:
            return source(min, max)
        raise RuntimeError(
            f"{self._qualname}: You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but this operator may return an "
            "output Tensor with data-dependent shape. Meta Tensors don't support operators with outputs that have data-dependent shapes. "
            "Call the operator with real tensors."
        )

    create_unbacked_symint = new_dynamic_size


@contextlib.contextmanager
def sizes_from(source):
    """For a block: new_dynamic_size gives source(min, max)."""
    before, _active.sizes = getattr(_active, "sizes", None), source
    try:
        yield
    finally:
        _active.sizes = before


def sizes_given():
    """Does somebody give the sizes of new_dynamic_size?"""
    return getattr(_active, "sizes", None) is not None


def get_ctx():
    """The context of the fake implementation that is running; None outside of one."""
    return getattr(_active, "context", None)
