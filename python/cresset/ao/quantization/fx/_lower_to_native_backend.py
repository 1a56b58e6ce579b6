"""What stands between dequantize and quantize becomes layers of `ao.nn.quantized` and operators of `torch.ops.quantized`."""

import inspect
import operator

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.intrinsic import quantized as nniq
from cresset.ao.nn.intrinsic.quantized import dynamic as nniqd
from cresset.ao.nn.quantized import dynamic as nnqd
from cresset.ao.nn.quantized import reference as nnqr
from cresset.fx import Node
from cresset.nn import functional as F

from .fuse import set_module
from .graph_module import QuantizedGraphModule
from .utils import get_new_attr_name_with_prefix

_OPS = cresset.ops.quantized
_RELU_FUNCTIONS = (F.relu, cresset.relu)
_STATIC = {getattr(nnqr, name): getattr(nnq, name) for name in ("Linear", *(f"Conv{t}{n}d" for t in ("", "Transpose") for n in (1, 2, 3)))}
_STATIC_FUSED = {
    nni.LinearReLU: (nnqr.Linear, nniq.LinearReLU), nni.LinearLeakyReLU: (nnqr.Linear, nniq.LinearLeakyReLU), nni.LinearTanh: (nnqr.Linear, nniq.LinearTanh),
    **{getattr(nni, f"ConvReLU{n}d"): (getattr(nnqr, f"Conv{n}d"), getattr(nniq, f"ConvReLU{n}d")) for n in (1, 2, 3)},
}  # fmt: skip
_STATIC_TWO = {nni.ConvAdd2d: (nnqr.Conv2d, nniq.ConvAdd2d), nni.ConvAddReLU2d: (nnqr.Conv2d, nniq.ConvAddReLU2d)}
_ROWS = {nnqr.Embedding: nnq.Embedding, nnqr.EmbeddingBag: nnq.EmbeddingBag}
_RECURRENT = {getattr(nnqr, name): getattr(nnqd, name) for name in ("LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell")}
_WITH_SCALE = {  # float layer: quantized one, which has a scale of its own
    **{getattr(nn, n): getattr(nnq, n) for n in "BatchNorm2d BatchNorm3d ELU LeakyReLU Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm PReLU Dropout".split()},
    nni.BNReLU2d: nniq.BNReLU2d, nni.BNReLU3d: nniq.BNReLU3d,
}  # fmt: skip
_FUNCTIONS_WITH_SCALE = {
    F.elu: _OPS.elu, F.hardswish: _OPS.hardswish, F.instance_norm: _OPS.instance_norm, F.layer_norm: _OPS.layer_norm, F.leaky_relu: _OPS.leaky_relu, F.dropout: _OPS.dropout,
}  # fmt: skip
_BINARY = {
    operator.add: (_OPS.add, _OPS.add_relu), cresset.add: (_OPS.add, _OPS.add_relu), operator.mul: (_OPS.mul, _OPS.mul_relu), cresset.mul: (_OPS.mul, _OPS.mul_relu),
    cresset.matmul: (_OPS.matmul, None),
}  # fmt: skip
_POOLS_AND_SHAPES = (  # what has a kernel for quantized values, which keeps the scale or has a fixed one
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d hardtanh hardtanh_ hardsigmoid interpolate max_pool1d "
    "max_pool2d max_pool3d channel_shuffle pixel_shuffle pixel_unshuffle relu relu6"
).split()
_FUNCTIONS_AS_THEY_ARE = {
    *(getattr(F, name) for name in _POOLS_AND_SHAPES), cresset.relu, cresset.clamp, cresset.flatten, cresset.mean, cresset.narrow, cresset.repeat_interleave,
    cresset.transpose, cresset.squeeze, cresset.stack, cresset.unsqueeze, cresset.cat, cresset.sigmoid, cresset.tanh,
}  # fmt: skip
_METHODS_AS_THEY_ARE = set(
    "contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu relu_ squeeze squeeze_ transpose unsqueeze unsqueeze_ view "
    "flatten sigmoid sigmoid_ tanh tanh_ hardsigmoid hardsigmoid_".split()
)
_MODULES_AS_THEY_ARE = {
    getattr(nn, name)
    for name in (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Hardtanh Identity MaxPool1d MaxPool2d MaxPool3d ChannelShuffle PixelShuffle "
        "PixelUnshuffle ReLU ReLU6 Hardsigmoid Sigmoid Softmax Tanh"
    ).split()
}


def _is_dequantize(node):
    return isinstance(node, Node) and node.op == "call_method" and node.target == "dequantize"


def _is_static_quantize(node):
    return node.op == "call_function" and node.target is cresset.quantize_per_tensor


