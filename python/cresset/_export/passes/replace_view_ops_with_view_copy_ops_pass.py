"""Views of exported programs become copies, for runtimes whose tensors share no memory."""

import cresset
from cresset._export.error import InternalError
from cresset._export.pass_base import _ExportPassBaseDeprecatedDoNotUse

__all__ = ["ReplaceViewOpsWithViewCopyOpsPass"]


def is_view_op(schema):
    """Does the operator give a view of its first argument, and write nothing?"""
    alias = schema.arguments[0].alias_info if schema.arguments else None
    return alias is not None and not alias.is_write


def get_view_copy_of_view_op(schema):
    """The operator that gives a copy in the place of a view, None for operators that give no views. InternalError where there is none."""
    if not is_view_op(schema) or not schema.name.startswith("aten::"):
        return None
    packet = getattr(cresset.ops.aten, f"{schema.name.removeprefix('aten::')}_copy", None)
    found = packet and getattr(packet, schema.overload_name or "default", None)
    if found is None:
        raise InternalError(f"{schema.name} is missing a view_copy variant")
    return found


class ReplaceViewOpsWithViewCopyOpsPass(_ExportPassBaseDeprecatedDoNotUse):
    """aten.view and the like become aten.view_copy."""

    def call_operator(self, op, args, kwargs, meta):
        """The copying form of an operator that gives a view."""
        copying = get_view_copy_of_view_op(op._schema) if isinstance(op, cresset._ops.OpOverload) else None
        return super().call_operator(copying or op, args, kwargs, meta)
