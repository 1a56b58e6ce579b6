"""ao.ns._numeric_suite_fx: pairs of operations, loggers, shadows and several quantized forms; names and nodes are those of PyTorch 2.13."""

import copy

import cresset
import pytest
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.intrinsic import quantized as nniq
from cresset.ao.ns import _numeric_suite_fx as suite
from cresset.ao.ns.fx.graph_matcher import GraphMatchingException, get_matching_subgraph_pairs
from cresset.ao.ns.fx.mappings import add_op_to_sets_of_related_ops, get_base_name_for_op, get_base_name_to_sets_of_related_ops
from cresset.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
from cresset.ao.ns.fx.utils import compute_sqnr
from cresset.ao.quantization import default_dynamic_qconfig, default_per_channel_qconfig, default_qconfig, get_default_qconfig_mapping
from cresset.ao.quantization.backend_config import get_native_backend_config
from cresset.ao.quantization.quantize_fx import convert_fx, prepare_fx
from cresset.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore:Please use quant_min")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(1, 1, 1), nn.ReLU()
        self.w1, self.b1 = nn.Parameter(cresset.randn(4, 4)), nn.Parameter(cresset.zeros(4))

    def forward(self, x, y):
        x = self.relu(self.conv(x))
        x = F.relu(F.linear(x, self.w1, self.b1))
        x = x + y + 1.0
        return cresset.cat([x, x]).sigmoid()


def inputs():
    cresset.manual_seed(0)
    return cresset.randn(1, 1, 4, 4), cresset.randn(1, 1, 4, 4)


@pytest.fixture
def forms():
    example = inputs()
    prepared = prepare_fx(Net().eval(), get_default_qconfig_mapping("fbgemm"), example_inputs=example)
    prepared(*example)
    return prepared, convert_fx(copy.deepcopy(prepared))


def names(gm, *ops):
    return [node.name for node in gm.graph.nodes if not ops or node.op in ops]


def test_related_operations():
    related = get_base_name_to_sets_of_related_ops()
    assert len(related) == 78
    conv = get_base_name_for_op(related, nn.Conv2d)
    assert conv == "1" and {nnq.Conv2d, nni.ConvReLU2d, nniq.ConvReLU2d, cresset.ao.nn.qat.Conv2d} <= related[conv]
    assert get_base_name_for_op(related, cresset.ops.quantized.linear_relu) == get_base_name_for_op(related, F.linear) == "7"
    assert get_base_name_for_op(related, nn.Conv3d) != conv
    add_op_to_sets_of_related_ops(related, inputs, F.linear)
    assert get_base_name_for_op(related, inputs) == "7"
    add_op_to_sets_of_related_ops(related, names, None)
    assert get_base_name_for_op(related, names) == "78"
    with pytest.raises(AssertionError):
        add_op_to_sets_of_related_ops(related, names, forms)


def test_matching_pairs(forms):
    found = {name: [(part.start_node.name, part.end_node.name, part.base_op_node.name) for part in pair] for name, pair in get_matching_subgraph_pairs(*forms).items()}
    assert list(found.items()) == [
        ("base_op_1_0", [("conv", "activation_post_process_1", "conv"), ("conv", "conv", "conv")]),
        ("base_op_7_0", [("linear", "activation_post_process_3", "linear"), ("linear", "linear", "linear")]),
        ("base_op_15_1", [("add", "activation_post_process_5", "add"), ("add_2", "add_2", "add_2")]),
        ("base_op_15_0", [("add_1", "activation_post_process_6", "add_1"), ("add_3", "add_3", "add_3")]),
        ("base_op_16_0", [("cat", "cat", "cat"), ("cat", "cat", "cat")]),
        ("base_op_22_0", [("sigmoid", "activation_post_process_8", "sigmoid"), ("sigmoid", "sigmoid", "sigmoid")]),
    ]


