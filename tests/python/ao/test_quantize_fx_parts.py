"""Parts of the quantization of graphs: modules with graphs of their own, functions with a scale, half precision, masks; nodes as PyTorch 2.13 has them."""

import copy

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import quantization as quant
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.quantized import dynamic as nnqd
from cresset.ao.nn.quantized import reference as nnqr
from cresset.ao.quantization.backend_config import BackendConfig, BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType
from cresset.ao.quantization.fx import pattern_utils
from cresset.ao.quantization.fx.match_utils import _is_match
from cresset.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx, prepare_qat_fx
from cresset.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore")


def nodes(model):
    """The names of what is called, in order."""
    found = []
    for node in model.graph.nodes:
        if node.op == "call_module":
            found.append(type(model.get_submodule(node.target)).__name__)
        elif node.op in ("call_function", "call_method"):
            found.append(node.target if isinstance(node.target, str) else node.target.__name__)
    return " ".join(found)


class Apart(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)

    def forward(self, x):
        return self.conv(x)


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.apart = nn.Conv2d(1, 1, 1), Apart()

    def forward(self, x):
        return self.apart(self.conv(x))


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(("indexes", "outer", "inner"), [
    ([], "quantize_per_tensor Conv2d dequantize GraphModule", "quantize_per_tensor Conv2d dequantize"),
    ([0], "quantize_per_tensor Conv2d GraphModule dequantize", "Conv2d"),
])
def test_a_module_with_a_graph_of_its_own(by_name, indexes, outer, inner):
    torch.manual_seed(0)
    model, x = Whole().eval(), torch.randn(2, 1, 3, 3)
    entry = ("apart" if by_name else Apart, None, (x,), {"input_quantized_idxs": indexes, "output_quantized_idxs": indexes}, None)
    made = prepare_fx(copy.deepcopy(model), {"": quant.default_qconfig}, (x,), {"standalone_module_name" if by_name else "standalone_module_class": [entry]})
    made(x)
    assert nodes(made.apart) == ("MinMaxObserver Conv2d MinMaxObserver" if not indexes else "Conv2d MinMaxObserver")
    whole = convert_fx(made)
    assert nodes(whole).replace("QuantizedGraphModule", "GraphModule") == outer and nodes(whole.apart) == inner
    plain = prepare_fx(model, {"": quant.default_qconfig}, (x,))
    plain(x)
    assert torch.equal(whole(x), convert_fx(plain)(x))


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)


class Observed(Own):
    @classmethod
    def from_float(cls, module):
        made = cls()
        made.linear, made.qconfig = module.linear, module.qconfig
        return made


class Static(Own):
    @classmethod
    def from_observed(cls, observed):
        made = cls()
        observed.linear.activation_post_process = observed.activation_post_process
        made.linear = nnq.Linear.from_float(observed.linear)
        return made


class Dynamic(Own):
    @classmethod
    def from_observed(cls, module):
        made = cls()
        module.linear.qconfig = module.qconfig
        made.linear = nnqd.Linear.from_float(module.linear)
        return made


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Own()

    def forward(self, x):
        return self.own(x) + self.own(x)


def test_a_module_of_a_users_class_that_is_called_twice():
    x, model = torch.randn(3, 3), Twice().eval()
    made = prepare_fx(copy.deepcopy(model), {"": quant.default_qconfig}, (x,), {"float_to_observed_custom_module_class": {"static": {Own: Observed}}})
    made(x)
    whole = convert_fx(made, {"observed_to_quantized_custom_module_class": {"static": {Observed: Static}}})
    assert nodes(whole) == "quantize_per_tensor Static Static add dequantize"
    assert (whole(x) - model(x)).abs().max() < 0.2


def test_a_module_of_a_users_class_that_is_dynamic():
    x, model = torch.randn(3, 3), Twice().eval()
    made = prepare_fx(copy.deepcopy(model), {"": quant.default_dynamic_qconfig}, (x,), {"non_traceable_module_class": [Own]})
    whole = convert_fx(made, {"observed_to_quantized_custom_module_class": {"dynamic": {Own: Dynamic}}})
    assert nodes(whole) == "Dynamic Dynamic add" and (whole(x) - model(x)).abs().max() < 0.1


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

    def forward(self, x):
        x = F.instance_norm(x, None, None, self.w, self.b, True, 0.1, 1e-3)
        x = F.layer_norm(x, (4,), self.w, self.b, 1e-3)
        x = F.leaky_relu(x, 0.1, True)
        x = F.elu(x, alpha=2.0, inplace=True)
        return F.dropout(F.hardswish(x, True), 0.2, False)


