"""Targets and sizes of nodes."""

from typing import NamedTuple

from .shape_prop import ShapeProp

__all__ = ["replace_target_nodes_with", "size_bytes", "get_size_of_all_nodes", "get_tensor_meta", "get_size_of_node"]


def replace_target_nodes_with(fx_module, old_op, old_target, new_op, new_target):
    """Give nodes of an op and target another op and target."""
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            node.op, node.target = new_op, new_target
    fx_module.recompile()


class size_bytes(NamedTuple):
    """Bytes of a node's value, and of it with its parameters."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module, args=None):
    """Write size_bytes to `size_bytes` of all nodes; with args the module runs to know shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node):
    """What ShapeProp noted; RuntimeError when it did not."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run.")
    return found


def get_size_of_node(fx_module, node):
    """size_bytes of a node after ShapeProp."""
    total = 0
    if node.op == "call_module":
        total += sum(p.numel() * p.element_size() for _, p in fx_module.get_submodule(node.target).named_parameters())
    meta = get_tensor_meta(node)
    output = meta.shape.numel() * meta.dtype.itemsize
    return size_bytes(output, output + total)
