"""Observers in the inlined graph of a script become quantize and dequantize; what stands between those becomes operators of `quantized`."""

import cresset

from ._script_graph import OF_SHAPES, Flat, constant_of, is_number, kind_of, modules_by_class, nodes_below, uses_of
from ._script_observers import FIXED, PASSING, QUANTIZED, RELU, SAME_VALUES, is_observer_call

__all__ = ["insert_quantize", "lower"]

_DEQUANTIZE = "aten::dequantize"
_ROWS = {"embedding_bag_byte": "byte", "embedding_bag_4bit": "4bit"}


# Scripts know dtypes and schemes by numbers.
_QUANTIZED_DTYPES = {12: cresset.qint8, 13: cresset.quint8, 14: cresset.qint32}
_HALF, _QUINT8, _PER_CHANNEL = 5, 13, (1, 3, 4)


class _Quantizing:
    """quantize and dequantize in the places of observers."""

    def __init__(self, flat, dynamic):
        self.flat, self.dynamic, self.replaced = flat, dynamic, []
        self.tensor_type = cresset._C.TensorType.get()

    def _number(self, before, name, value):
        root = self.flat.root
        free = self.flat.free_name(root, name)
        root._register_attribute(free, (cresset._C.FloatType if isinstance(value, float) else cresset._C.IntType).get(), value)
        return self.flat.get(before, self.flat.self_value, free, cresset._C.FloatType.get() if isinstance(value, float) else cresset._C.IntType.get())

    def _tensor(self, before, name, value):
        free = self.flat.free_name(self.flat.root, name)
        self.flat.root._register_attribute(free, self.tensor_type, value)
        return self.flat.get(before, self.flat.self_value, free, self.tensor_type)

    def replace(self, node):
        """One observer."""
        flat, value = self.flat, node.inputsAt(1)
        watcher = cresset.jit._recursive.wrap_cpp_module(flat.module_of(node.inputsAt(0)))
        dtype = watcher.dtype
        for use in node.output().uses():
            if use.user.kind() in OF_SHAPES:
                use.user.replaceInput(use.offset, value)
        is_weight = flat.tensor_of(value) is not None
        if getattr(watcher, "custom_op", "") in _ROWS:
            self._rows(node, value, watcher.custom_op)
        elif dtype == _HALF and is_weight:
            made = flat.put(node, "aten::_saturate_weight_to_fp16", [value], self.tensor_type)
            node.output().replaceAllUsesWith(made)
        elif dtype not in _QUANTIZED_DTYPES:
            node.output().replaceAllUsesWith(value)
        else:
            quantized = self._as_it_comes(node, value, watcher) if self.dynamic and not is_weight else self._fixed(node, value, watcher)
            node.output().replaceAllUsesWith(flat.put(node, _DEQUANTIZE, [quantized], self.tensor_type))
        node.destroy()

    def _fixed(self, node, value, watcher):
        flat, prefix = self.flat, value.debugName().replace(".", "_")
        scale, zero = watcher.calculate_qparams()
        dtype = flat.constant(node, watcher.dtype)
        if watcher.qscheme in _PER_CHANNEL:
            facts = [self._tensor(node, f"{prefix}_scale_", scale), self._tensor(node, f"{prefix}_zero_point_", zero), flat.constant(node, int(watcher.ch_axis))]
            return flat.put(node, "aten::quantize_per_channel", [value, *facts, dtype], self.tensor_type)
        facts = [self._number(node, f"{prefix}_scale_", float(scale)), self._number(node, f"{prefix}_zero_point_", int(zero))]
        return flat.put(node, "aten::quantize_per_tensor", [value, *facts, dtype], self.tensor_type)

    def _as_it_comes(self, node, value, watcher):
        flat = self.flat
        reduce = flat.constant(node, cresset.backends.quantized.engine in ("fbgemm", "x86", "onednn"))
        dtype = flat.constant(node, watcher.dtype)
        chosen = flat.graph.create("aten::_choose_qparams_per_tensor", [value, reduce], 2)
        chosen.insertBefore(node)
        scale, zero = chosen.outputs()
        scale.setType(cresset._C.FloatType.get())
        zero.setType(cresset._C.IntType.get())
        return flat.put(node, "aten::quantize_per_tensor", [value, scale, zero, dtype], self.tensor_type)

    def _rows(self, node, value, custom):
        """An embedding bag, whose weight is packed by rows. RuntimeError for one with a row that does not count."""
        flat, kind = self.flat, _ROWS[custom]
        for use in node.output().uses():
            bag = use.user
            if bag.kind() != "aten::embedding_bag":
                continue
            values = list(bag.inputs())
            if len(values) > 8 and not values[8].mustBeNone() and constant_of(values[8]) is not None:
                raise RuntimeError("Expected aten::embedding_bag padding_idx input to be None")
            facts = [] if kind == "byte" else [flat.constant(bag, fact) for fact in (False, 200, 0.16)]
            packed = flat.put(bag, f"quantized::embedding_bag_{kind}_prepack", [value, *facts], self.tensor_type)
            none, false = flat.constant(bag, None), flat.constant(bag, False)
            weights = none if values[6].mustBeNone() else values[6]
            inputs = [packed, values[1], values[2], flat.constant(bag, False), flat.constant(bag, 0), false, weights, none, values[7]]
            made = flat.put(bag, f"quantized::embedding_bag_{kind}_rowwise_offsets", inputs, self.tensor_type)
            next(iter(bag.outputs())).replaceAllUsesWith(made)
        node.output().replaceAllUsesWith(value)

    # Dequantized values go through what takes quantized ones.
    def spread(self, block):
        """Operators between quantized values: behind those that keep the range, or have one of their own, results are quantized again."""
        for node in list(block.nodes()):
            for inner in node.blocks():
                self.spread(inner)
            kind = node.kind()
            if kind == "prim::If":
                self._branches(node)
            elif kind == "aten::chunk":
                self._pieces(node)
            elif (kind in PASSING | SAME_VALUES | set(FIXED) or self._adds_a_number(node)) and self._takes_dequantized(node):
                self._behind(node)

    @staticmethod
    def _adds_a_number(node):
        return node.kind() in ("aten::add", "aten::add_", "aten::mul", "aten::mul_") and is_number(node.inputsAt(1))

    @staticmethod
    def _takes_dequantized(node):
        tensors = [value for value in node.inputs() if not is_number(value)]
        return bool(tensors) and all(kind_of(value) == _DEQUANTIZE for value in tensors)

    def _behind(self, node):
        flat, kind = self.flat, node.kind()
        if kind in PASSING:
            for number in range(node.inputsSize()):
                if kind_of(node.inputsAt(number)) == _DEQUANTIZE:
                    node.replaceInput(number, node.inputsAt(number).node().inputsAt(0))
            self._dequantized(list(node.outputs()), node.next())
            return
        if self._adds_a_number(node):
            self._with_number(node, kind.removeprefix("aten::").rstrip("_"))
            return
        out, given, before = node.output(), node.inputsAt(0).node().inputsAt(0), node.next()
        if kind in FIXED:
            scale, zero = FIXED[kind]
            facts = [flat.constant(before, scale), flat.constant(before, zero), flat.constant(before, _QUINT8)]
        else:
            facts = [flat.put(before, f"aten::{name}", [given], of_type) for name, of_type in (
                ("q_scale", cresset._C.FloatType.get()), ("q_zero_point", cresset._C.IntType.get()))]  # fmt: skip
            facts.append(flat.put(before, "prim::dtype", [given], cresset._C.IntType.get()))
        quantized = flat.put(before, "aten::quantize_per_tensor", [out, *facts], self.tensor_type)
        made = flat.put(before, _DEQUANTIZE, [quantized], self.tensor_type)
        out.replaceAllUsesAfterNodeWith(made.node(), made)

    def _with_number(self, node, kind):
        """A number is added, or multiplied by: the scale of the result follows from it."""
        source = node.inputsAt(0).node().inputsAt(0)
        if kind == "add" and node.inputsSize() > 2 and constant_of(node.inputsAt(2)) != 1:
            return
        uses = uses_of(node.output())
        relu = len(uses) == 1 and uses[0].user.kind() in RELU
        last = uses[0].user if relu else node
        number = node.inputsAt(1)
        if number.type().kind() == "TensorType":
            held = number.toIValue()
            number = self.flat.constant(last, held.item() if isinstance(held, cresset.Tensor) else held)
        made = self.flat.put(last, f"quantized::{kind}_scalar" + "_relu" * relu, [source, number], self.tensor_type)
        last.output().replaceAllUsesWith(self.flat.put(last, _DEQUANTIZE, [made], self.tensor_type))
        self.replaced += [node, last]

    def _pieces(self, node):
        """The list of chunk, where it is taken apart."""
        if kind_of(node.inputsAt(0)) != _DEQUANTIZE or not all(use.user.kind() == "prim::ListUnpack" for use in node.output().uses()):
            return
        node.replaceInput(0, node.inputsAt(0).node().inputsAt(0))
        for use in node.output().uses():
            self._dequantized(list(use.user.outputs()), use.user.next())

    def _dequantized(self, values, before):
        """The values are quantized from here on: their users take what they stand for."""
        for value in values:
            if value.type().kind() != "TensorType":
                continue
            made = self.flat.put(before, _DEQUANTIZE, [value], self.tensor_type)
            value.replaceAllUsesAfterNodeWith(made.node(), made)

    def _branches(self, node):
        ends = [list(block.outputs()) for block in node.blocks()]
        for number, out in enumerate(list(node.outputs())):
            if out.type().kind() == "TensorType" and all(kind_of(end[number]) == _DEQUANTIZE for end in ends):
                for block, end in zip(node.blocks(), ends):
                    block.returnNode().replaceInput(number, end[number].node().inputsAt(0))
                self._dequantized([out], node.next())


