"""Quantization of graphs beside PyTorch 2.13: nodes of converted graphs, and results before and after lowering, are its (written down)."""

import copy
import io
import warnings

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import quantization as quant
from cresset.ao.quantization import QConfigMapping, get_default_qat_qconfig_mapping, get_default_qconfig_mapping
from cresset.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, fuse_fx, prepare_fx, prepare_qat_fx
from cresset.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore")


def fill(module):
    """Numbers that do not depend on a generator."""
    named = [*module.named_parameters(), *module.named_buffers()]
    for k, (name, value) in enumerate((n, v) for n, v in named if v.dtype.is_floating_point):
        with torch.no_grad():
            value.copy_(torch.sin(torch.arange(value.numel(), dtype=torch.float32) * (0.8 + 0.1 * k) + 0.3).reshape(value.shape) * 0.5 + ("running_var" in name))
    return module


class Model(nn.Module):
    """Layers by name, and a function that is forward."""

    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return self.function(self, x)


def conv_bn_relu():
    return Model(lambda m, x: m.conv2(m.relu(m.bn(m.conv(x)))), conv=nn.Conv2d(3, 4, 3), bn=nn.BatchNorm2d(4), relu=nn.ReLU(), conv2=nn.Conv2d(4, 4, 1))


def residual():
    layers = {"c1": nn.Conv2d(3, 3, 3, padding=1), "c2": nn.Conv2d(3, 3, 3, padding=1), "pool": nn.AdaptiveAvgPool2d(1), "fc": nn.Linear(3, 2)}
    return Model(lambda m, x: m.fc(torch.flatten(m.pool(F.relu(m.c2(F.relu(m.c1(x))) + x)), 1)), **layers)


def linears():
    return Model(lambda m, x: m.c(m.b(F.relu(m.a(x)))), a=nn.Linear(4, 5), b=nn.Linear(5, 5), c=nn.Sequential(nn.Linear(5, 3), nn.ReLU()))


def activations():
    layers = {"a": nn.Linear(4, 4), "sig": nn.Sigmoid(), "hs": nn.Hardswish(), "elu": nn.ELU(), "b": nn.Linear(4, 4), "t": nn.Tanh()}
    return Model(lambda m, x: m.t(m.b(m.elu(m.hs(m.sig(m.a(x))))).sigmoid()), **layers)


def concatenated():
    return Model(lambda m, x: F.max_pool2d(torch.cat([m.a(x), m.b(x)], 1), 2), a=nn.Conv2d(3, 3, 1), b=nn.Conv2d(3, 3, 1))


def functional():
    made = Model(lambda m, x: F.linear(F.relu(F.linear(x, m.w, m.bias)), m.w2))
    made.w, made.bias, made.w2 = nn.Parameter(torch.zeros(4, 4)), nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(3, 4))
    return made


def functional_conv():
    made = Model(lambda m, x: F.relu(F.conv2d(x, m.w, m.bias, (1, 1), (1, 1), (1, 1), 1)))
    made.w, made.bias = nn.Parameter(torch.zeros(4, 3, 3, 3)), nn.Parameter(torch.zeros(4))
    return made


def shapes():
    def forward(m, x):
        y = m.a(x)
        y = y.mean((2, 3)).reshape(y.size(0), 4).view(-1, 4).transpose(0, 1).contiguous().permute(1, 0)
        return m.l(torch.clamp(y, -1, 1) * 2 + 1)

    return Model(forward, a=nn.Conv2d(3, 4, 1), l=nn.Linear(4, 4))


def norms():
    return Model(lambda m, x: m.sm(m.d(m.n(m.l(x)))), l=nn.Linear(4, 4), n=nn.LayerNorm(4), d=nn.Dropout(0.3), sm=nn.Softmax(-1))


def batch_norms():
    layers = {"bn": nn.BatchNorm2d(3), "bn2": nn.BatchNorm2d(3), "ct": nn.ConvTranspose2d(3, 2, 2), "lk": nn.LeakyReLU()}
    return Model(lambda m, x: m.lk(m.ct(m.bn2(F.relu(m.bn(x))))), **layers)


