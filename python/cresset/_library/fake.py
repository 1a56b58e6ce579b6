"""The context of a fake implementation (`register_fake`)."""

import threading

__all__ = ["FakeContext", "get_ctx"]

_active = threading.local()


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
        """Refused: a size that depends on values is not known without them."""
        raise NotImplementedError(
            f"{self._qualname}: new_dynamic_size: the size of this operator's result depends on values, which meta tensors do not have. "
            "Call the operator with real tensors."
        )

    create_unbacked_symint = new_dynamic_size


def get_ctx():
    """The context of the fake implementation that is running; None outside of one."""
    return getattr(_active, "context", None)
