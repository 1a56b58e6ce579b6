"""Questions of compilers that libraries ask: whether tensors without memory are in use, and whether a trace runs. None of ours keeps guards."""

import contextlib
import threading

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode", "tracing"]

_here = threading.local()


def active_fake_mode():
    """The innermost FakeTensorMode that is on, None without one."""
    from cresset._subclasses.fake_tensor import FakeTensorMode
    from cresset.utils._python_dispatch import _get_current_dispatch_mode_stack

    return next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs=None):
    """The FakeTensorMode of the TracingContext, the one that is on, or that of the tensors in `inputs`; None without one. AssertionError where there are two."""
    from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from cresset.utils._python_dispatch import _get_current_dispatch_mode_stack
    from cresset.utils._pytree import tree_leaves

    context = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        return context.fake_mode
    found = [mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)]
    found += [leaf.fake_mode for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    if any(mode is not found[0] for mode in found):
        raise AssertionError(f"fake mode ({found[0]}) from active fake mode or fake tensor input 0 doesn't match {found[-1]}")
    return found[0] if found else None


class TracingContext:
    """What whoever traces says about it: the FakeTensorMode of the trace. Nothing here sets one by itself (`tracing` does), since functions run as they are."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    @staticmethod
    def try_get():
        """That of the innermost `tracing` of this thread; None outside of any."""
        return getattr(_here, "context", None)

    @staticmethod
    def get():
        """That of the innermost `tracing` of this thread; RuntimeError outside of any."""
        context = TracingContext.try_get()
        if context is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return context


@contextlib.contextmanager
def tracing(context):
    """A block in which TracingContext.get() gives the context, or None."""
    before = TracingContext.try_get()
    _here.context = context
    try:
        yield context
    finally:
        _here.context = before
