"""What programs around export ask of operators, of inputs of programs and of nodes."""

from cresset._C import DispatchKey
from cresset._ops import OpOverload

from ._nodes import node_inline_, node_replace_, nodes_count, nodes_filter, nodes_first, nodes_map, sequential_split

__all__ = [
    "_is_cia_op", "get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant", "is_param", "node_inline_",
    "node_replace_", "nodes_count", "nodes_filter", "nodes_first", "nodes_map", "sequential_split",
]  # fmt: skip


def _is_cia_op(op):
    """Is the overload composed of others, by CompositeImplicitAutograd?"""
    if not isinstance(op, OpOverload):
        return False
    return op.has_kernel_for_dispatch_key("CompositeImplicitAutograd") or DispatchKey.CompositeImplicitAutograd in op.py_kernels


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
