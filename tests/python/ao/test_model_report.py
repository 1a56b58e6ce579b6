"""Reports about prepared models. Words and numbers are PyTorch 2.13's, for the same weights and data."""

import pytest

import cresset
from cresset import nn
from cresset.ao.quantization import QConfigMapping, default_observer, default_per_channel_weight_observer, get_default_qconfig
from cresset.ao.quantization.fx._model_report.detector import (
    DynamicStaticDetector, InputWeightEqualizationDetector, OutlierDetector, PerChannelDetector,
)  # fmt: skip
from cresset.ao.quantization.fx._model_report.model_report import ModelReport
from cresset.ao.quantization.fx._model_report.model_report_observer import ModelReportObserver
from cresset.ao.quantization.fx._model_report.model_report_visualizer import ModelReportVisualizer
from cresset.ao.quantization.quantize_fx import convert_fx, prepare_fx
from cresset.testing import assert_close

NAME = "model_report_pre_observer"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.bn, self.relu = nn.Linear(3, 3), nn.BatchNorm2d(3), nn.ReLU()

    def forward(self, x):
        return self.relu(self.bn(self.linear(x)))


class Blocks(nn.Module):
    """Weights that are written down."""

    def __init__(self):
        super().__init__()
        self.block1, self.block2, self.conv = Block(), Block(), nn.Conv2d(3, 2, 2)
        with cresset.no_grad():
            for k, p in enumerate(self.parameters()):
                p.copy_(((cresset.arange(p.numel()) * 5 + k) % 7 - 3.0).reshape(p.shape) / 4)

    def forward(self, x):
        x = self.block1(x)
        return self.conv(nn.functional.relu(x + self.block2(x)))


def data(i):
    values = cresset.arange(27.0).reshape(1, 3, 3, 3)
    return ((values * 7 + i * 5) % 11 - 3) * (1 + i % 3)


def calibrated(*detectors, engine="fbgemm", model=None, batches=None):
    """(the prepared model, its ModelReport) after the batches."""
    batches = [data(i) for i in range(6)] if batches is None else batches
    prepared = prepare_fx((model or Blocks()).eval(), QConfigMapping().set_global(get_default_qconfig(engine)), batches[0])
    report = ModelReport(prepared, set(detectors))
    report.prepare_detailed_calibration()
    for batch in batches:
        prepared(batch)
    return prepared, report


def test_what_observers_note():
    values = cresset.tensor([3.0, 1, -2, 8, 5, -7, 0.5, 2, 9, 4])
    observer = ModelReportObserver(comp_percentile=0.5)
    expected = [(1.0, 1, 1, 0.0), (2.75, 2, 1, 8.0), (2.75, 2, 2, 5.3333335), (3.1, 3, 2, 12.0), (2.4, 4, 2, 11.3)]
    for batch, (ratio, tracked, constant, width) in zip((cresset.full((10,), 2.0), values, cresset.zeros(10), values * 2 + 1, -values.abs() - 1), expected):
        given = batch.reshape(1, 1, 10)
        assert observer(given) is given
        assert_close(observer.average_percentile_ratio, cresset.tensor([ratio]))
        assert (observer.percentile_batches_tracked.tolist(), observer.constant_channels.tolist()) == ([tracked], [constant])
        assert_close(observer.average_batch_activation_range, cresset.tensor(width))
    assert (observer.min_val.tolist(), observer.max_val.tolist(), observer.num_batches_tracked) == ([-13.0], [19.0], 5)
    one = ModelReportObserver(comp_percentile=0.5)
    one(cresset.tensor([0.0] * 9 + [5.0]).reshape(1, 1, 10))
    assert one.average_percentile_ratio.tolist() == [3.4028234663852886e38]  # the quantile is 0
    one.reset_batch_and_epoch_values()
    assert one.num_batches_tracked == 0 and one.max_val.numel() == 0 and one.epoch_activation_min.item() == float("inf")
    one(cresset.zeros(2, 3))
    with pytest.raises(ValueError, match="Range for Epoch is 0"):
        one.get_batch_to_epoch_ratio()
    with pytest.raises(Exception, match="calculate_qparams should not be called for ModelReportObserver"):
        one.calculate_qparams()


