"""Which nodes stay though nobody uses what they give."""

from ._objects import takes_objects

__all__ = ["has_effect"]


def has_effect(node):
    """Is it impure for fx, or an operator without a result, which is there for its effect as assertions are, or of an object, which it may change?"""
    schema = getattr(node.target, "_schema", None)
    return node.is_impure() or (schema is not None and (not schema.returns or takes_objects(schema)))