def test_functions_with_a_scale_of_their_own():
    x = torch.randn(2, 4, 4)
    made = prepare_fx(Functions().eval(), quant.get_default_qconfig_mapping("fbgemm"), (x,))
    made(x)
    whole = convert_fx(made)
    calls = [(node.args[1:], {k: v for k, v in node.kwargs.items() if not isinstance(v, torch.fx.Node)}) for node in whole.graph.nodes if "output_scale" in node.kwargs]
    assert calls == [
        ((), {"eps": 1e-3}), (((4,),), {"eps": 1e-3}), ((), {"negative_slope": 0.1, "inplace": True}), ((), {"alpha": 2.0}), ((), {}), ((), {"p": 0.2, "training": False}),
    ]  # fmt: skip
    assert torch.allclose(whole(x), Functions.forward(made, x), atol=0.2)


def test_masks_are_not_observed():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x.masked_fill(mask.unsqueeze(0).unsqueeze(1), 1)

    made = prepare_fx(Masked().eval(), {"": quant.default_qconfig}, (torch.rand(1, 2, 3, 4), torch.rand(3, 4).bool()))
    assert nodes(made) == "unsqueeze unsqueeze masked_fill"


def test_layers_that_are_fused_and_called_twice():
    class LinearReLU(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.relu = nn.Linear(5, 5), nn.ReLU()

        def forward(self, x):
            return self.relu(self.linear(x))

    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.both = LinearReLU()

        def forward(self, x):
            return self.both(self.both(x))

    x, model = torch.randn(5, 5), Again().eval()
    whole = convert_fx(prepare_fx(copy.deepcopy(model), {"": quant.default_dynamic_qconfig}, (x,)))
    assert nodes(whole) == "LinearReLU LinearReLU" and (whole(x) - model(x)).abs().max() < 0.2


def test_results_in_dictionaries_stay_quantized():
    class Named(Apart):
        def forward(self, x):
            return {"output": self.conv(x)}

    x = torch.randn(1, 1, 2, 2)
    made = prepare_fx(Named().eval(), {"": quant.default_qconfig}, (x,), {"output_quantized_idxs": [0]})
    made(x)
    assert convert_fx(made)(x)["output"].is_quantized


def test_shuffles_are_of_quantized_values():
    class Shuffled(nn.Module):
        def forward(self, x):
            return F.channel_shuffle(x + x, 2) + x

    x = torch.randn(1, 4, 2, 2)
    made = prepare_fx(Shuffled().eval(), {"": quant.default_qconfig}, (x,))
    made(x)
    assert nodes(convert_fx(made)) == "quantize_per_tensor add channel_shuffle add dequantize"


def test_sigmoid_stays_a_layer():
    x = torch.randn(2, 3)
    made = prepare_fx(nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.Linear(3, 3)).eval(), quant.get_default_qconfig_mapping(), (x,))
    made(x)
    assert type(convert_fx(made).get_submodule('1')) is nn.Sigmoid


def test_packed_weights_are_in_the_state():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.ones(5, 5)

        def forward(self, x):
            return F.linear(x, self.w)

    x = torch.rand(5, 5)
    made = prepare_fx(nn.Sequential(nn.Sequential(Inner())).eval(), {"": quant.default_qconfig}, (x,))
    made(x)
    assert "0_0_packed_weight_0" in convert_fx(made).state_dict()


def test_a_reference_takes_what_was_none():
    x = torch.rand(2, 3)
    made = prepare_fx(nn.Sequential(nn.Linear(3, 3)).eval(), {"": quant.default_qconfig}, (x,))
    made(x)
    reference = convert_to_reference_fx(made)
    state, scale = copy.deepcopy(reference.state_dict()), reference.get_submodule('0').weight_scale
    reference.get_submodule('0').weight_scale = None
    reference.load_state_dict(state)
    assert torch.equal(reference.get_submodule('0').weight_scale, scale)


