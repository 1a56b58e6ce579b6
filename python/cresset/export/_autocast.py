"""autocast in exported programs: its casts become operators of the graph, which runs outside of the block."""

import cresset
from cresset import _C
from cresset.fx.experimental._pre_dispatch import below, operators_as_called
from cresset.utils import _pytree as pytree

__all__ = ["casts", "is_composite", "keys_below", "through"]

_KEYS = [getattr(_C.DispatchKey, n) for n in dir(_C.DispatchKey) if n.startswith("Autocast") and n != "AutocastFunctionality"]
_TOP = _C.DispatchKey.TESTING_ONLY_GenericMode


class _Cast(Exception):
    """An operator with a rule of autocast was called."""


def keys_below(args, kwargs):
    """What a call of an operator has below the key at which it is seen."""
    keys = _C.DispatchKeySet()
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, cresset.Tensor):
            keys = keys | _C._dispatch_keys(leaf)
    return ((keys | _C._dispatch_tls_local_include_set()) - _C._dispatch_tls_local_exclude_set()).remove(_TOP)


def _rule(func, keys):
    """Is there a kernel of autocast among those that would run?"""
    return any(keys.has(k) and _C._dispatch_has_kernel_for_dispatch_key(func.name(), k.name) for k in _KEYS)


def is_composite(func):
    return func.has_kernel_for_dispatch_key("CompositeImplicitAutograd")


def casts(func, args, kwargs):
    """Does autocast change this call, or one of those that the operator is made of?"""
    keys = keys_below(args, kwargs)
    if not any(keys.has(k) for k in _KEYS):
        return False
    if _rule(func, keys):
        return True
    if not is_composite(func):
        return False
    try:
        with operators_as_called(_look):
            func.redispatch(keys, *args, **kwargs)
    except _Cast:
        return True
    return False


def _look(func, args, kwargs):
    keys = keys_below(args, kwargs)
    if _rule(func, keys):
        raise _Cast
    if is_composite(func):
        return func.redispatch(keys, *args, **kwargs)
    with below():
        return func(*args, **kwargs)


def through(func, args, kwargs):
    """The call without the key at which operators are seen: what the operator calls is seen."""
    return func.redispatch(keys_below(args, kwargs), *args, **kwargs)