def test_parameters_for_channels():
    prepared, report = calibrated(PerChannelDetector("qnnpack"), engine="qnnpack")
    text, found = report.generate_model_report(False)["per_channel_detector"]
    names = ["block1.linear", "block2.linear", "conv"]
    lines = "".join(f"Module {name} can be configured to use per_channel quantization.\n" for name in names)
    advice = "To use per_channel quantization, make sure the qconfig has a per_channel weight observer."
    assert text == f"Further Optimizations for backend qnnpack: \n{lines}{advice}"
    assert found == {n: {"per_channel_quantization_supported": True, "per_channel_quantization_used": False, "backend": "qnnpack"} for n in names}
    assert not any(isinstance(m, ModelReportObserver) for m in prepared.modules())
    _, report = calibrated(PerChannelDetector("fbgemm"))
    text, found = report.generate_model_report(False)["per_channel_detector"]
    assert text == "Further Optimizations for backend fbgemm: \nNo further per_channel optimizations possible."
    assert all(features["per_channel_quantization_used"] for features in found.values())


def test_static_or_dynamic():
    prepared, report = calibrated(DynamicStaticDetector())
    text, found = report.generate_model_report(False)["dynamic_vs_static_detector"]
    ratios = {"block1.linear": (0.6666667, 0.6666667), "block2.linear": (0.6204, 0.5047), "conv": (0.6102, 0.4565)}
    for name, (before, after) in ratios.items():
        features = found[name]
        assert_close(features["input_activation_dynamic_static_comp_stat"], cresset.tensor(before), atol=1e-4, rtol=0)
        assert_close(features["output_activation_dynamic_static_comp_stat"], cresset.tensor(after), atol=1e-4, rtol=0)
        assert bool(features["dynamic_recommended"]) is (name == "conv") and features["is_dynamic_supported"] is (name != "conv")
    assert text.splitlines()[1:] == [
        *(f"For module {n} it is suggested to use static quantization because the distribution of data before {n} is stationary and the distribution after is stationary. "
          "You can increase model efficiency if you use static quantization." for n in ("block1.linear", "block2.linear")),
        "For module conv it is suggested to use dynamic quantization because the distribution of data before conv is stationary and the distribution after is "
        "non-stationary. You will get more accurate results if you use dynamic quantization. This layer is not yet supported for dynamic quantization.",
    ]  # fmt: skip
    nodes = [n.target for n in prepared.graph.nodes if n.op == "call_module"]
    at = nodes.index("block2.linear")
    assert nodes[at - 1 : at + 2] == ["block2.linear.model_report_pre_observer", "block2.linear", "block2.linear.model_report_post_observer"]


def test_equalization():
    _, report = calibrated(InputWeightEqualizationDetector(0.5))
    text, found = report.generate_model_report(False)["input_weight_equalization_detector"]
    for name, metric in (("block1.linear", [0.5774, 1.0, 0.5774]), ("block2.linear", [1.0094, 0.598, 0.5774]), ("conv", [1.6377, 0.9129, 1.0388])):
        assert_close(found[name]["input_weight_channel_comparison_metrics"], cresset.tensor(metric), atol=1e-4, rtol=0)
        assert found[name]["input_weight_equalization_recommended"] == [True] * 3
    assert text.splitlines()[1:3] == [
        "For Module block1.linear looked at with axis 1: ",
        "\tWe suggest to use input weight equalization because 3/3 channels would benefit and we expect significant reduction in quantization error.",
    ]
    assert found["conv"]["weight_per_channel_max"].tolist() == [0.75, 0.5, 0.75] and found["conv"]["weight_global_min"].item() == -0.75

    def of_weight(weight, *batches):
        model = nn.Sequential(nn.Linear(len(weight[0]), len(weight)))
        model[0].weight.data.copy_(cresset.tensor(weight))
        return calibrated(InputWeightEqualizationDetector(0.5), model=model, batches=list(batches))[1].generate_model_report(False)

    wide = cresset.tensor([[1.0, 2.0, 300.0], [0.0, 1.0, -20.0], [0.0, 1.0, -20.0]]).reshape(1, 3, 3)
    (text, _), *_ = of_weight([[1.0, 0.0, 0.1], [-1.0, 0.01, 0.1]], wide).values()
    assert text.endswith(
        "\tWe suggest to not use input weight equalization because we don't expect much improvement from input-weight equalization based on 1/3 channels benefitting "
        "from input-weight equalization being applied.\n"
    )
    for weight, batch, what in (([[1.0] * 3] * 2, wide[0], "weight"), ([[1.0, 2.0, 1.0], [1.0] * 3], cresset.ones(3, 3), "input")):
        with pytest.raises(ValueError, match=f"The range of the {what} data for module 0 is 0, which means you have a constant value channel. We recommend removing"):
            of_weight(weight, batch)


