"""Exchange of what two tensors are."""

import copyreg
import weakref

from .. import _C
from ..autograd.graph import get_gradient_edge

__all__ = ["swap_tensors"]

_NOTHING = object()
_POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a tensor that was swapped. "
    "For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of the module "
    "(e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change the device/dtype before running "
    "forward (or after both forward and backward)."
)


def _poison(grads):
    raise RuntimeError(_POISONED)


def swap_tensors(t1, t2):
    """Two tensors' objects exchange all they are: data, class, attributes, gradient and hooks. Who holds the object `t1` then has what `t2` was.

    RuntimeError when one has weak references, when their classes have different slots, or when others hold a tensor (a view, a graph that
    saved it). A graph that was recorded with a leaf refuses to go backward to it afterwards.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [set(copyreg._slotnames(type(t))) for t in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    edges = [get_gradient_edge(t).node if t.is_leaf and t.requires_grad else None for t in (t1, t2)]
    kinds = type(t1), type(t2)
    try:
        t2.__class__, t1.__class__ = kinds
        _C._swap_tensor_impl(t1, t2)
    except Exception:
        t1.__class__, t2.__class__ = kinds
        raise
    for name in slots[0]:
        values = [getattr(t, name, _NOTHING) for t in (t1, t2)]
        for t, value in zip((t1, t2), reversed(values)):
            if value is not _NOTHING:
                setattr(t, name, value)
            elif hasattr(t, name):
                delattr(t, name)
    for node in edges:
        if node is not None:
            node.register_prehook(_poison)
