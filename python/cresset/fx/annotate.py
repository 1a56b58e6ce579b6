"""Types of values in traces."""

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """val, with this type noted at its node when it is a proxy; TypeError when that has one already."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise TypeError(f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is {type}.")
        val.node.type = type
    return val