def test_outliers():
    _, report = calibrated(OutlierDetector(ratio_threshold=2.0, reference_percentile=0.75))
    text, found = report.generate_model_report(False)["outlier_detector"]
    assert list(found) == ["block1.linear", "block1.bn.0", "block1.bn.1", "block2.linear", "block2.bn.0", "block2.bn.1", "conv"]
    ratios = {"block1.linear": [1.575, 1.55, 1.5167], "block1.bn.0": [1.7033, 1.3576, 5.6714e37], "block2.linear": [1.2325, 1.3795, 5.6747], "conv": [1.2372, 1.3918, 2.7097]}
    for name, expected in ratios.items():
        assert_close(found[name]["outlier_detection_percentile_ratios"], cresset.tensor(expected), atol=0, rtol=1e-4)
    assert found["block2.linear"]["outlier_detection_batches_used"].tolist() == [6, 6, 5]
    assert found["block2.linear"]["outlier_detection_is_sufficient_batches"] == [True, True, False]
    assert found["block2.bn.1"]["outliers_detected"] == [True, True, True]
    lines = text.splitlines()
    assert lines[1:3] == [
        "For Module block1.bn.0 looked at with axis 1: ",
        "\tFor channel 2, we found outliers in the preceding activation data with a max value across all batches of 18.75.",
    ]
    constant = "constant value batches. We recommend taking a look at the dict and data to see how frequent this occurred and why."
    assert f"\tFor channel 2, we found 1 {constant}" in lines and lines[-1].startswith("Note: outlier detection is only reliable for stationary distributions.")
    _, report = calibrated(OutlierDetector(), model=nn.Sequential(nn.ReLU()), batches=[cresset.arange(27.0).reshape(1, 3, 3, 3)])
    assert report.generate_model_report(True)["outlier_detector"][0] == "Outlier detection report: \nThere were no outliers found in the activations.\n"


@pytest.mark.parametrize(
    ("detector", "words"),
    [
        (DynamicStaticDetector(), "Dynamic vs. Static Quantization suggestions: \nNo applicable layers for suggestions. Only linear and conv are valid.\n"),
        (InputWeightEqualizationDetector(0.5), "Input-Weight Equalization suggestions: \nNo applicable layers for suggestions. Only linear and conv valid.\n"),
        (PerChannelDetector("x86"), "Further Optimizations for backend x86: \nNo further per_channel optimizations possible."),
    ],
)
def test_models_without_such_modules(detector, words):
    _, report = calibrated(detector, model=nn.Sequential(nn.ReLU()), batches=[cresset.ones(1, 3)])
    assert report.generate_model_report(False)[detector.get_detector_name()] == (words, {})


