"""The tables, and how entries get into them."""

import cresset
from cresset._ops import OpOverloadPacket

global_decomposition_table = {"post_autograd": {}, "pre_autograd": {}, "meta": {}}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]


def overloads(op):
    """The overloads that an operator, an overload or a packet of them means."""
    if isinstance(op, OpOverloadPacket):
        found = [getattr(op, name) for name in op.overloads()]
        return [o for o in found if cresset._C._dispatch_has_kernel(o.name())]
    return [op]


def add(op, function, registry):
    for overload in overloads(op):
        if overload in registry:
            raise RuntimeError(f"duplicate registrations for {overload}")
        registry[overload] = function
