"""Which nodes a backend takes."""

import abc

from .tools_common import get_node_target

__all__ = ["OperatorSupportBase", "OperatorSupport", "create_op_support", "chain", "any_chain"]


class OperatorSupportBase(abc.ABC):
    """is_node_supported(submodules, node): does the backend take this node?"""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """Does the backend take this node?"""


class OperatorSupport(OperatorSupportBase):
    """Takes nodes by their targets: {target as text: None, or (dtypes of args, dtypes of kwargs)}."""

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        """Is the target in the table, and do dtypes fit?"""
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_position, by_name = wanted
        for at, dtypes in enumerate(by_position):
            if len(node.args) > at and not _fits(node.args[at], dtypes):
                return False
        return all(name not in node.kwargs or _fits(node.kwargs[name], dtypes) for name, dtypes in by_name.items())


def _fits(argument, dtypes):
    meta = getattr(argument, "meta", {}).get("tensor_meta")
    return meta is not None and meta.dtype in dtypes


class _Function(OperatorSupportBase):
    def __init__(self, function):
        self.function = function

    def is_node_supported(self, submodules, node):
        return self.function(submodules, node)


def create_op_support(is_node_supported):
    """An OperatorSupportBase of a function."""
    return _Function(is_node_supported)


def chain(*op_support):
    """What all take."""
    return create_op_support(lambda submodules, node: all(o.is_node_supported(submodules, node) for o in op_support))


def any_chain(*op_support):
    """What one takes."""
    return create_op_support(lambda submodules, node: any(o.is_node_supported(submodules, node) for o in op_support))
