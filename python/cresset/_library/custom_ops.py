"""custom_op and its class under the module name that libraries use."""

from .custom_op import CustomOpDef, custom_op

__all__ = ["CustomOpDef", "custom_op"]