def _is_half(node):
    return isinstance(node, Node) and node.op == "call_method" and node.target == "to" and node.args[1:] == (cresset.float16,)


class _Lowering:
    """The lowering of one reference graph."""

    def __init__(self, model, qconfigs, scopes):
        self.model, self.graph, self.qconfigs, self.scopes = model, model.graph, qconfigs, scopes
        self.lowered = {}  # path: the reference layer that was there; of a layer that is called again the last scale counts

    def module(self, node):
        """The module that a node calls, or None."""
        return self.model.get_submodule(node.target) if node.op == "call_module" else None

    def skipped(self, node):
        """Did the user say that it stays as it is?"""
        return node.name in self.qconfigs and self.qconfigs[node.name] is None

    def value(self, node):
        """What a get_attr node gives."""
        found = self.model
        for part in node.target.split("."):
            found = getattr(found, part)
        return found

    def _is_relu(self, node):
        return (node.op == "call_function" and node.target in _RELU_FUNCTIONS) or (node.op == "call_method" and node.target in ("relu", "relu_")) or (
            node.op == "call_module" and type(self.module(node)) is nn.ReLU
        )

    def quantize_behind(self, node):
        """(quantize, relu or None) where the result of the node is quantized, and has no other user; else (None, None)."""
        user = next(iter(node.users)) if len(node.users) == 1 else None
        if user is None:
            return None, None
        if _is_static_quantize(user) and user.args[0] is node:
            return user, None
        if self._is_relu(user) and len(user.users) == 1:
            last = next(iter(user.users))
            if _is_static_quantize(last):
                return last, user
        return None, None

    def scale_of(self, quantize):
        """(scale, zero point) of a quantize node."""
        return self.value(quantize.args[1]), self.value(quantize.args[2])

    def take_place(self, node, quantize, relu=None):
        """The node gives what the quantize node gave."""
        quantize.replace_all_uses_with(node)
        self.graph.erase_node(quantize)
        if relu is not None:
            self.graph.erase_node(relu)

    # Layers.
    def layers(self):
        """Reference layers between dequantize and quantize."""
        for node in list(self.graph.nodes):
            module = self.module(node)
            if module is None or self.skipped(node):
                continue
            module = self.lowered.get(node.target, module)
            if type(module) in _ROWS:
                set_module(self.model, node.target, _ROWS[type(module)].from_reference(module))
                continue
            self._layer(node, module)

    def _layer(self, node, module):
        two = type(module) in _STATIC_TWO
        if not all(_is_dequantize(a) for a in node.args[: 2 if two else 1]):
            return
        source = node.args[0].args[0]
        if isinstance(source, Node) and source.target is cresset.quantize_per_tensor_dynamic:
            self._dynamic_layer(node, module, source)
            return
        quantize, relu = self.quantize_behind(node)
        if quantize is None:
            return
        made = self._static_layer(module, relu, *self.scale_of(quantize))
        if made is None:
            return
        set_module(self.model, node.target, made)
        self.lowered[node.target] = module
        node.args = tuple(a.args[0] if _is_dequantize(a) else a for a in node.args)
        self.take_place(node, quantize, relu)

    @staticmethod
    def _static_layer(module, relu, scale, zero):
        for table in (_STATIC_FUSED, _STATIC_TWO):
            if type(module) in table:
                inner, kind = table[type(module)]
                return kind.from_reference(module, scale, zero) if relu is None and type(module[0]) is inner else None
        if type(module) not in _STATIC:
            return None
        kind = _STATIC[type(module)]
        if relu is None:
            return kind.from_reference(module, scale, zero)
        fused = {nnqr.Linear: nniq.LinearReLU, **{getattr(nnqr, f"Conv{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in (1, 2, 3)}}.get(type(module))
        return None if fused is None else fused.from_reference([module], scale, zero)

    def _dynamic_layer(self, node, module, source):
        if type(module) is nnqr.Linear:
            made = nnqd.Linear.from_reference(module)
        elif type(module) is nni.LinearReLU and type(module[0]) is nnqr.Linear:
            made = nniqd.LinearReLU.from_reference(module)
        elif type(module) in _RECURRENT:
            float_module, qconfig = module._float_source
            float_module.qconfig = qconfig
            made = _RECURRENT[type(module)].from_float(float_module)
        else:
            return
        set_module(self.model, node.target, made)
        self.lowered[node.target] = module
        node.args = (source.args[0], *(a.args[0].args[0] if _is_dequantize(a) else a for a in node.args[1:]))

    # Functions with weights.
    def functions(self):
        """F.linear and convolutions, whose weights are packed."""
        kinds = {F.linear: "linear", **{getattr(F, f"conv{t}{n}d"): f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)}}
        for node in list(self.graph.nodes):
            if node.op == "call_function" and node.target in kinds and not self.skipped(node):
                self._function(node, kinds[node.target])

    def _constant(self, node):
        """The value of a node that depends on attributes alone, or None."""
        if node.op == "get_attr":
            return self.value(node)
        if node.op not in ("call_function", "call_method") or not node.all_input_nodes:
            return None
        args = [self._constant(a) if isinstance(a, Node) else a for a in node.args]
        if any(a is None for a in args):
            return None
        with cresset.no_grad():
            if node.op == "call_method":
                return getattr(args[0], node.target)(*args[1:])
            if node.target is cresset.quantize_per_tensor:
                args[1:3] = float(args[1]), int(args[2])
            return node.target(*args)

    def _argument(self, node, index, name, default):
        return node.args[index] if len(node.args) > index else node.kwargs.get(name, default)

    def _prepack(self, node, kind, weight, bias, half):
        """(operator, its arguments) that pack a weight, which is a value or a node."""
        if kind == "linear":
            return (_OPS.linear_prepack_fp16 if half else _OPS.linear_prepack), (weight, bias)
        dims = int(kind[-2])
        several = lambda v: [v] * dims if isinstance(v, int) else list(v)  # noqa: E731
        if "transpose" in kind:
            names = (("stride", 1), ("padding", 0), ("output_padding", 0), ("groups", 1), ("dilation", 1))
        else:
            names = (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1))
        said = {name: self._argument(node, 3 + at, name, default) for at, (name, default) in enumerate(names)}
        middle = [several(said["output_padding"])] if "output_padding" in said else []
        facts = (several(said["stride"]), several(said["padding"]), *middle, several(said["dilation"]), said["groups"])
        return getattr(_OPS, kind + "_prepack"), (weight, bias, *facts)

    def _packed(self, node, kind, weight):
        """The node of the packed weight: an attribute, or where a weight is an input what packs it each time."""
        bias, constant = self._argument(node, 2, "bias", None), self._constant(weight)
        fixed_bias = self._constant(bias) if isinstance(bias, Node) else bias
        half = weight.op == "call_method" and weight.target == "to"
        if constant is None or (bias is not None and fixed_bias is None):
            with self.graph.inserting_before(node):
                return self.graph.call_function(*self._prepack(node, kind, weight.args[0] if half else weight, bias, half))
        fixed_bias = None if fixed_bias is None else fixed_bias.detach()
        target, args = self._prepack(node, kind, constant.float() if half else constant, fixed_bias, half)
        return self._put_packed(node, target(*args))

    def _function(self, node, kind):
        value, weight = node.args[0], self._argument(node, 1, "weight", None)
        if not _is_dequantize(value) or not _is_dequantize(weight):
            return
        source = value.args[0]
        if isinstance(source, Node) and source.target is cresset.quantize_per_tensor_dynamic:
            self._dynamic_function(node, kind, source, weight.args[0])
            return
        quantize, relu = self.quantize_behind(node)
        if quantize is None or (relu is not None and "transpose" in kind):
            return
        packed = self._packed(node, kind, weight.args[0])
        name = kind + "_relu" * (relu is not None)
        target = getattr(_OPS, name)
        node.target, node.args, node.kwargs = target, (source, packed, quantize.args[1], quantize.args[2]), {}
        for part in quantize.args[1:3]:
            node.prepend(part)
        self.take_place(node, quantize, relu)

    def _dynamic_function(self, node, kind, source, weight):
        if kind != "linear":
            return
        user = next(iter(node.users)) if len(node.users) == 1 else None
        relu = user if user is not None and self._is_relu(user) else None
        half = weight.op == "call_method" and weight.target == "to"
        name = f"linear{'_relu' * (relu is not None)}_dynamic{'_fp16' * half}"
        if not hasattr(_OPS, name):
            return
        packed = self._packed(node, kind, weight)
        rest = () if half else (source.args[2],)
        node.target, node.args, node.kwargs = getattr(_OPS, name), (source.args[0], packed, *rest), {}
        if relu is not None:
            relu.replace_all_uses_with(node)
            self.graph.erase_node(relu)

    def _put_packed(self, node, packed):
        path = self.scopes.get(node.name, ("", None))[0]
        name = get_new_attr_name_with_prefix(f"{path}_packed_weight_")(self.model)
        setattr(self.model, name, packed)
        with self.graph.inserting_before(node):
            return self.graph.create_node("get_attr", name)

    # Operators without weights.
    def binary(self):
        """Sums and products of quantized values."""
        for node in list(self.graph.nodes):
            if node.op == "call_function" and node.target in _BINARY and not self.skipped(node):
                self._binary(node)

    def _binary(self, node):
        plain, with_relu = _BINARY[node.target]
        quantize, relu = self.quantize_behind(node)
        tensors = [a for a in node.args[:2] if isinstance(a, Node)]
        if quantize is None or not tensors or not all(_is_dequantize(a) for a in tensors) or (relu is not None and with_relu is None):
            return
        if node.target is cresset.matmul and len(tensors) < 2:
            return
        args = [a.args[0] if _is_dequantize(a) else a for a in node.args[:2]]
        if len(tensors) == 1 and not isinstance(args[0], Node):
            args.reverse()
        tail = quantize.args[1:3] if len(tensors) == 2 else ()
        with self.graph.inserting_after(quantize):
            made = self.graph.create_node("call_function", plain if relu is None else with_relu, (*args, *tail), {})
        self.qconfigs.setdefault(made.name, self.qconfigs.get(node.name))
        self.take_place(made, quantize, relu)
        self.graph.erase_node(node)

    def others(self):
        """What has a scale of its own, or keeps the input's."""
        for node in list(self.graph.nodes):
            if self.skipped(node):
                continue
            module = self.module(node)
            values = self._values(node)
            if not values or not all(_is_dequantize(a) for a in values) or len(node.users) != 1:
                continue
            quantize = next(iter(node.users))
            if _is_half(quantize) and all(_is_half(a.args[0]) for a in values) and self._as_it_is(node, module):
                self._unwrap(node)
                self.take_place(node, quantize)
                continue
            if not _is_static_quantize(quantize) or quantize.args[0] is not node:
                continue
            if module is not None and type(module) in _WITH_SCALE:
                set_module(self.model, node.target, _WITH_SCALE[type(module)].from_reference(module, *(v.item() for v in self.scale_of(quantize))))
            elif node.op == "call_function" and node.target in _FUNCTIONS_WITH_SCALE:
                self._with_scale(node, quantize)
                continue
            elif not self._as_it_is(node, module):
                continue
            elif type(module) is nn.Softmax:
                set_module(self.model, node.target, nnq.Softmax.from_reference(module, *(v.item() for v in self.scale_of(quantize))))
            self._unwrap(node)
            self.take_place(node, quantize)

    @staticmethod
    def _values(node):
        if not node.args:
            return []
        first = node.args[0]
        return list(first) if isinstance(first, (list, tuple)) else [first] if isinstance(first, Node) else []

    @staticmethod
    def _as_it_is(node, module):
        if module is not None:
            return type(module) in _MODULES_AS_THEY_ARE
        return node.target in (_FUNCTIONS_AS_THEY_ARE if node.op == "call_function" else _METHODS_AS_THEY_ARE) if node.op.startswith("call_") else False

    @staticmethod
    def _unwrap(node):
        first = node.args[0]
        node.args = ([a.args[0] for a in first] if isinstance(first, (list, tuple)) else first.args[0], *node.args[1:])

    def _with_scale(self, node, quantize):
        facts = {"output_scale": quantize.args[1], "output_zero_point": quantize.args[2]}
        target = _FUNCTIONS_WITH_SCALE[node.target]
        names = list(inspect.signature(node.target).parameters)
        given = {**dict(zip(names[1:], node.args[1:])), **node.kwargs}
        taken = {argument.name for argument in target.default._schema.arguments}
        shape = [given.pop(name) for name in ("normalized_shape", "num_groups") if name in given]
        kwargs = {name: value for name, value in given.items() if name in taken}
        with self.graph.inserting_after(quantize):
            made = self.graph.create_node("call_function", target, (node.args[0].args[0], *shape), {**kwargs, **facts})
        self.take_place(made, quantize)
        self.graph.erase_node(node)

    def shapes(self):
        """Questions about shapes are asked of the quantized value."""
        for node in list(self.graph.nodes):
            asks = (node.op == "call_method" and node.target == "size") or (node.target is getattr and len(node.args) > 1 and node.args[1] in ("shape", "ndim"))
            if asks and _is_dequantize(node.args[0]) and isinstance(node.args[0].args[0], Node):
                node.args = (node.args[0].args[0], *node.args[1:])


def lower_to_native_backend(model, qconfigs, scopes):
    """The graph module of whole numbers."""
    made = _Lowering(model, dict(qconfigs), scopes)
    for step in (made.layers, made.functions, made.binary, made.others, made.shapes):
        step()
        made.graph.eliminate_dead_code()
    result = QuantizedGraphModule(model, made.graph, model.preserved_attr_names)
    result.delete_all_unused_submodules()
    return result