class Unknown(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return F.gelu(self.function(x)).cumsum(0)


def test_what_does_not_match():
    traced = cresset.fx.symbolic_trace
    assert not get_matching_subgraph_pairs(traced(Unknown(cresset.erf)), traced(Unknown(cresset.erf)))
    with pytest.raises(GraphMatchingException, match="erf.*sin.*not related"):
        get_matching_subgraph_pairs(traced(Unknown(cresset.erf)), traced(Unknown(cresset.sin)))
    with pytest.raises(GraphMatchingException, match="cumsum.*same number"):
        get_matching_subgraph_pairs(traced(Unknown(cresset.erf)), traced(nn.Identity()))


def test_weights(forms):
    found = suite.extract_weights("float", forms[0], "int8", forms[1])
    assert list(found) == ["conv", "linear"]
    real, whole = (found["linear"]["weight"][name][0] for name in ("float", "int8"))
    assert cresset.equal(real["values"][0], forms[0].w1)
    assert whole["values"][0].is_quantized and (whole["values"][0].dequantize() - forms[0].w1).abs().max() < 0.02
    assert found["conv"]["weight"]["int8"][0]["fqn"] == "conv" == found["conv"]["weight"]["float"][0]["fqn"]
    suite.extend_logger_results_with_comparison(found, "float", "int8", compute_sqnr, "sqnr")
    assert whole["sqnr"][0] > 30


def test_loggers(forms):
    a, b = suite.add_loggers("a", forms[0], "b", forms[1], suite.OutputLogger)
    assert [n for n in names(a) if "logger" in n] == [
        "activation_post_process_1_ns_logger_0", "activation_post_process_3_ns_logger_0", "activation_post_process_5_ns_logger_0",
        "activation_post_process_6_ns_logger_0", "cat_ns_logger_0", "activation_post_process_8_ns_logger_0",
    ]
    example = inputs()
    assert cresset.equal(a(*example), forms[0](*example)) and cresset.equal(b(*example), forms[1](*example))
    found = suite.extract_logger_info(a, b, suite.OutputLogger, "b")
    assert list(found) == ["conv", "linear", "add_2", "add_3", "cat", "sigmoid"]
    entry = found["linear"]["node_output"]["b"][0]
    assert entry["values"][0].is_quantized and entry["fqn"] == "" and found["conv"]["node_output"]["b"][0]["fqn"] == "conv"
    with_inputs, _ = suite.add_loggers("a", forms[0], "b", forms[1], suite.OutputLogger, should_log_inputs=True)
    added = [n for n in with_inputs.graph.nodes if n.name.startswith("add")]
    assert [[a.name for a in n.args if isinstance(a, cresset.fx.Node)] for n in added] == [
        ["activation_post_process_3_ns_logger_0_ns_logger_0", "activation_post_process_4_ns_logger_0"], ["activation_post_process_5_ns_logger_0_ns_logger_0"],
    ]


def test_scripted_loggers(forms):
    a, b = (cresset.jit.script(m) for m in suite.add_loggers("a", forms[0], "b", forms[1], suite.OutputLogger))
    a(*inputs()), b(*inputs())
    found = suite.extract_logger_info(a, b, suite.OutputLogger, "b")
    assert len(found) == 6 and all(len(one["values"]) == 1 for kinds in found.values() for one in kinds["node_output"]["a"])


def test_float_beside_quantized(forms, capsys):
    made = suite.add_shadow_loggers("a", forms[0], "b", forms[1], suite.OutputLogger)
    assert capsys.readouterr().out.count("skipping shadow loggers for node_b") == 3
    assert names(made)[8:21] == [
        "conv", "conv_dtype_cast_0", "conv_shadow_copy_0", "conv_shadow_copy_1", "conv_shadow_copy_1_ns_logger_a_0", "conv_ns_logger_b_0", "_packed_weight_0",
        "_scale_1", "_zero_point_1", "linear", "linear_dtype_cast_0", "w1_shadow_copy_0", "b1_shadow_copy_0",
    ]
    example = inputs()
    assert cresset.equal(made(*example), forms[1](*example))
    found = suite.extract_shadow_logger_info(made, suite.OutputLogger, "b")
    assert list(found) == ["conv", "linear", "sigmoid"]
    of_linear = found["linear"]["node_output"]
    given = found["conv"]["node_output"]["b"][0]["values"][0].dequantize()
    expected = F.relu(F.linear(given, forms[0].w1, forms[0].b1))
    assert cresset.equal(of_linear["a"][0]["values"][0], expected)


def test_quantized_beside_float(forms):
    made = suite.add_shadow_loggers("b", forms[1], "a", forms[0], suite.OutputLogger)
    assert cresset.equal(made.conv_input_scale_0, forms[1].conv_input_scale_0)
    assert float(made.linear_input_scale_0) == pytest.approx(forms[1].conv.scale)
    made(*inputs())
    found = suite.extract_shadow_logger_info(made, suite.OutputLogger, "a")
    assert list(found) == ["activation_post_process_1", "activation_post_process_3", "activation_post_process_8"]
    assert found["activation_post_process_3"]["node_output"]["b"][0]["values"][0].is_quantized


def test_lstm_of_two_inputs():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 2)

        def forward(self, x, h):
            return self.lstm(x, h)

    example = cresset.rand(1, 1, 2), (cresset.rand(1, 1, 2), cresset.rand(1, 1, 2))
    prepared = prepare_fx(Recurrent().eval(), {"object_type": [(nn.LSTM, default_dynamic_qconfig)]}, example_inputs=example)
    made = suite.add_shadow_loggers("a", prepared, "b", convert_fx(copy.deepcopy(prepared)), suite.OutputLogger)
    made(*example)
    kept = suite.extract_shadow_logger_info(made, suite.OutputLogger, "b")["lstm"]["node_output"]
    suite.extend_logger_results_with_comparison({"lstm": {"node_output": kept}}, "a", "b", compute_sqnr, "sqnr")
    outer, (hidden, cell) = kept["b"][0]["sqnr"][0]
    assert min(outer, hidden, cell) > 20


