"""Split a graph by tags that its nodes have."""

from ...nn import Module
from .split_module import split_module

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj, name):
    """The value at a path."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj, attr, value):
    """Set the value at a path."""
    *path, name = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, name, value)


def split_by_tags(gm, tags, return_fqn_mapping=False, return_tuple=False):
    """A GraphModule that calls a submodule for each tag; nodes name theirs in `tag`. With return_fqn_mapping also {path in gm: path in it}."""
    mapping = {}
    numbers = {tag: at for at, tag in enumerate(tags)}
    split = split_module(gm, gm, lambda node: numbers[node.tag], mapping, keep_original_order=True, tuple_return=return_tuple)
    renamed = {f"submod_{at}": tag for tag, at in numbers.items()}
    for node in split.graph.nodes:
        if node.op == "call_module" and node.target in renamed:
            child = getattr(split, node.target)
            assert isinstance(child, Module)
            delattr(split, node.target)
            split.add_module(renamed[node.target], child)
            node.target = renamed[node.target]
            node._rename(node.target)
    split.recompile()
    mapping = {old: f"{renamed[new.partition('.')[0]]}.{new.partition('.')[2]}" for new, old in mapping.items()}
    return (split, mapping) if return_fqn_mapping else split
