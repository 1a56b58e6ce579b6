"""Questions of compilers that libraries ask: whether tensors without memory are in use, and whether a trace runs. None of ours keeps guards."""

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode"]


def active_fake_mode():
    """The innermost FakeTensorMode that is on, None without one."""
    from cresset._subclasses.fake_tensor import FakeTensorMode
    from cresset.utils._python_dispatch import _get_current_dispatch_mode_stack

    return next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs=None):
    """The FakeTensorMode that is on, or that of the tensors in `inputs`; None without one. AssertionError where there are two."""
    from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from cresset.utils._python_dispatch import _get_current_dispatch_mode_stack
    from cresset.utils._pytree import tree_leaves

    found = [mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)]
    found += [leaf.fake_mode for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    if any(mode is not found[0] for mode in found):
        raise AssertionError(f"fake mode ({found[0]}) from active fake mode or fake tensor input 0 doesn't match {found[-1]}")
    return found[0] if found else None


class TracingContext:
    """What a compiler knows while it traces. Functions run as they are here, so there never is one."""

    @staticmethod
    def try_get():
        """None: no compiler traces."""
        return None

    @staticmethod
    def get():
        """RuntimeError: no compiler traces."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
