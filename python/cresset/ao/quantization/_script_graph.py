"""The graph of a script's forward with all calls inlined, and what quantization asks of its nodes and values."""

import re

import cresset

__all__ = ["Flat", "constant_of", "is_number", "kind_of", "modules_by_class", "name_convolutions", "nodes_below", "put", "uses_of"]

_PLAIN = (bool, int, float, str, tuple, list, type(None))
_CONVOLUTIONS = {(False, 1): "conv1d", (False, 2): "conv2d", (False, 3): "conv3d"} | {(True, n): f"conv_transpose{n}d" for n in (1, 2, 3)}


def nodes_below(block):
    """All nodes of a graph or block, also those in blocks of nodes, in order."""
    for node in list(block.nodes()):
        yield node
        for inner in node.blocks():
            yield from nodes_below(inner)


def kind_of(value):
    """The kind of the node that gives a value."""
    return value.node().kind()


def constant_of(value):
    """The value of a constant, or of a list of constants; LookupError for another."""
    if kind_of(value) == "prim::Constant":
        return value.toIValue()
    if kind_of(value) in ("prim::ListConstruct", "prim::TupleConstruct"):
        return [constant_of(part) for part in value.node().inputs()]
    raise LookupError(value.debugName())


OF_SHAPES = {"aten::dim", "aten::size", "aten::numel", "aten::q_scale", "aten::q_zero_point", "prim::dtype"}


def modules_by_class(root):
    """{name of a class: its modules}, of a module and all below it."""
    found, stack, seen = {}, [root], set()
    while stack:
        module = stack.pop()
        if module._id() not in seen:
            seen.add(module._id())
            found.setdefault(module._type().qualified_name(), []).append(module)
            stack += [child for _, child in module.named_children()]
    return found


def is_number(value):
    """Is the value a number, or a tensor of one that a trace has in its place?"""
    if value.type().kind() != "TensorType":
        return True
    found = value.toIValue() if kind_of(value) == "prim::Constant" else None
    return isinstance(found, (int, float)) or (isinstance(found, cresset.Tensor) and found.dim() == 0)


def uses_of(value):
    """The uses of a value but those that ask for its shape, dtype or scale."""
    return [use for use in value.uses() if use.user.kind() not in OF_SHAPES]


def put(graph, before, kind, inputs):
    """The value of a new node before another."""
    node = graph.create(kind, inputs)
    node.insertBefore(before)
    node.copyMetadata(before)
    return node.output()


def name_convolutions(graph):
    """aten::_convolution, which traces have, by its name."""
    for node in list(nodes_below(graph)):
        if node.kind() != "aten::_convolution":
            continue
        values = list(node.inputs())
        transposed, dims = constant_of(values[6]), len(constant_of(values[3]))
        order = (0, 1, 2, 3, 4, 7, 8, 5) if transposed else (0, 1, 2, 3, 4, 5, 8)
        made = put(graph, node, f"aten::{_CONVOLUTIONS[bool(transposed), dims]}", [values[index] for index in order])
        made.setType(node.output().type())
        node.output().replaceAllUsesWith(made)
        node.destroy()


class Flat:
    """The forward of a module that nothing else has. Attributes that are numbers, and do not change, become constants, and branches on them go."""

    def __init__(self, model, inlined=False):
        self.model, self.root = model, model._c
        self.graph = self.root._get_method("forward").graph
        self.self_value = next(iter(self.graph.inputs()))
        if inlined:
            return
        cresset._C._jit_pass_inline(self.graph)
        self._fold_attributes()
        for one in (cresset._C._jit_pass_constant_propagation, cresset._C._jit_pass_fuse_linear, name_convolutions, cresset._C._jit_pass_dce):
            one(self.graph)

    def _fold_attributes(self):
        changed = {node.s("name") for node in nodes_below(self.graph) if node.kind() == "prim::SetAttr"}
        for node in nodes_below(self.graph):
            if node.kind() != "prim::GetAttr" or node.s("name") in changed:
                continue
            owner = self.module_of(node.input())
            found = None if owner is None else owner.getattr(node.s("name"))
            if owner is None or not isinstance(found, _PLAIN):
                continue
            self.graph.setInsertPoint(node)
            try:
                constant = self.graph.insertConstant(found)
            except (TypeError, RuntimeError):  # what has no constant stays an attribute
                continue
            node.output().replaceAllUsesWith(constant)

    # Modules.
    def module_of(self, value):
        """The module that a value is, from the root by attributes; None for another value."""
        if value.unique() == self.self_value.unique():
            return self.root
        if kind_of(value) != "prim::GetAttr":
            return None
        owner = self.module_of(value.node().input())
        found = None if owner is None else owner.getattr(value.node().s("name"))
        return getattr(found, "_c", None)

    def attribute_of(self, value):
        """(module, value of that module in the graph, name) of a value that is an attribute; None for another."""
        if kind_of(value) != "prim::GetAttr":
            return None
        node = value.node()
        owner = self.module_of(node.input())
        return None if owner is None else (owner, node.input(), node.s("name"))

    def tensor_of(self, value):
        """The tensor that an attribute or a constant is; None for another value."""
        if kind_of(value) == "prim::Constant":
            found = value.toIValue()
        else:
            place = self.attribute_of(value)
            found = None if place is None else place[0].getattr(place[2])
        return found if isinstance(found, cresset.Tensor) else None

    @staticmethod
    def path_of(node):
        """The path of the module that a node was written in."""
        return ".".join(part for part in re.sub(r"\([^)]*\)", "", node.getModuleHierarchy()).split(".") if part and not part.startswith("UNKNOWN_"))

    # New nodes.
    def put(self, before, kind, inputs, type_as=None):
        """The value of a new node before another."""
        made = put(self.graph, before, kind, inputs)
        if type_as is not None:
            made.setType(type_as)
        return made

    def constant(self, before, value):
        """A constant before a node."""
        self.graph.setInsertPoint(before)
        return self.graph.insertConstant(value)

    def get(self, before, owner_value, name, of_type):
        """The attribute of a module, before a node."""
        node = self.graph.create("prim::GetAttr", [owner_value])
        node.s_("name", name)
        node.insertBefore(before)
        node.output().setType(of_type)
        return node.output()

    def free_name(self, owner, prefix):
        """The first name prefix0, prefix1, … that a module does not have."""
        number = 0
        while owner.hasattr(f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def after(self, value):
        """The node before which something that follows the value is put."""
        if kind_of(value) == "prim::Param":
            return next(iter(value.node().owningBlock().nodes()))
        return value.node().next()
