"""What backends can quantize, and custom configs: numbers of patterns, dictionaries and errors are those of PyTorch 2.13."""

import cresset as torch
import pytest
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn.quantized.reference.modules import utils as reference_utils
from cresset.ao.quantization import QConfigMapping, QuantType
from cresset.ao.quantization.backend_config import (
    BackendConfig, BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType, get_executorch_backend_config, get_fbgemm_backend_config,
    get_native_backend_config, get_native_backend_config_dict, get_onednn_backend_config, get_qnnpack_backend_config, get_tensorrt_backend_config,
)  # fmt: skip
from cresset.ao.quantization.backend_config import native, utils
from cresset.ao.quantization.backend_config.x86 import get_x86_backend_config
from cresset.ao.quantization.fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig, StandaloneModuleConfigEntry
from cresset.nn import functional as F

CONFIGS = [
    (get_native_backend_config, "native", 194), (native.get_test_only_legacy_native_backend_config, "_native_and_fp16", 194),
    (get_fbgemm_backend_config, "fbgemm", 192), (get_x86_backend_config, "x86", 192), (get_qnnpack_backend_config, "qnnpack", 190),
    (get_executorch_backend_config, "executorch", 84), (get_onednn_backend_config, "onednn", 221), (get_tensorrt_backend_config, "tensorrt", 149),
]  # fmt: skip


@pytest.mark.parametrize(("make", "name", "count"), CONFIGS)
def test_backends(make, name, count):
    made = make()
    assert made.name == name
    assert len(made.configs) == count
    assert BackendConfig.from_dict(made.to_dict()).to_dict() == made.to_dict()


def test_tables():
    config = get_native_backend_config()
    assert utils.get_module_to_qat_module(config)[nn.Linear] is torch.ao.nn.qat.Linear
    assert utils.get_root_module_to_quantized_reference_module(config)[nn.Conv2d] is torch.ao.nn.quantized.reference.Conv2d
    assert utils.get_pattern_to_input_type_to_index(config)[F.group_norm] == {"weight": 2, "bias": 3}
    fuse = utils.get_fuser_method_mapping(config)[(nn.ReLU, (nn.BatchNorm1d, nn.Conv1d))]
    conv, bn, relu = nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1), nn.ReLU()
    assert type(fuse(True, relu, (bn, conv))) is nni.ConvBnReLU1d
    assert nni.ConvBnReLU3d in utils.get_fused_module_classes(config)
    sigmoid = utils.get_pattern_to_dtype_configs(config)[nn.Sigmoid][0]
    assert sigmoid.output_dtype_with_constraints == DTypeWithConstraints(torch.quint8, 0, 255, scale_exact_match=0.00390625, zero_point_exact_match=0)
    assert utils.pattern_to_human_readable((nn.ReLU, F.max_pool2d)) == (nn.ReLU, "torch.nn.functional.max_pool2d")
    text = utils.entry_to_pretty_str(get_native_backend_config_dict()["configs"][69])
    assert "  'num_tensor_args_to_observation_type': {\n    0: ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT," in text


def test_sums_of_onednn():
    config = get_onednn_backend_config()
    pattern = (torch.add, torch.ao.quantization.MatchAllNode, (nn.BatchNorm2d, nn.Conv2d))
    conv, bn = nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1).eval()
    assert type(utils.get_fuser_method_mapping(config)[pattern](False, torch.add, "x", (bn, conv))) is nni.ConvAdd2d
    assert utils.get_fusion_pattern_to_root_node_getter(config)[pattern](("sum", "x", ("bn", "conv"))) == "conv"
    assert utils.get_fusion_pattern_to_extra_inputs_getter(config)[pattern](("sum", "x", ("bn", "conv"))) == ["x"]