def bounded_linear():
    bounds = [DTypeWithConstraints(dtype=dtype, quant_min_lower_bound=low, quant_max_upper_bound=31) for dtype, low in ((torch.quint8, 0), (torch.qint8, -32))]
    config = BackendPatternConfig(nn.Linear).set_observation_type(ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT)
    config.add_dtype_config(DTypeConfig(bounds[0], bounds[0], bounds[1], torch.float)).set_root_module(nn.Linear).set_reference_quantized_module(nnqr.Linear)
    return BackendConfig().set_backend_pattern_config(config)


def test_observers_without_a_range_do_not_keep_to_bounds():
    qconfig, backend, x = quant.QConfig(quant.ReuseInputObserver, quant.ReuseInputObserver), bounded_linear(), torch.rand(1, 3)
    made = prepare_fx(nn.Sequential(nn.Linear(3, 3)).eval(), {"": qconfig}, (x,), backend_config=backend)
    assert nodes(convert_fx(made, backend_config=backend)) == "Linear" and type(made.get_submodule('0')) is nn.Linear


def test_patterns_with_numbers_and_a_root_of_the_backend():
    class Pooled(nn.Module):
        def forward(self, x):
            return torch.ops.aten.max_pool2d_with_indices.default(x)[0]

    traced = torch.fx.symbolic_trace(Pooled())
    last = list(traced.graph.nodes)[-2]
    assert _is_match({}, last, (last.target, torch.ops.aten.max_pool2d_with_indices.default, 0))
    assert not _is_match({}, last, (last.target, torch.ops.aten.max_pool2d_with_indices.default, 1))

    class Reshaped(nn.Module):
        def forward(self, x):
            return torch.reshape(torch.transpose(x, 0, 1), (-1,))

    config = BackendPatternConfig()._set_pattern_complex_format((torch.reshape, torch.transpose, quant.utils.MatchAllNode))
    config.set_observation_type(ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT).set_dtype_configs([DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)])
    config._set_root_node_getter(lambda form: form[1])
    made = prepare_fx(Reshaped().eval(), {"": quant.default_qconfig}, (torch.rand(2, 3),), backend_config=BackendConfig().set_backend_pattern_configs([config]))
    assert nodes(made) == "MinMaxObserver transpose reshape MinMaxObserver"


def test_registers_of_patterns():
    @pattern_utils._register_quant_pattern("made up", quant.default_fixed_qparams_range_0to1_observer)
    class Handler:
        pass

    try:
        assert pattern_utils.get_default_quant_patterns()["made up"] is Handler
        assert pattern_utils.get_default_output_activation_post_process_map(False)["made up"] is quant.default_fixed_qparams_range_0to1_observer
    finally:
        for table in ("_DEFAULT_QUANTIZATION_PATTERNS", "_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP", "_DEFAULT_OUTPUT_OBSERVER_MAP"):
            del getattr(pattern_utils, table)["made up"]


def test_scripts_of_fake_quantizers_are_switched():
    made = prepare_qat_fx(nn.Sequential(nn.Linear(5, 5)).train(), {"": quant.get_default_qat_qconfig("x86")}, (torch.randn(5, 5),))
    scripted = torch.jit.script(made)
    scripted.apply(quant.disable_observer)
    switches = [int(value) for name, value in scripted.state_dict().items() if name.endswith("observer_enabled")]
    assert switches == [0, 0, 0]


def test_small_questions():
    from cresset.ao.quantization.fx import utils

    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval())
    x, linear, relu = list(traced.graph.nodes)[:3]
    modules = dict(traced.named_modules())
    assert utils.maybe_get_next_module(linear, modules, nn.ReLU) is relu and utils.maybe_get_next_module(x, modules, nn.ReLU) is None
    assert utils.get_qconv_prepack_op(F.conv2d) is torch.ops.quantized.conv2d_prepack
    assert utils.get_linear_prepack_op_for_dtype(torch.float16) is torch.ops.quantized.linear_prepack_fp16
    assert utils.assert_and_get_unique_device(traced) == torch.device("cpu") and utils.assert_and_get_unique_device(nn.ReLU()) is None
    assert utils.get_custom_module_class_keys({quant.QuantType.STATIC: {Own: Observed}}) == [Own]
    made = utils.graph_module_from_producer_nodes(traced, [relu, linear, x])
    value = torch.randn(1, 2)
    assert torch.equal(made(value), traced(value))
    graph = torch.fx.Graph()
    node = graph.call_method("transpose", (graph.placeholder("x"), 0, 1))
    assert [find(node) for find in utils.get_non_observable_arg_indexes_and_types(node).values()] == [[1, 2]]