def test_all_together_mappings_and_tables(capsys):
    outliers = OutlierDetector()
    prepared, report = calibrated(PerChannelDetector("fbgemm"), DynamicStaticDetector(), InputWeightEqualizationDetector(0.9), outliers)
    report.generate_model_report(False)
    mapping, equalization = report.generate_qconfig_mapping().module_name_qconfigs, report.generate_equalization_mapping()
    assert list(mapping) == list(equalization.module_name_qconfigs) == ["block1.linear", "block2.linear", "conv"]
    assert mapping["block1.linear"].weight == default_per_channel_weight_observer and mapping["block1.linear"].activation == default_observer
    assert mapping["conv"].activation != default_observer  # dynamic
    visualizer = report.generate_visualizer()
    assert isinstance(visualizer, ModelReportVisualizer) and len(visualizer.generated_reports["block1.linear"]) == 30
    assert len(visualizer.get_all_unique_feature_names(False)) == 30 and len(visualizer.get_all_unique_feature_names()) == 15
    tables = visualizer.generate_filtered_tables("outlier", "block1")
    assert tables["tensor_level_info"] == (
        ["idx", "layer_fqn", "outlier_detection_channel_axis", "outlier_detection_ratio_threshold", "outlier_detection_reference_percentile"],
        [[0, "block1.linear", 1, 3.5, 0.975], [1, "block1.bn.0", 1, 3.5, 0.975], [2, "block1.bn.1", 1, 3.5, 0.975]],
    )
    headers, rows = tables["channel_level_info"]
    assert headers[3:] == ["outlier_detection_batches_used", "outlier_detection_is_sufficient_batches", "outlier_detection_percentile_ratios", "outliers_detected"]
    assert len(rows) == 9 and rows[0][:5] == [0, "block1.linear", 0, 6, True] and rows[0][6] is False and rows[0][5] == pytest.approx(1.20555544)
    whole = visualizer.generate_filtered_tables("", "block1.bn.0")["tensor_level_info"]
    assert "weight_global_max" not in whole[0] and visualizer.generate_filtered_tables("", "none") == {"tensor_level_info": ([], []), "channel_level_info": ([], [])}
    both = visualizer.generate_filtered_tables("weight_global_max")["tensor_level_info"]
    assert both == (["idx", "layer_fqn", "weight_global_max"], [[0, "block1.linear", 0.75], [1, "block2.linear", 0.75], [2, "conv", 0.75]])
    report.generate_model_report(True)
    assert not any("model_report" in str(n.target) for n in prepared.graph.nodes) and not any("model_report" in n for n, _ in prepared.named_modules())
    new = prepare_fx(Blocks().eval(), QConfigMapping().set_module_name("block1.linear", mapping["block1.linear"]), data(0), _equalization_config=None)
    new(data(1))
    convert_fx(new)(data(1))


def test_order_of_calls():
    with pytest.raises(ValueError, match="Should include at least 1 desired report"):
        ModelReport(nn.Linear(2, 2), set())
    prepared = prepare_fx(Blocks().eval(), QConfigMapping().set_global(get_default_qconfig("fbgemm")), data(0))
    report = ModelReport(prepared, {DynamicStaticDetector()})
    assert report.get_desired_reports_names() == {"dynamic_vs_static_detector"} and report.get_observers_of_interest() == {"dynamic_vs_static_detector": set()}
    for call in (lambda: report.generate_model_report(False), report.generate_qconfig_mapping):
        with pytest.raises(Exception, match="Cannot generate report without preparing model for calibration"):
            call()
    with pytest.raises(Exception, match="Unable to generate visualizers without first generating reports"):
        report.generate_visualizer()
    report.prepare_detailed_calibration()
    assert len(report.get_observers_of_interest()["dynamic_vs_static_detector"]) == 6
    with pytest.raises(ValueError, match="Already ran preparing detailed calibration"):
        report.prepare_detailed_calibration()
    prepared(data(1))
    report.generate_model_report(True)
    with pytest.raises(Exception, match="Cannot generate report on model you already removed observers from"):
        report.generate_model_report(False)
    for arguments, error, words in (
        ({"reference_percentile": 1.1}, AssertionError, "reference_percentile must be between 0 and 1"),
        ({"fraction_batches_used_threshold": 1.1}, AssertionError, "fraction_batches_used_threshold must be between 0 and 1"),
    ):
        with pytest.raises(error, match=words):
            OutlierDetector(**arguments)
    with pytest.raises(ValueError, match="Make sure threshold is > 0 and < 1"):
        InputWeightEqualizationDetector(1.5)
    with pytest.raises(ValueError, match="Not configured to work with foo. Try a different default backend"):
        PerChannelDetector("foo")
    with pytest.raises(ValueError, match="passed in target_fqn not found in graph's targets."):
        DynamicStaticDetector()._get_targeting_node(prepared, "nope")
