"""Where libraries tell PyTorch's code generator how to take their operators apart: a table of its own, which nothing reads here."""

from cresset import _decomp

__all__ = ["decompositions", "register_decomposition"]

decompositions = {}


def register_decomposition(ops):
    """Decorator: the function takes these operators apart. A later one replaces an earlier one."""
    listed = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for op in list(decompositions):
        if op in listed or getattr(op, "overloadpacket", None) in listed:
            del decompositions[op]
    return _decomp.register_decomposition(listed, decompositions)
