"""The kernel for the key FuncTorchBatched that follows a vmap rule written in Python."""

__all__ = ["make_vmap_kernel"]


def make_vmap_kernel(rule):
    """A kernel that calls rule()(info, in_dims, *args, **kwargs); rule() is asked at each call, so that the rule can be replaced."""

    def kernel(*args, **kwargs):
        from cresset._vmap import apply_rule

        return apply_rule(rule(), args, kwargs)

    return kernel