def test_patterns():
    dtypes = DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
    assert dtypes.to_dict() == {
        "input_dtype": DTypeWithConstraints(torch.quint8), "output_dtype": DTypeWithConstraints(torch.quint8), "weight_dtype": DTypeWithConstraints(torch.qint8),
        "bias_dtype": torch.float,
    }  # fmt: skip
    assert DTypeConfig.from_dict(dtypes.to_dict()) == dtypes
    pattern = BackendPatternConfig(nn.Linear).set_observation_type(ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT).add_dtype_config(dtypes)
    assert pattern.set_root_module(nn.Linear).to_dict()["root_module"] is nn.Linear
    assert BackendPatternConfig.from_dict(pattern.to_dict()).to_dict() == pattern.to_dict()
    assert BackendPatternConfig().to_dict() == {"observation_type": ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT, "dtype_configs": []}
    assert utils._get_pattern_in_reversed_nested_tuple_format(BackendPatternConfig((1, 2, 3))) == (3, (2, 1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DTypeConfig.from_dict({"input_dtype": 3}), "Expected input_dtype to be a torch.dtype or DTypeWithConstraints"),
        (lambda: BackendPatternConfig.from_dict({"dtype_configs": [3]}), r"Expected a list of DTypeConfigs in backend_pattern_config_dict\[\"dtype_configs\"\], got '<class 'int'>'"),
        (lambda: BackendConfig.from_dict({"configs": [3]}), r"Expected backend_config_dict\['configs'\] to be a dictionary"),
        (lambda: BackendPatternConfig(3)._set_pattern_complex_format((1, 2)), "Only one of 'pattern' or 'pattern_complex_format' can be set"),
        (lambda: BackendConfig().set_backend_pattern_config(BackendPatternConfig()), "Either 'pattern' or 'pattern_complex_format' must be specified"),
        (lambda: BackendConfig().set_backend_pattern_config(BackendPatternConfig((1, 2, 3, 4))), r"Expected a tuple with 2 or 3 elements, got: \(1, 2, 3, 4\)"),
        (lambda: PrepareCustomConfig.from_dict({"float_to_observed_custom_module_class": {"x": {int: int}}}), "Unknown QuantType name 'x'"),
        (
            lambda: PrepareCustomConfig.from_dict({"standalone_module_name": [("a", 3, (), None, None)]}),
            r"Expected QConfigMapping in prepare_custom_config_dict\[\"standalone_module_name\"\], got '<class 'int'>'",
        ),
    ],
)
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_custom_configs():
    made = PrepareCustomConfig().set_standalone_module_name("m", QConfigMapping(), (1,), None, None).set_float_to_observed_mapping(int, float)
    made.set_preserved_attributes(["a"]).set_input_quantized_indexes([0]).set_non_traceable_module_names(["x"])
    found = made.to_dict()
    assert found["float_to_observed_custom_module_class"] == {"static": {int: float}}
    assert found["non_traceable_module_name"] == ["x"] and found["input_quantized_idxs"] == [0] and "output_quantized_idxs" not in found
    again = PrepareCustomConfig.from_dict(found)
    assert isinstance(again.standalone_module_names["m"], StandaloneModuleConfigEntry) and again.to_dict() == found
    assert PrepareCustomConfig().to_dict() == ConvertCustomConfig().to_dict() == FuseCustomConfig().to_dict() == {}
    given = {"observed_to_quantized_custom_module_class": {"static": {int: str}}, "preserved_attributes": ["a"]}
    assert ConvertCustomConfig.from_dict(given).to_dict() == given
    assert ConvertCustomConfig.from_dict(given).observed_to_quantized_mapping == {QuantType.STATIC: {int: str}}
    assert FuseCustomConfig.from_dict({"preserved_attributes": ["a"]}).preserved_attributes == ["a"]


def test_decomposed_weights():
    weight = torch.tensor([[1.54, -0.29], [0.57, -1.08]])
    facts = (torch.quint8, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, 0, 255)
    made = reference_utils._quantize_and_dequantize_weight_decomposed(weight, torch.per_channel_affine, *facts)
    torch.testing.assert_close(made, torch.tensor([[1.5, 0.0], [0.6, -0.2]]))
    with pytest.raises(ValueError, match=r"Unsupported dtype and qscheme: \w+.int8, torch.per_tensor_affine"):
        reference_utils._quantize_weight(weight, torch.per_tensor_affine, torch.int8, torch.tensor(0.1), torch.tensor(0), 0)


def test_root_of_a_pattern():
    from cresset.ao.quantization.fx.quantize_handler import _default_root_node_getter as root

    first, last = list(torch.fx.symbolic_trace(torch.nn.ReLU()).graph.nodes)[:2]
    assert root(first) is first and root((last, (last, first))) is first
    with pytest.raises(TypeError, match="a node or a pattern of nodes was required; got 'conv'."):
        root(("relu", "conv"))
