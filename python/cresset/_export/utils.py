"""What programs around export ask of operators, of inputs of programs and of nodes."""

import dataclasses

from cresset._C import DispatchKey
from cresset._ops import OpOverload
from cresset.utils import _pytree as pytree

from ._nodes import node_inline_, node_replace_, nodes_count, nodes_filter, nodes_first, nodes_map, sequential_split

__all__ = [
    "_is_cia_op", "register_dataclass_as_pytree_node", "get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant", "is_param", "node_inline_",
    "node_replace_", "nodes_count", "nodes_filter", "nodes_first", "nodes_map", "sequential_split",
]  # fmt: skip


def _is_cia_op(op):
    """Is the overload composed of others, by CompositeImplicitAutograd?"""
    if not isinstance(op, OpOverload):
        return False
    return op.has_kernel_for_dispatch_key("CompositeImplicitAutograd") or DispatchKey.CompositeImplicitAutograd in op.py_kernels


def register_dataclass_as_pytree_node(
    cls, flatten_fn=None, unflatten_fn=None, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None, return_none_fields=False
):
    """Make instances of a dataclass nodes of trees whose children are its fields; those that are None are no children unless return_none_fields.

    AssertionError for other classes, and for one direction of the context alone.
    """
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise AssertionError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")

    def flatten(obj):
        fields = [(f.name, getattr(obj, f.name)) for f in dataclasses.fields(obj)]
        present = [(name, value) for name, value in fields if value is not None or return_none_fields]
        return [value for _, value in present], [[name for name, _ in present], [name for name, value in fields if value is None and not return_none_fields]]

    def unflatten(values, context):
        return cls(**dict(zip(context[0], values)), **dict.fromkeys(context[1]))

    def with_keys(obj):
        values, context = flatten_fn(obj) if flatten_fn is not None else flatten(obj)
        return [(pytree.MappingKey(name), value) for name, value in zip(context[0], values)], context

    pytree.register_pytree_node(
        cls, flatten_fn or flatten, unflatten_fn or unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys,
        to_dumpable_context=to_dumpable_context, from_dumpable_context=from_dumpable_context,
    )  # fmt: skip


def is_param(program, node):
    """Is the node an input that stands for a parameter of the program?"""
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program, node):
    """The parameter that the node stands for, None for other nodes."""
    return program.state_dict[program.graph_signature.inputs_to_parameters[node.name]] if is_param(program, node) else None


def is_buffer(program, node):
    """Is the node an input that stands for a buffer of the program?"""
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program, node):
    """The buffer that the node stands for, None for other nodes; those that are not persistent are among the constants."""
    if not is_buffer(program, node):
        return None
    name = program.graph_signature.inputs_to_buffers[node.name]
    return program.constants[name] if name in program.graph_signature.non_persistent_buffers else program.state_dict[name]


def is_lifted_tensor_constant(program, node):
    """Is the node an input that stands for a constant tensor of the program?"""
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program, node):
    """The constant tensor that the node stands for, None for other nodes."""
    if not is_lifted_tensor_constant(program, node):
        return None
    return program.constants[program.graph_signature.inputs_to_lifted_tensor_constants[node.name]]
