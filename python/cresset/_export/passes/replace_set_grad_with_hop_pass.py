"""Switches of gradients in graphs, which PyTorch's pass of this name looks for."""

import cresset

__all__ = []


def _is_set_grad_enabled_node(node):
    """Does the node switch gradients on or off?"""
    return node.op == "call_function" and node.target is cresset._C._set_grad_enabled


def _is_set_grad_enabled_sub_mod(node, omit_if_same_with_ambient=False):
    """Does the node call a submodule that begins with such a switch? `omit_if_same_with_ambient`: one that changes what holds now."""
    if node.op != "call_module":
        return False
    first = next((n for n in node.graph.owning_module.get_submodule(node.target).graph.nodes if n.op != "placeholder"), None)
    if first is None or not _is_set_grad_enabled_node(first):
        return False
    return first.args[0] != cresset.is_grad_enabled() if omit_if_same_with_ambient else True