def recurrent():
    return Model(lambda m, x: F.relu(m.l(m.lstm(x)[0])), lstm=nn.LSTM(4, 4), l=nn.Linear(4, 3))


def twice():
    return Model(lambda m, x: torch.matmul(m.l(x), m.l(x + 0.5)), l=nn.Linear(4, 4))


def embedded():
    return Model(lambda m, x: m.l(m.e(x)), e=nn.Embedding(6, 4), l=nn.Linear(4, 2))


IMAGES, ROWS = torch.sin(torch.arange(216.0)).reshape(2, 3, 6, 6), torch.cos(torch.arange(16.0) * 1.3).reshape(4, 4)
SEQUENCE, INDICES = torch.cos(torch.arange(24.0)).reshape(2, 3, 4), torch.tensor([0, 3, 5, 1])


def usual():
    return get_default_qconfig_mapping("fbgemm")


def trained():
    return get_default_qat_qconfig_mapping("fbgemm")


def only(qconfig):
    return lambda: QConfigMapping().set_global(qconfig)


CASES = {  # name: (model, input, what is quantized, in training?)
    "conv, batch norm, relu": (conv_bn_relu, IMAGES, usual, False),
    "by tensors": (conv_bn_relu, IMAGES, only(quant.default_qconfig), False),
    "residual": (residual, IMAGES, usual, False),
    "linear": (linears, ROWS, usual, False),
    "activations": (activations, ROWS, usual, False),
    "cat": (concatenated, IMAGES, usual, False),
    "functional": (functional, ROWS, usual, False),
    "functional conv": (functional_conv, IMAGES, usual, False),
    "shapes": (shapes, IMAGES, usual, False),
    "norms": (norms, ROWS, usual, False),
    "batch norms": (batch_norms, IMAGES, usual, False),
    "twice": (twice, ROWS, usual, False),
    "dynamic": (recurrent, SEQUENCE, only(quant.default_dynamic_qconfig), False),
    "dynamic float16": (linears, ROWS, only(quant.float16_dynamic_qconfig), False),
    "dynamic functional": (functional, ROWS, only(quant.per_channel_dynamic_qconfig), False),
    "embedding": (embedded, INDICES, lambda: usual().set_object_type(nn.Embedding, quant.float_qparams_weight_only_qconfig), False),
    "name": (linears, ROWS, lambda: usual().set_module_name("b", None), False),
    "regular expression": (linears, ROWS, lambda: usual().set_module_name_regex("c.*", None), False),
    "order": (functional, ROWS, lambda: usual().set_module_name_object_type_order("", F.linear, 1, None), False),
    "trained conv": (conv_bn_relu, IMAGES, trained, True),
    "trained linear": (linears, ROWS, trained, True),
    "trained embedding": (embedded, INDICES, lambda: trained().set_object_type(nn.Embedding, quant.default_embedding_qat_qconfig), True),
}


def described(graph_module):
    """The calls of a graph: classes of modules, names of functions and methods."""
    words = []
    for node in graph_module.graph.nodes:
        if node.op == "call_module":
            words.append(type(graph_module.get_submodule(node.target)).__name__)
        elif node.op in ("call_function", "call_method"):
            words.append(node.target if isinstance(node.target, str) else node.target.__name__)
    return " ".join(words)


def numbers(result):
    return [round(value, 4) + 0.0 for value in result.detach().flatten()[:5].tolist()]


