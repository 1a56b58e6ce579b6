"""Types of arguments that only scripts know."""

from typing import Any, Dict, List, Optional, Tuple  # noqa: F401  (programs import them from here)

from .._script_forms import BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4

__all__ = ["get_signature", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4"]


def get_signature(fn, rcb, loc, is_method):
    """([types of the parameters], type of the result) by annotations or by a comment "# type: (int, Tensor) -> Tensor"; None without either.

    is_method leaves the first parameter out. What says nothing is a Tensor. `rcb` and `loc` are PyTorch's and are not needed. RuntimeError for a
    comment with a call in it.
    """
    import inspect

    from cresset import _C

    from ._definitions import _types_of, types_in_comments
    from ._source import closure_names

    names = list(inspect.signature(fn).parameters)[1 if is_method else 0 :]
    annotated = bool(getattr(fn, "__annotations__", None))
    types = _types_of(fn, closure_names(fn)) if annotated else types_in_comments(fn)
    if not types:
        return None
    tensor = _C.TensorType.get()
    if not annotated:
        return [t for name, t in types.items() if name != "return"], types.get("return", tensor)
    return [types.get(name, tensor) for name in names], types.get("return", tensor)