def test_several_forms_of_each_part():
    model, example = Net().eval(), inputs()
    mapping = QConfigMultiMapping().set_global([default_qconfig, default_per_channel_qconfig]).set_object_type(cresset.cat, [None, default_qconfig])
    prepared = suite.prepare_n_shadows_model(model, example, mapping, get_native_backend_config())
    assert names(prepared)[2:12] == [
        "conv", "relu", "shadow_0_0", "shadow_wrapper_0_1", "shadow_0_1", "shadow_wrapper_0_2", "shadow_0_2", "w1", "b1", "linear",
    ]
    assert "shadow_wrapper_4_1" in names(prepared) and "shadow_wrapper_4_2" not in names(prepared)
    assert cresset.equal(prepared(*example), model(*example))
    made = suite.convert_n_shadows_model(prepared)
    assert type(made.shadow_wrapper_0_1.mod_0) is nniq.ConvReLU2d
    assert any(node.target is cresset.ops.quantized.linear_relu for node in made.shadow_wrapper_1_2.graph.nodes)
    suite.loggers_set_enabled(made, True)
    made(*example)
    kept = suite.extract_results_n_shadows_model(made)["model"]["node_output"]
    real, whole = kept["subgraph_1_0"][0], kept["subgraph_1_1"][0]
    assert real["comparisons"] == [] and whole["comparison_fn_name"] == "sqnr" and whole["ref_node_name"] == "linear"
    a, b = real["values"][0], whole["values"][0]
    assert float(whole["comparisons"][0]) == pytest.approx(float(20 * cresset.log10(a.norm() / (a - b).norm())), abs=0.2)
    suite.loggers_set_save_activations(made, False)
    made(*example)
    assert len(made.shadow_1_1.stats) == 1 and len(made.shadow_1_1.comparisons) == 2


def test_a_quantized_model_beside_the_float_one():
    model, example = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.RReLU()).eval(), (cresset.randn(2, 2),)
    mapping = get_default_qconfig_mapping().set_module_name("0", None)
    prepared = suite._prepare_n_shadows_add_loggers_model(copy.deepcopy(model), example, mapping, get_native_backend_config())
    assert names(prepared) == [
        "input_1", "_0", "shadow_0_0", "_0_1", "shadow_0_1", "_1", "shadow_1_0", "shadow_wrapper_1_1", "shadow_1_1", "_2", "shadow_2_0", "_2_1", "shadow_2_1",
        "output",
    ]
    prepared(*example)
    made = suite.convert_n_shadows_model(prepared)
    suite.loggers_set_enabled(made, True)
    assert cresset.equal(made(*example), model(*example))
    alone = prepare_fx(model, mapping, example_inputs=example)
    alone(*example)
    kept = suite.extract_results_n_shadows_model(made)["model"]["node_output"]
    cresset.testing.assert_close(kept["subgraph_2_1"][0]["values"][-1], convert_fx(alone)(*example))


def test_weights_of_several_forms(capsys):
    example = inputs()
    found = suite._n_shadows_compare_weights(Net().eval(), example, get_default_qconfig_mapping(), get_native_backend_config())["model"]["weight"]
    assert list(found) == ["subgraph_0_0", "subgraph_0_1", "subgraph_1_0", "subgraph_1_1"]
    real, whole = found["subgraph_1_0"][0], found["subgraph_1_1"][0]
    assert whole["values"][0].qscheme() is cresset.per_channel_affine and real["ref_node_name"] == "linear"
    assert cresset.equal(whole["comparisons"][0], compute_sqnr(real["values"][0], whole["values"][0]))
    suite.print_comparisons_n_shadows_model({"model": {"weight": found}})
    assert "linear" in capsys.readouterr().out or not _has_tabulate()


def _has_tabulate():
    try:
        import tabulate  # noqa: F401
    except ImportError:
        return False
    return True


def test_multi_mapping_fills_with_none():
    made = QConfigMultiMapping().set_module_name("fc", [default_qconfig]).set_global([default_qconfig, default_dynamic_qconfig, default_qconfig])
    assert len(made.qconfig_mappings_list) == 2
    assert made.qconfig_mappings_list[1].module_name_qconfigs["fc"] is None
    assert made.qconfig_mappings_list[1].global_qconfig is default_dynamic_qconfig
    made.set_object_type(nn.Linear, [None, default_dynamic_qconfig])
    assert [one.object_type_qconfigs[nn.Linear] for one in made.qconfig_mappings_list] == [default_dynamic_qconfig, None]
    again = QConfigMultiMapping.from_list_qconfig_mapping(made.qconfig_mappings_list)
    assert repr(again) == repr(made)
    assert repr(made).startswith("QConfigMultiMapping [\nQConfigMapping (")


def test_weights_that_are_inputs_are_packed_at_each_call():
    class Function(nn.Module):
        def forward(self, x, w, b):
            return F.relu(F.linear(x, w, b))

    example = cresset.randn(3, 2), cresset.randn(4, 2), cresset.randn(4)
    prepared = prepare_fx(Function().eval(), get_default_qconfig_mapping(), example_inputs=example)
    prepared(*example)
    made = convert_fx(prepared)
    targets = [node.target for node in made.graph.nodes]
    assert cresset.ops.quantized.linear_prepack in targets and cresset.ops.quantized.linear_relu in targets
    assert (made(*example) - Function()(*example)).abs().max() < 0.1