def prepared(name):
    make, x, mapping, in_training = CASES[name]
    model = fill(make())
    if not in_training:
        made = prepare_fx(model.eval(), mapping(), (x,))
        for step in range(2):
            made(x * (1 + step * 0.5) if x.is_floating_point() else x)
        return made, x
    made = prepare_qat_fx(model.train(), mapping(), (x,))
    optimizer = torch.optim.SGD(made.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        made(x).square().mean().backward()
        optimizer.step()
    return made.eval(), x


def quantized(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, x = prepared(name)
        reference = convert_to_reference_fx(copy.deepcopy(made))(x)
        whole = convert_fx(made)
        return described(whole), numbers(reference), numbers(whole(x))


EXPECTED = {
    "conv, batch norm, relu": (
        "quantize_per_tensor ConvReLU2d Conv2d dequantize",
        [0.487, 0.5334, 0.545, 0.5334, 0.4754], [0.487, 0.5334, 0.545, 0.5334, 0.4754],
    ),
    "by tensors": (
        "quantize_per_tensor ConvReLU2d Conv2d dequantize",
        [0.4872, 0.522, 0.5452, 0.5336, 0.4756], [0.4872, 0.522, 0.5452, 0.5336, 0.4756],
    ),
    "residual": (
        "quantize_per_tensor ConvReLU2d Conv2d add_relu AdaptiveAvgPool2d flatten Linear dequantize",
        [0.6204, 0.0862, 0.6089, 0.1091], [0.6204, 0.0862, 0.6089, 0.1091],
    ),
    "linear": (
        "quantize_per_tensor LinearReLU Linear LinearReLU dequantize",
        [0.9661, 1.1633, 0.5817, 0.9464, 1.1732], [0.9661, 1.1633, 0.5817, 0.9464, 1.1732],
    ),
    "activations": (
        "quantize_per_tensor Linear Sigmoid Hardswish ELU Linear sigmoid Tanh dequantize",
        [0.5469, 0.5234, 0.4922, 0.4844, 0.5547], [0.5469, 0.5234, 0.4922, 0.4844, 0.5547],
    ),
    "cat": (
        "quantize_per_tensor Conv2d Conv2d cat max_pool2d dequantize",
        [-0.0652, 0.4239, 0.6358, 0.2119, 0.1467], [-0.0652, 0.4239, 0.6358, 0.2119, 0.1467],
    ),
    "functional": (
        "quantize_per_tensor linear_relu linear dequantize",
        [0.4178, -0.2089, -0.148, 0.4352, -0.2437], [0.4178, -0.2089, -0.148, 0.4352, -0.2437],
    ),
    "functional conv": (
        "quantize_per_tensor conv2d_relu dequantize",
        [0.0932, 0.0, 0.0, 0.0, 0.3494], [0.0932, 0.0, 0.0, 0.0, 0.3494],
    ),
    "shapes": (
        "quantize_per_tensor Conv2d mean size reshape view transpose contiguous permute clamp mul add Linear dequantize",
        [1.8824, -0.4123, -0.2689, 1.4163, 1.8645], [1.8824, -0.4123, -0.2689, 1.4163, 1.8645],
    ),
    "norms": (
        "quantize_per_tensor Linear LayerNorm Dropout Softmax dequantize",
        [0.1484, 0.5156, 0.2109, 0.125, 0.2188], [0.1484, 0.5156, 0.2109, 0.125, 0.2188],
    ),
    "batch norms": (
        "quantize_per_tensor BNReLU2d BatchNorm2d ConvTranspose2d LeakyReLU dequantize",
        [0.2868, 0.4408, 0.2938, 0.2239, 0.2729], [0.2868, 0.4408, 0.2938, 0.2239, 0.2729],
    ),
    "twice": (
        "quantize_per_tensor Linear add Linear matmul dequantize",
        [1.2469, -0.6616, 1.5523, -1.0688, 1.1197], [1.2724, -0.6616, 1.6032, -1.0942, 1.0942],
    ),
    "dynamic": (
        "LSTM getitem LinearReLU",
        [0.0766, 0.268, 0.1513, 0.0687, 0.2239], [0.0766, 0.2679, 0.1513, 0.0687, 0.2239],
    ),
    "dynamic float16": (
        "LinearReLU Linear LinearReLU",
        [0.9659, 1.1633, 0.5755, 0.9528, 1.1732], [0.9663, 1.1635, 0.5758, 0.9529, 1.1733],
    ),
    "dynamic functional": (
        "linear_relu_dynamic linear_dynamic",
        [0.4177, -0.2112, -0.1438, 0.4342, -0.2482], [0.4177, -0.2112, -0.1438, 0.4342, -0.2482],
    ),
    "embedding": (
        "Embedding quantize_per_tensor Linear dequantize",
        [0.5906, 0.1162, -0.3098, 0.9005, -0.3002], [0.5906, 0.1162, -0.3098, 0.9005, -0.3002],
    ),
    "name": (
        "quantize_per_tensor LinearReLU dequantize Linear quantize_per_tensor LinearReLU dequantize",
        [0.9661, 1.1633, 0.5817, 0.9464, 1.1732], [0.9661, 1.1633, 0.5817, 0.9464, 1.1732],
    ),
    "regular expression": (
        "quantize_per_tensor LinearReLU Linear dequantize LinearReLU",
        [0.9704, 1.1686, 0.5814, 0.9517, 1.1705], [0.9704, 1.1686, 0.5814, 0.9517, 1.1705],
    ),
    "order": (
        "quantize_per_tensor linear_relu dequantize linear",
        [0.4176, -0.2077, -0.1461, 0.4317, -0.2452], [0.4176, -0.2077, -0.1461, 0.4317, -0.2452],
    ),
    "trained conv": (
        "quantize_per_tensor ConvReLU2d Conv2d dequantize",
        [0.4821, 0.4959, 0.5096, 0.4959, 0.4683], [0.4821, 0.4959, 0.5096, 0.4959, 0.4683],
    ),
    "trained linear": (
        "quantize_per_tensor LinearReLU Linear LinearReLU dequantize",
        [0.8678, 1.0524, 0.4893, 0.8309, 1.0432], [0.8678, 1.0524, 0.4893, 0.8309, 1.0432],
    ),
    "trained embedding": (
        "Embedding quantize_per_tensor Linear dequantize",
        [0.5925, 0.1068, -0.2914, 0.8645, -0.2914], [0.5925, 0.1068, -0.2914, 0.8645, -0.2914],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_beside_pytorch(name):
    nodes, reference, whole = quantized(name)
    assert nodes == EXPECTED[name][0]
    assert reference == pytest.approx(EXPECTED[name][1], abs=2e-4)
    assert whole == pytest.approx(EXPECTED[name][2], abs=2e-4)


def test_names_of_observers_and_scales():
    made, _ = prepared("conv, batch norm, relu")
    names = [node.name for node in made.graph.nodes]
    assert names == ["x", "activation_post_process_0", "conv", "activation_post_process_1", "conv2", "activation_post_process_2", "output"]
    assert type(made).__mro__[1].__name__ == "ObservedGraphModule"
    reference = convert_to_reference_fx(copy.deepcopy(made))
    assert [n.target for n in reference.graph.nodes if n.op == "get_attr"] == [
        "conv_input_scale_0", "conv_input_zero_point_0", "conv_scale_0", "conv_zero_point_0", "conv2_scale_0", "conv2_zero_point_0",
    ]  # fmt: skip
    assert type(reference.conv[0]) is torch.ao.nn.quantized.reference.Conv2d


def test_shared_observers():
    made, _ = prepared("cat")
    joined = next(n for n in made.graph.nodes if n.target is torch.cat)
    watchers = [made.get_submodule(n.target) for n in (*joined.all_input_nodes, *joined.users)]
    assert len(watchers) == 3 and len(set(map(id, watchers))) == 1


def test_states_of_packed_weights():
    made, x = prepared("functional")
    whole, other = convert_fx(copy.deepcopy(made)), convert_fx(made)
    state = whole.state_dict()
    assert sorted(state) == [
        "_input_scale_0", "_input_zero_point_0", "_packed_weight_0", "_packed_weight_1", "_scale_1", "_scale_3", "_zero_point_1", "_zero_point_3",
    ]  # fmt: skip
    other._scale_1.fill_(1.0)
    other.load_state_dict(state)
    assert torch.equal(other(x), whole(x))
    assert torch.equal(copy.deepcopy(whole)(x), whole(x))
    made, x = prepared("conv, batch norm, relu")
    whole, file = convert_fx(made), io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    whole.load_state_dict(torch.load(file))


def test_fuse_fx():
    model = conv_bn_relu().eval()
    model.kept = 3
    fused = fuse_fx(model, {"preserved_attributes": ["kept"]})
    assert described(fused) == "ConvReLU2d Conv2d" and fused.kept == 3
    x = IMAGES
    torch.testing.assert_close(fused(x), model(x))
    by_function = Model(lambda m, x: F.relu(m.bn(m.conv(x))), conv=nn.Conv2d(3, 4, 3), bn=nn.BatchNorm2d(4)).eval()
    assert described(fuse_fx(by_function)) == "ConvReLU2d"
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fuse_fx(conv_bn_relu().train())


def test_inputs_and_results_that_are_quantized():
    custom = {"input_quantized_idxs": [0], "output_quantized_idxs": [0]}
    made = prepare_fx(linears().eval(), usual(), (ROWS,), prepare_custom_config=custom)
    made(ROWS)
    whole = convert_fx(made)
    assert described(whole) == "LinearReLU Linear LinearReLU"
    assert whole(torch.quantize_per_tensor(ROWS, 0.02, 64, torch.quint8)).dtype is torch.quint8


class Doubled(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Observed(Doubled):
    pass


class Whole(Doubled):
    def forward(self, x):
        return torch.quantize_per_tensor(x.dequantize() * self.factor, self.scale, self.zero_point, torch.quint8)

    @classmethod
    def from_observed(cls, module):
        made = cls(module.factor)
        made.scale, made.zero_point = (v.item() for v in module.activation_post_process.calculate_qparams())
        return made


class ObservedDoubled(Doubled):
    from_float = classmethod(lambda cls, module: Observed(module.factor))


def test_modules_with_forms_of_their_own():
    model = Model(lambda m, x: m.b(m.d(m.a(x))), a=nn.Linear(4, 4), d=Doubled(), b=nn.Linear(4, 4)).eval()
    made = prepare_fx(model, usual(), (ROWS,), {"float_to_observed_custom_module_class": {"static": {Doubled: ObservedDoubled}}})
    made(ROWS)
    whole = convert_fx(made, {"observed_to_quantized_custom_module_class": {"static": {Observed: Whole}}})
    assert described(whole) == "quantize_per_tensor Linear Whole Linear dequantize"
    assert (whole(ROWS) - model(ROWS)).abs().max() < 0.1


def test_mappings_for_conversion():
    """What was prepared may stay float: by name here."""
    q = quant.get_default_qat_qconfig("fbgemm")
    mapping = {"": None, "object_type": [(nn.Linear, q)]}
    made = prepare_qat_fx(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).train(), mapping, (ROWS,))
    made(ROWS)
    assert described(convert_fx(copy.deepcopy(made), qconfig_mapping=mapping)) == "quantize_per_tensor Linear Linear dequantize"
    whole = convert_fx(made, qconfig_mapping={**mapping, "module_name": [("0", None)]})
    assert described(whole) == "Linear quantize_per_tensor Linear dequantize"
    with pytest.raises(AssertionError, match="Missing key object_type <class .*> in convert QConfigMapping when it was present in prepare"):
        convert_fx(prepare_fx(nn.Sequential(nn.Linear(4, 4)).eval(), mapping, (ROWS,)), qconfig_mapping={"": None})


def test_refusals():
    with pytest.raises(ValueError, match="input model must be a GraphModule"):
        convert_fx(nn.Linear(1, 1))
    with pytest.raises(AssertionError, match="incoming model must be produced by prepare_fx"):
        convert_fx(torch.fx.symbolic_trace(nn.Linear(1, 1)))
    with pytest.raises(NotImplementedError, match="keep_original_weights"):
        convert_fx(prepare_fx(linears().eval(), usual(), (ROWS,)), keep_original_weights=True)
    with pytest.raises(AssertionError, match="Per channel weight observer is not supported yet for ConvTranspose"):
        prepare_fx(nn.Sequential(nn.ConvTranspose2d(1, 1, 1)).eval(), {"": quant.get_default_qconfig("fbgemm")}, (torch.zeros(1, 1, 1, 1),))
    mixed = QConfigMapping().set_object_type(nn.Conv2d, quant.default_qconfig)
    with pytest.raises(LookupError, match="During fusion, we need to specify the same qconfigs for all module types in"):
        prepare_fx(conv_bn_relu().eval(), mixed, (IMAGES,))


def test_old_names():
    import importlib

    assert importlib.import_module("cresset.quantization.quantize_fx").prepare_qat_fx is prepare_qat_fx
    assert importlib.import_module("cresset.quantization.fx.graph_module").QuantizedGraphModule.__name__ == "QuantizedGraphModule"
