"""What programs around export ask of operators."""

from cresset._ops import OpOverload


def _is_cia_op(op):
    """Is the overload composed of others, by CompositeImplicitAutograd?"""
    if not isinstance(op, OpOverload):
        return False
    return op.has_kernel_for_dispatch_key("CompositeImplicitAutograd") or "CompositeImplicitAutograd" in op.py_kernels