def insert_quantize(model, dynamic=False):
    """The graph with quantize and dequantize in the places of observers."""
    flat = Flat(model, inlined=True)
    made = _Quantizing(flat, dynamic)
    for node in list(nodes_below(flat.graph)):
        if is_observer_call(flat, node):
            made.replace(node)
    if not dynamic:
        made.spread(flat.graph)
        _clean(flat.graph, made.replaced)
    cresset._C._jit_pass_dce(flat.graph)
    for modules in modules_by_class(flat.root).values():
        for name, *_ in list(modules[0]._attributes()):
            if name.startswith("_observer_"):
                modules[0]._remove_attribute(name, modules[1:])
    return flat


class _Lowering:
    """Operators of `quantized` in the place of what stands between dequantize and quantize."""

    def __init__(self, flat):
        self.flat, self.graph, self.replaced = flat, flat.graph, []
        self.tensor_type = cresset._C.TensorType.get()

    @staticmethod
    def _quantized(value):
        """What a value is dequantized from, or None."""
        return value.node().inputsAt(0) if kind_of(value) == _DEQUANTIZE else None

    @staticmethod
    def _quantize_behind(node):
        """(quantize, whether a ReLU stands before it) where the result has no other use."""
        value, relu = node.output(), False
        while True:
            uses = uses_of(value)
            if len(uses) != 1:
                return None, False
            user = uses[0].user
            if user.kind() == "aten::quantize_per_tensor" and uses[0].offset == 0:
                return user, relu
            if relu or user.kind() not in RELU:
                return None, False
            value, relu = user.output(), True

    def _packed(self, node, kind, weight):
        """The packed weight: an attribute, where weight and bias are, else packed each time."""
        flat, values = self.flat, list(node.inputs())
        bias = None if values[2].mustBeNone() else values[2]
        base = "linear" if kind.startswith("linear") else kind
        half = kind_of(weight) == "aten::_saturate_weight_to_fp16"
        if base == "linear":
            rest, name = [], "linear_prepack_fp16" if half else "linear_prepack"
        else:
            order = (3, 4, 5, 7, 6) if "transpose" in base else (3, 4, 5, 6)
            rest, name = [values[index] for index in order], f"{base}_prepack"
        source = weight.node().inputsAt(0)
        inputs = [source if half else weight, values[2], *rest]
        tensor, bias_tensor = flat.tensor_of(source), None if bias is None else flat.tensor_of(bias)
        if tensor is None or (bias is not None and bias_tensor is None):
            return flat.put(node, f"quantized::{name}", inputs, getattr(cresset.ops.quantized, name).default._schema.returns[0].type)
        with cresset.no_grad():
            given = tensor.float() if half else self._constant_weight(weight.node(), tensor.detach())
            facts = [constant_of(value) for value in rest]
            packed = getattr(cresset.ops.quantized, name)(given, None if bias is None else bias_tensor.detach(), *facts)
        free = flat.free_name(flat.root, "_packed_weight_")
        of_type = cresset._C._jit_try_infer_type(packed).type()
        flat.root._register_attribute(free, of_type, packed)
        return flat.get(node, flat.self_value, free, of_type)

    def _constant_weight(self, quantize, tensor):
        flat = self.flat
        facts = [self._fact(value) for value in list(quantize.inputs())[1:]]
        if quantize.kind() == "aten::quantize_per_tensor":
            return cresset.quantize_per_tensor(tensor, float(facts[0]), int(facts[1]), _QUANTIZED_DTYPES[facts[2]])
        place = [flat.tensor_of(value) for value in list(quantize.inputs())[1:3]]
        return cresset.quantize_per_channel(tensor, *place, int(facts[2]), _QUANTIZED_DTYPES[facts[3]])

    def _fact(self, value):
        if kind_of(value) == "prim::Constant":
            return value.toIValue()
        owner, _, name = self.flat.attribute_of(value)
        return owner.getattr(name)

    def run(self):
        """All nodes."""
        for node in list(nodes_below(self.graph)):
            if node.kind() in QUANTIZED and node.inputsSize():
                self._one(node)
            elif node.kind() == "aten::cat":
                self._joined(node)
            elif node.kind() in SAME_VALUES | set(FIXED) | RELU:
                self._as_it_is(node)
        _clean(self.graph, self.replaced)
        cresset._C._jit_pass_dce(self.graph)
        return self.flat

    def _one(self, node):
        kind = node.kind().removeprefix("aten::").rstrip("_")
        positions, weight = QUANTIZED[node.kind()]
        if weight is not None:
            self._weighted(node, kind)
        elif len(positions) == 2:
            self._binary(node, kind)
        else:
            self._with_scale(node, kind)

    def _weighted(self, node, kind):
        value, weight = node.inputsAt(0), node.inputsAt(1)
        if kind_of(weight) == "aten::_saturate_weight_to_fp16":
            self._take(node, "linear_dynamic_fp16", [value, self._packed(node, kind, weight)])
            return
        source, weight = self._quantized(value), self._quantized(weight)
        if source is None or weight is None:
            return
        if kind == "linear" and source.node().kind() == "aten::quantize_per_tensor" and kind_of(source.node().inputsAt(1)) == "aten::_choose_qparams_per_tensor":
            chosen = source.node().inputsAt(1).node()
            self._take(node, "linear_dynamic", [source.node().inputsAt(0), self._packed(node, kind, weight), chosen.inputsAt(1)])
            return
        quantize, relu = self._quantize_behind(node)
        if quantize is None or (relu and "transpose" in kind):
            return
        self._take(quantize, kind + "_relu" * relu, [source, self._packed(node, kind, weight), *list(quantize.inputs())[1:3]], node)

    def _binary(self, node, kind):
        left, right = node.inputsAt(0), node.inputsAt(1)
        if is_number(right):
            return
        sources = [self._quantized(value) for value in (left, right)]
        quantize, relu = self._quantize_behind(node)
        if quantize is None or None in sources or (kind == "add" and node.inputsSize() > 2 and constant_of(node.inputsAt(2)) != 1):
            return
        if hasattr(cresset.ops.quantized, kind + "_relu" * relu):
            self._take(quantize, kind + "_relu" * relu, [*sources, *list(quantize.inputs())[1:3]], node)

    def _with_scale(self, node, kind):
        source = self._quantized(node.inputsAt(0))
        quantize, relu = self._quantize_behind(node)
        if source is None or quantize is None or (relu and kind != "batch_norm"):
            return
        values, facts = list(node.inputs()), list(quantize.inputs())[1:3]
        if kind == "batch_norm":
            inputs = [source, *values[1:5], values[7], *facts]
        elif kind == "elu":
            inputs = [source, *facts, *values[1:4]]
        elif kind == "leaky_relu":
            inputs = [source, values[1], self.flat.constant(quantize, False), *facts]
        elif kind == "instance_norm":
            inputs = [source, values[1], values[2], values[7], *facts]
        elif kind in ("layer_norm", "group_norm"):
            inputs = [source, *values[1:5], *facts]
        else:
            inputs = [source, *facts]
        self._take(quantize, kind + "_relu" * relu, inputs, node)

    def _joined(self, node):
        if kind_of(node.inputsAt(0)) != "prim::ListConstruct":
            return
        parts = list(node.inputsAt(0).node().inputs())
        sources, (quantize, relu) = [self._quantized(part) for part in parts], self._quantize_behind(node)
        if quantize is None or relu or None in sources:
            return
        several = self.flat.put(node, "prim::ListConstruct", sources, node.inputsAt(0).type())
        self._take(quantize, "cat", [several, node.inputsAt(1), *list(quantize.inputs())[1:3]], node)

    def _as_it_is(self, node):
        """What takes quantized values, and gives them by itself: quantize behind it goes."""
        source = self._quantized(node.inputsAt(0))
        if source is None or not node.outputsSize():
            return
        quantize, _ = self._quantize_behind(node)
        if quantize is not None:
            node.replaceInput(0, source)
            quantize.output().replaceAllUsesWith(node.output())
            self.replaced.append(quantize)

    def _take(self, last, name, inputs, first=None):
        """The operator in the place of what stands from `first` to `last`."""
        last.output().replaceAllUsesWith(self.flat.put(last, f"quantized::{name}", inputs, self.tensor_type))
        self.replaced.append(last)
        while first is not None and last.output().unique() != first.output().unique():
            last = last.inputsAt(0).node()
            self.replaced.append(last)


_QUANTIZERS = {_DEQUANTIZE, "aten::quantize_per_tensor", "aten::quantize_per_channel", "aten::_choose_qparams_per_tensor"}


def _clean(graph, replaced):
    """Take nodes away that others took the place of, also those that write in place, and quantizers that nothing uses."""
    gone = {node.output().unique() for node in replaced}
    for node in reversed(list(nodes_below(graph))):
        outs = list(node.outputs())
        if (node.kind() in _QUANTIZERS or (len(outs) == 1 and outs[0].unique() in gone)) and not any(out.hasUses() for out in outs):
            node.destroy()


def lower(flat):
    """Operators of `quantized`, with packed weights."""
    return _Lowering(flat).run()
