"""Observers in the inlined graph of a script: which values are watched, and by what."""

import cresset

from ._script_graph import Flat, constant_of, is_number, kind_of, nodes_below, uses_of

__all__ = ["PASSING", "QUANTIZED", "SAME_VALUES", "WITH_RELU", "insert_observers"]

# {operator: positions of its values, position of its weight or None}, of what is computed in whole numbers
_WEIGHTED = {f"aten::{name}": ((0,), 1) for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear")}
_OTHERS = {
    f"aten::{name}": ((0,), None)
    for name in "batch_norm hardswish hardswish_ elu elu_ layer_norm group_norm instance_norm leaky_relu leaky_relu_".split()
}
_BINARY = {f"aten::{name}": ((0, 1), None) for name in ("add", "add_", "mul", "mul_", "matmul")}
QUANTIZED = {**_WEIGHTED, **_OTHERS, **_BINARY}
WITH_RELU = {f"aten::{name}" for name in "conv1d conv2d conv3d linear add add_ mul mul_ batch_norm".split()}
RELU = {"aten::relu", "aten::relu_"}
# What moves elements, or chooses among them: it takes quantized values as they are.
PASSING = {
    f"aten::{name}"
    for name in (
        "max_pool1d max_pool2d max_pool3d flatten transpose t permute contiguous view reshape squeeze squeeze_ unsqueeze unsqueeze_ detach detach_ "
        "chunk select slice narrow repeat repeat_interleave dropout feature_dropout resize_ relu relu_ clone"
    ).split()
} | {"prim::ConstantChunk"}
# What computes values of the input's range, which have its scale.
SAME_VALUES = {
    f"aten::{name}"
    for name in (
        "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d mean upsample_nearest1d upsample_nearest2d "
        "upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d clamp hardtanh hardtanh_ __interpolate relu6 relu6_"
    ).split()
}
# {operator: (scale, zero point) of quint8 results, whose range is known}
FIXED = {f"aten::{name}{end}": (1.0 / 256, 0) for name in ("sigmoid", "hardsigmoid") for end in ("", "_")}
FIXED |= {"aten::tanh": (2.0 / 256, 128), "aten::tanh_": (2.0 / 256, 128), "aten::softmax": (1.0 / 256, 0)}


class _Insertion:
    """The observers of one graph."""

    def __init__(self, flat, qconfigs, dynamic):
        self.flat, self.qconfigs, self.dynamic = flat, qconfigs, dynamic
        self.observed, self.fused, self.wanted = set(), set(), []

    def qconfig_of(self, node):
        """That of the innermost module that has one."""
        path = self.flat.path_of(node)
        while path not in self.qconfigs:
            if not path:
                return None
            path = path.rpartition(".")[0]
        return self.qconfigs[path]

    def want(self, value, constructor):
        """The value is watched, unless it is already."""
        if value.unique() not in self.observed and value.type().kind() == "TensorType":
            self.observed.add(value.unique())
            self.wanted.append((value, constructor))

    def _is_observed(self, value):
        return value.unique() in self.observed

    def _tensors(self, node, positions):
        values = [node.inputsAt(index) for index in positions]
        return [value for value in values if not is_number(value)]

    def _result(self, node):
        """The result, or that of the ReLU that is computed with it."""
        out = node.output()
        uses = uses_of(out)
        if node.kind() in WITH_RELU and len(uses) == 1 and uses[0].user.kind() in RELU:
            self.fused.add(uses[0].user.output().unique())
            return uses[0].user.output()
        return out

    def visit(self, block):
        """Decide for each node of a block."""
        for node in block.nodes():
            kind = node.kind()
            if kind == "aten::embedding_bag":
                qconfig = self.qconfig_of(node)
                if qconfig is not None and not self.dynamic:
                    self.want(node.inputsAt(0), qconfig.weight)
            elif kind in QUANTIZED and (not self.dynamic or kind == "aten::linear"):
                self._quantized(node)
            elif list(node.blocks()):
                self._blocks(node)
            elif kind == "aten::cat" and not self.dynamic:
                self._joined(node)
            elif kind in ("aten::chunk", "prim::ListUnpack") and not self.dynamic:
                if self._is_observed(node.inputsAt(0)):
                    self.observed |= {value.unique() for value in node.outputs()}
            elif not self.dynamic and kind in (PASSING | SAME_VALUES | set(FIXED)):
                given = [value for value in node.inputs() if not is_number(value)]
                if given and all(map(self._is_observed, given)):
                    self.observed |= {value.unique() for value in node.outputs()}

    def _blocks(self, node):
        blocks = list(node.blocks())
        for block in blocks:
            self.visit(block)
        if node.kind() == "prim::If":
            ends = [list(block.outputs()) for block in blocks]
            for number, out in enumerate(node.outputs()):
                if all(self._is_observed(end[number]) for end in ends):
                    self.observed.add(out.unique())

    def _joined(self, node):
        """A concatenation of what is watched is watched."""
        qconfig, source = self.qconfig_of(node), node.inputsAt(0).node()
        if qconfig is not None and source.kind() == "prim::ListConstruct" and all(map(self._is_observed, source.inputs())):
            self.want(node.output(), qconfig.activation)

    def _quantized(self, node):
        qconfig = self.qconfig_of(node)
        if qconfig is None:
            return
        positions, weight = QUANTIZED[node.kind()]
        tensors = self._tensors(node, positions)
        if weight is None and len(positions) == 2 and (not tensors or not all(map(self._is_observed, tensors))):
            return
        for value in tensors:
            self.want(value, qconfig.activation)
        if weight is not None:
            self.want(node.inputsAt(weight), qconfig.weight)
        if not self.dynamic:
            scalar = weight is None and len(positions) == 2 and len(tensors) == 1
            out = self._result(node)
            if scalar:  # the scale of the result is that of the input, by the number
                self.observed.add(out.unique())
            else:
                self.want(out, qconfig.activation)

    def insert(self):
        """The observers that were asked for."""
        flat = self.flat
        for value, constructor in self.wanted:
            place = flat.attribute_of(value)
            owner, owner_value = (flat.root, flat.self_value) if place is None else place[:2]
            watcher = constructor.deepcopy()
            name = _free_observer(owner)
            owner._register_attribute(name, watcher._type(), watcher)
            before = flat.after(value)
            called = flat.get(before, owner_value, name, watcher._type())
            call = flat.graph.create("prim::CallMethod", [called, value])
            call.s_("name", "forward")
            call.insertBefore(before)
            call.output().setType(value.type())
            value.replaceAllUsesAfterNodeWith(call, call.output())
        return self


def _free_observer(owner):
    """_observer_0, _observer_1, …: the first that the module itself has not. Others of its class may."""
    taken, number = {name for name, _ in owner.named_children()}, 0
    while f"_observer_{number}" in taken:
        number += 1
    return f"_observer_{number}"


def insert_observers(model, qconfigs, dynamic=False):
    """Watch what is quantized, by the QConfigs of modules' paths (of scripts of observers); weights are watched by their modules."""
    flat = Flat(model)
    fold_batch_norms(flat)
    made = _Insertion(flat, qconfigs, dynamic)
    made.visit(flat.graph)
    made.insert()
    watch_weights(flat)
    return flat


def watch_weights(flat):
    """Observers of weights see them."""
    for node in nodes_below(flat.graph):
        if is_observer_call(flat, node):
            tensor = flat.tensor_of(node.inputsAt(1))
            if tensor is not None:
                with cresset.no_grad():
                    cresset.jit._recursive.wrap_cpp_module(flat.module_of(node.inputsAt(0)))(tensor)


def is_observer_call(flat, node):
    """Is the node a call of an observer that was inserted?"""
    if node.kind() != "prim::CallMethod" or kind_of(node.inputsAt(0)) != "prim::GetAttr":
        return False
    return node.inputsAt(0).node().s("name").startswith("_observer_")


def fold_batch_norms(flat):
    """Norms of running statistics behind convolutions become part of their weights."""
    for node in list(nodes_below(flat.graph)):
        if node.kind() != "aten::batch_norm" or kind_of(node.inputsAt(0)) not in ("aten::conv1d", "aten::conv2d", "aten::conv3d"):
            continue
        conv = node.inputsAt(0).node()
        tensors = [flat.tensor_of(conv.inputsAt(1)), *(flat.tensor_of(node.inputsAt(index)) for index in (3, 4))]
        bias, gamma, beta = (flat.tensor_of(value) for value in (conv.inputsAt(2), node.inputsAt(1), node.inputsAt(2)))
        training = kind_of(node.inputsAt(5)) != "prim::Constant" or constant_of(node.inputsAt(5))
        place = flat.attribute_of(conv.inputsAt(1))
        if training or place is None or any(tensor is None for tensor in tensors) or len(uses_of(node.inputsAt(0))) != 1:
            continue
        weight, mean, var = tensors
        made = cresset.nn.utils.fusion.fuse_conv_bn_weights(weight, bias, mean, var, constant_of(node.inputsAt(7)), gamma, beta)
        owner, owner_value, name = place
        tensor_type = conv.inputsAt(1).type()
        for position, kind, tensor in ((1, name, made[0]), (2, "bias", made[1])):
            free = flat.free_name(owner, f"_folded_{kind}_")
            owner._register_attribute(free, tensor_type, tensor.detach())
            conv.replaceInput(position, flat.get(conv, owner_value, free, tensor_type))
        for use in conv.output().uses():
            if use.user.kind() == "aten::dim":  # the check of the norm: the same as before the convolution
                use.user.replaceInput(0, conv.inputsAt(0))
        node.output().replaceAllUsesWith(conv.output())
        node.destroy()
