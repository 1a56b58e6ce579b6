"""Detectors: each looks at one thing in a prepared model, some of them through observers that they ask for, and says what to do about it."""

import abc

import cresset
from cresset import nn
from cresset.ao.nn import qat as nnqat
from cresset.ao.quantization.fake_quantize import FakeQuantize
from cresset.ao.quantization.fx._equalize import default_equalization_qconfig
from cresset.ao.quantization.observer import (
    _is_activation_post_process, default_dynamic_quant_observer, default_observer, default_per_channel_weight_observer, default_weight_observer,
)  # fmt: skip
from cresset.ao.quantization.qconfig import QConfig, _assert_valid_qconfig

from .model_report_observer import ModelReportObserver

__all__ = ["DetectorBase", "DetectorQConfigInfo", "DynamicStaticDetector", "InputWeightEqualizationDetector", "OutlierDetector", "PerChannelDetector"]

DETECTOR_TARGET_NODE_KEY = "target_node"
DETECTOR_OBS_TO_INSERT_KEY = "observer_to_insert"
DETECTOR_IS_POST_OBS_KEY = "is_post_observer"
DETECTOR_OBS_ARGS_KEY = "observer_args"
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_WITH_WEIGHTS = {nn.Linear, *_CONVOLUTIONS, nnqat.Linear, nnqat.Conv1d, nnqat.Conv2d, nnqat.Conv3d}


class DetectorQConfigInfo:
    """What detectors say about the settings of one module."""

    def __init__(self, module_fqn):
        self.module_fqn, self.is_activation_dynamic, self.is_weight_per_channel, self.is_equalization_recommended = module_fqn, False, False, False

    def generate_quantization_qconfig(self, module):
        """A QConfig for the module."""
        activation = default_dynamic_quant_observer if self.is_activation_dynamic else default_observer
        found = QConfig(activation=activation, weight=default_per_channel_weight_observer if self.is_weight_per_channel else default_weight_observer)
        _assert_valid_qconfig(found, module)
        return found

    def generate_equalization_qconfig(self):
        """The setting for equalization."""
        return default_equalization_qconfig


class DetectorBase(abc.ABC):
    """What detectors have."""

    def __init__(self):
        self.detector_config_info = None

    @abc.abstractmethod
    def determine_observer_insert_points(self, model):
        """{name of an observer: what to insert where} in a prepared model."""

    @abc.abstractmethod
    def get_detector_name(self):
        """Its name."""

    @abc.abstractmethod
    def get_qconfig_info(self, model):
        """{name of a module: DetectorQConfigInfo}."""

    @abc.abstractmethod
    def generate_detector_report(self, model):
        """(text, {name of a module: {feature: value}}) of a model that has seen data."""

    def _get_targeting_node(self, prepared_fx_model, target_fqn):
        """The node that calls the module, or the one that it is fused into. ValueError where there is none."""
        nodes = {n.target: n for n in prepared_fx_model.graph.nodes if n.op == "call_module"}
        path = target_fqn
        while path:
            if path in nodes:
                return nodes[path]
            path = path.rpartition(".")[0]
        raise ValueError("passed in target_fqn not found in graph's targets.")

    def _point(self, node, observer, after=False):
        return {
            DETECTOR_TARGET_NODE_KEY: node, DETECTOR_OBS_TO_INSERT_KEY: observer, DETECTOR_IS_POST_OBS_KEY: after,
            DETECTOR_OBS_ARGS_KEY: (node,) if after else node.args,
        }  # fmt: skip


def _has_kind(module, kinds):
    return isinstance(module, tuple(kinds))


class PerChannelDetector(DetectorBase):
    """Which modules could be, and which are, quantized with parameters for each channel of the weight. ValueError for a backend that is not known."""

    BACKEND_KEY = "backend"
    PER_CHAN_SUPPORTED_KEY = "per_channel_quantization_supported"
    PER_CHAN_USED_KEY = "per_channel_quantization_used"
    DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES = {name: set(_WITH_WEIGHTS) for name in ("fbgemm", "qnnpack", "onednn", "x86")}  # noqa: RUF012

    def __init__(self, backend=cresset.backends.quantized.engine):
        super().__init__()
        self.backend_chosen = backend
        if backend not in self.DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES:
            raise ValueError(f"Not configured to work with {backend}. Try a different default backend")
        self.supported_modules = self.DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES[backend]

    def get_detector_name(self):
        """per_channel_detector."""
        return "per_channel_detector"

    def get_qconfig_info(self, model):
        """Weights of modules that can have them get parameters for each channel."""
        found = {}
        for name, features in self._detect_per_channel_helper(model).items():
            found[name] = DetectorQConfigInfo(name)
            found[name].is_weight_per_channel = features[self.PER_CHAN_SUPPORTED_KEY]
        return found

    def determine_observer_insert_points(self, model):
        """None are needed."""
        return {}

    def _detect_per_channel_helper(self, model):
        found = {}
        for name, module in model.named_modules():
            if not _has_kind(module, self.supported_modules):
                continue
            qconfig = getattr(module, "qconfig", None)
            observer = qconfig.weight() if qconfig is not None and qconfig.weight is not None else None
            if isinstance(observer, FakeQuantize):
                observer = observer.activation_post_process
            used = hasattr(observer, "ch_axis")
            found[name] = {self.PER_CHAN_SUPPORTED_KEY: True, self.PER_CHAN_USED_KEY: used, self.BACKEND_KEY: self.backend_chosen}
        return found

    def generate_detector_report(self, model):
        """Which modules could be quantized for each channel and are not."""
        found = self._detect_per_channel_helper(model)
        lines = [
            f"Module {name} can be configured to use per_channel quantization.\n"
            for name, features in found.items()
            if features[self.PER_CHAN_SUPPORTED_KEY] and not features[self.PER_CHAN_USED_KEY]
        ]
        advice = "To use per_channel quantization, make sure the qconfig has a per_channel weight observer." if lines else "No further per_channel optimizations possible."
        return f"Further Optimizations for backend {self.backend_chosen}: \n" + "".join(lines) + advice, found


class DynamicStaticDetector(DetectorBase):
    """Whether activations should be quantized by parameters of each batch: where ranges of batches are small beside that of all of them.

    tolerance: of the ratio of both, up to which data is not stationary.
    """

    DEFAULT_PRE_OBSERVER_NAME = "model_report_pre_observer"
    DEFAULT_POST_OBSERVER_NAME = "model_report_post_observer"
    STATIONARY_STR = "stationary"
    NON_STATIONARY_STR = "non-stationary"
    INPUT_ACTIVATION_PREFIX = "input_activation_"
    OUTPUT_ACTIVATION_PREFIX = "output_activation_"
    TOLERANCE_KEY = "dynamic_static_tolerance"
    DEFAULT_DYNAMIC_REC_KEY = "dynamic_recommended"
    PRE_OBS_COMP_STAT_KEY = INPUT_ACTIVATION_PREFIX + "dynamic_static_comp_stat"
    POST_OBS_COMP_STAT_KEY = OUTPUT_ACTIVATION_PREFIX + "dynamic_static_comp_stat"
    PRE_OBS_DATA_DIST_KEY = INPUT_ACTIVATION_PREFIX + "dynamic_static_data_classification"
    POST_OBS_DATA_DIST_KEY = OUTPUT_ACTIVATION_PREFIX + "dynamic_static_data_classification"
    IS_CURRENTLY_SUPPORTED_KEY = "is_dynamic_supported"
    DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED = {nn.Linear}  # noqa: RUF012
    DEFAULT_DYNAMIC_STATIC_FUTURE_SUPPORTED = set(_CONVOLUTIONS)  # noqa: RUF012

    def __init__(self, tolerance=0.5):
        super().__init__()
        self.tolerance, self.useful_observer_fqns = tolerance, set()

    def get_detector_name(self):
        """dynamic_vs_static_detector."""
        return "dynamic_vs_static_detector"

    def _is_supported(self, module, insert=False):
        kinds = self.DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED | self.DEFAULT_DYNAMIC_STATIC_FUTURE_SUPPORTED
        watched = hasattr(module, self.DEFAULT_PRE_OBSERVER_NAME) and hasattr(module, self.DEFAULT_POST_OBSERVER_NAME)
        return _has_kind(module, kinds) and (insert or watched)

    def determine_observer_insert_points(self, prepared_fx_model):
        """In front of and behind linear modules and convolutions."""
        found = {}
        for name, module in prepared_fx_model.named_modules():
            if self._is_supported(module, insert=True):
                node = self._get_targeting_node(prepared_fx_model, name)
                found[f"{name}.{self.DEFAULT_PRE_OBSERVER_NAME}"] = self._point(node, ModelReportObserver())
                found[f"{name}.{self.DEFAULT_POST_OBSERVER_NAME}"] = self._point(node, ModelReportObserver(), after=True)
        return found

    def get_qconfig_info(self, model):
        """Activations of modules that it is recommended for are dynamic."""
        found = {}
        for name, features in self._generate_dict_info(model).items():
            found[name] = DetectorQConfigInfo(name)
            found[name].is_activation_dynamic = bool(features[self.DEFAULT_DYNAMIC_REC_KEY])
        return found

    def _generate_dict_info(self, model):
        found = {}
        for name, module in model.named_modules():
            if not self._is_supported(module):
                continue
            before, after = (getattr(module, n).get_batch_to_epoch_ratio() for n in (self.DEFAULT_PRE_OBSERVER_NAME, self.DEFAULT_POST_OBSERVER_NAME))
            kinds = [self.STATIONARY_STR if ratio > self.tolerance else self.NON_STATIONARY_STR for ratio in (before, after)]
            found[name] = {
                self.TOLERANCE_KEY: self.tolerance, self.DEFAULT_DYNAMIC_REC_KEY: after <= self.tolerance, self.PRE_OBS_COMP_STAT_KEY: before,
                self.PRE_OBS_DATA_DIST_KEY: kinds[0], self.POST_OBS_COMP_STAT_KEY: after, self.POST_OBS_DATA_DIST_KEY: kinds[1],
                self.IS_CURRENTLY_SUPPORTED_KEY: _has_kind(module, self.DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED),
            }  # fmt: skip
        return found

    def generate_detector_report(self, model):
        """Static or dynamic, for each module that has been watched."""
        found, lines = self._generate_dict_info(model), ["Dynamic vs. Static Quantization suggestions: \n"]
        for name, features in found.items():
            dynamic = features[self.DEFAULT_DYNAMIC_REC_KEY]
            benefit = "You will get more accurate results if you use dynamic quantization." if dynamic else "You can increase model efficiency if you use static quantization."
            if dynamic and not features[self.IS_CURRENTLY_SUPPORTED_KEY]:
                benefit += " This layer is not yet supported for dynamic quantization."
            lines.append(
                f"For module {name} it is suggested to use {'dynamic' if dynamic else 'static'} quantization because the distribution of data before {name} is "
                f"{features[self.PRE_OBS_DATA_DIST_KEY]} and the distribution after is {features[self.POST_OBS_DATA_DIST_KEY]}. {benefit}\n"
            )
        return "".join(lines) + ("" if found else "No applicable layers for suggestions. Only linear and conv are valid.\n"), found


class InputWeightEqualizationDetector(DetectorBase):
    """Where scales that go from the input to the weight would help: channels whose share of the weight's range is like their share of the input's.

    ratio_threshold: how far from 1 the quotient of both shares may be. ValueError where it is not between 0 and 1.
    """

    SUPPORTED_MODULES = set(_WITH_WEIGHTS)  # noqa: RUF012
    DEFAULT_PRE_OBSERVER_NAME = "model_report_pre_observer"
    WEIGHT_STR = "weight"
    INPUT_STR = "input"
    WEIGHT_PREFIX = "weight_"
    ACTIVATION_PREFIX = "input_activation_"
    PER_CHANNEL_MAX_KEY = "per_channel_max"
    PER_CHANNEL_MIN_KEY = "per_channel_min"
    GLOBAL_MAX_KEY = "global_max"
    GLOBAL_MIN_KEY = "global_min"
    RECOMMENDED_KEY = "input_weight_equalization_recommended"
    COMP_METRIC_KEY = "input_weight_channel_comparison_metrics"
    THRESHOLD_KEY = "input_weight_threshold"
    CHANNEL_KEY = "input_weight_channel_axis"
    DEFAULT_RECOMMEND_INPUT_WEIGHT_CHANNEL_RATIO = 0.4  # the share of channels from which on it is worth it

    def __init__(self, ratio_threshold, ch_axis=1):
        super().__init__()
        if not 0 < ratio_threshold < 1:
            raise ValueError("Make sure threshold is > 0 and < 1")
        self.ratio_threshold, self.ch_axis = ratio_threshold, ch_axis

    def get_detector_name(self):
        """input_weight_equalization_detector."""
        return "input_weight_equalization_detector"

    def _is_supported(self, module, insert=False):
        return _has_kind(module, self.SUPPORTED_MODULES) and (insert or hasattr(module, self.DEFAULT_PRE_OBSERVER_NAME))

    def determine_observer_insert_points(self, prepared_fx_model):
        """In front of modules with weights."""
        found = {}
        for name, module in prepared_fx_model.named_modules():
            if self._is_supported(module, insert=True):
                node = self._get_targeting_node(prepared_fx_model, name)
                found[f"{name}.{self.DEFAULT_PRE_OBSERVER_NAME}"] = self._point(node, ModelReportObserver(ch_axis=self.ch_axis))
        return found

    def get_qconfig_info(self, model):
        """Equalization, where enough channels benefit."""
        found = {}
        for name, features in self._features(model).items():
            found[name] = DetectorQConfigInfo(name)
            found[name].is_equalization_recommended = self._is_worth_it(features)
        return found

    def _is_worth_it(self, features):
        recommended = features[self.RECOMMENDED_KEY]
        return sum(recommended) / len(recommended) >= self.DEFAULT_RECOMMEND_INPUT_WEIGHT_CHANNEL_RATIO

    def _ranges(self, prefix, low, high):
        return {
            prefix + self.PER_CHANNEL_MAX_KEY: high, prefix + self.PER_CHANNEL_MIN_KEY: low, prefix + self.GLOBAL_MAX_KEY: max(high), prefix + self.GLOBAL_MIN_KEY: min(low),
        }  # fmt: skip

    def _share(self, features, prefix, what, name):
        whole = features[prefix + self.GLOBAL_MAX_KEY] - features[prefix + self.GLOBAL_MIN_KEY]
        if whole == 0:
            raise ValueError(
                f"The range of the {what} data for module {name} is 0, which means you have a constant value channel. We recommend removing this channel as it doesn't "
                "provide any useful information."
            )
        return cresset.sqrt((features[prefix + self.PER_CHANNEL_MAX_KEY] - features[prefix + self.PER_CHANNEL_MIN_KEY]) / whole)

    def _features(self, model):
        found = {}
        for name, module in model.named_modules():
            if not self._is_supported(module):
                continue
            observer = getattr(module, self.DEFAULT_PRE_OBSERVER_NAME)
            low, high = cresset.aminmax(module.weight.movedim(self.ch_axis, 0).flatten(start_dim=1), dim=1)
            ranges = {**self._ranges(self.ACTIVATION_PREFIX, observer.min_val, observer.max_val), **self._ranges(self.WEIGHT_PREFIX, low, high)}
            of_input = self._share(ranges, self.ACTIVATION_PREFIX, self.INPUT_STR, name)
            of_weight = self._share(ranges, self.WEIGHT_PREFIX, self.WEIGHT_STR, name)
            metric = of_weight.repeat(len(of_input) // len(of_weight)) / of_input  # the weight of groups has the channels of one
            found[name] = {
                self.RECOMMENDED_KEY: [bool(self.ratio_threshold <= m <= 1 / self.ratio_threshold) for m in metric], self.COMP_METRIC_KEY: metric,
                self.THRESHOLD_KEY: self.ratio_threshold, self.CHANNEL_KEY: self.ch_axis, **ranges,
            }  # fmt: skip
        return found

    def generate_detector_report(self, model):
        """Whether equalization is worth it, for each module with weights."""
        found, lines = self._features(model), ["Input-Weight Equalization suggestions: \n"]
        for name, features in found.items():
            recommended = features[self.RECOMMENDED_KEY]
            share = f"{sum(recommended)}/{len(recommended)} channels"
            advice = f"use input weight equalization because {share} would benefit and we expect significant reduction in quantization error."
            if not self._is_worth_it(features):
                advice = (
                    f"not use input weight equalization because we don't expect much improvement from input-weight equalization based on {share} benefitting from "
                    "input-weight equalization being applied."
                )
            lines.append(f"For Module {name} looked at with axis {self.ch_axis}: \n\tWe suggest to {advice}\n")
        return "".join(lines) + ("" if found else "No applicable layers for suggestions. Only linear and conv valid.\n"), found


class OutlierDetector(DetectorBase):
    """Channels of activations whose greatest values are far above the others: the quotient with the quantile `reference_percentile` is above ratio_threshold.

    fraction_batches_used_threshold: the share of batches with a quotient from which on that is reliable. AssertionError for shares that are none.
    """

    DEFAULT_PRE_OBSERVER_NAME = "model_report_pre_observer"
    INPUT_ACTIVATION_PREFIX = "input_activation_"
    OUTLIER_KEY = "outliers_detected"
    NUM_BATCHES_KEY = "outlier_detection_batches_used"
    IS_SUFFICIENT_BATCHES_KEY = "outlier_detection_is_sufficient_batches"
    COMP_METRIC_KEY = "outlier_detection_percentile_ratios"
    RATIO_THRES_KEY = "outlier_detection_ratio_threshold"
    REF_PERCENTILE_KEY = "outlier_detection_reference_percentile"
    CHANNEL_AXIS_KEY = "outlier_detection_channel_axis"
    MAX_VALS_KEY = INPUT_ACTIVATION_PREFIX + "per_channel_max"
    CONSTANT_COUNTS_KEY = "constant_batch_counts"

    def __init__(self, ratio_threshold=3.5, reference_percentile=0.975, fraction_batches_used_threshold=0.95, ch_axis=1):
        super().__init__()
        if not 0 <= reference_percentile <= 1:
            raise AssertionError("reference_percentile must be between 0 and 1")
        if not 0 <= fraction_batches_used_threshold <= 1:
            raise AssertionError("fraction_batches_used_threshold must be between 0 and 1")
        self.ratio_threshold, self.reference_percentile = ratio_threshold, reference_percentile
        self.fraction_batches_used_threshold, self.ch_axis = fraction_batches_used_threshold, ch_axis

    def get_detector_name(self):
        """outlier_detector."""
        return "outlier_detector"

    def get_qconfig_info(self, model):
        """Nothing: there is no setting against outliers."""
        return {}

    def _supports_insertion(self, module):
        return not list(module.children()) and not _is_activation_post_process(module)

    def _supports_report_gen(self, module):
        return hasattr(module, self.DEFAULT_PRE_OBSERVER_NAME)

    def determine_observer_insert_points(self, prepared_fx_model):
        """In front of every module that has no others."""
        found = {}
        for name, module in prepared_fx_model.named_modules():
            if self._supports_insertion(module):
                node = self._get_targeting_node(prepared_fx_model, name)
                observer = ModelReportObserver(ch_axis=self.ch_axis, comp_percentile=self.reference_percentile)
                found[f"{name}.{self.DEFAULT_PRE_OBSERVER_NAME}"] = self._point(node, observer)
        return found

    def _generate_info_dict(self, model):
        found = {}
        for name, module in model.named_modules():
            if not self._supports_report_gen(module):
                continue
            observer = getattr(module, self.DEFAULT_PRE_OBSERVER_NAME)
            counted, ratios = observer.percentile_batches_tracked, observer.average_percentile_ratio.abs()
            ratios = cresset.where(ratios < 1, 1 / ratios, ratios)  # of negative values the greatest is the nearest to 0
            found[name] = {
                self.CHANNEL_AXIS_KEY: self.ch_axis, self.REF_PERCENTILE_KEY: self.reference_percentile, self.RATIO_THRES_KEY: self.ratio_threshold,
                self.COMP_METRIC_KEY: ratios, self.NUM_BATCHES_KEY: counted, self.OUTLIER_KEY: [bool(r > self.ratio_threshold) for r in ratios],
                self.IS_SUFFICIENT_BATCHES_KEY: [bool(n / observer.num_batches_tracked >= self.fraction_batches_used_threshold) for n in counted],
                self.CONSTANT_COUNTS_KEY: observer.constant_channels, self.MAX_VALS_KEY: observer.max_val,
            }  # fmt: skip
        return found

    def generate_detector_report(self, model):
        """Channels with outliers, and those that were constant in some batches."""
        found, parts = self._generate_info_dict(model), []
        for name, features in found.items():
            lines = []
            for i, outlier in enumerate(features[self.OUTLIER_KEY]):
                if outlier:
                    most = f"a max value across all batches of {float(features[self.MAX_VALS_KEY][i])}"
                    lines.append(f"\tFor channel {i}, we found outliers in the preceding activation data with {most}.\n")
                if constant := int(features[self.CONSTANT_COUNTS_KEY][i]):
                    advice = "We recommend taking a look at the dict and data to see how frequent this occurred and why."
                    lines.append(f"\tFor channel {i}, we found {constant} constant value batches. {advice}\n")
            if lines:
                parts += [f"For Module {name} looked at with axis {self.ch_axis}: \n", *lines]
        note = (
            "Note: outlier detection is only reliable for stationary distributions. We recommend running the static vs. dynamic detector to ensure activation data before "
            "modules above is stationary to ensure the most accurate results."
        )
        return "Outlier detection report: \n" + "".join(parts) + (note if parts else "There were no outliers found in the activations.\n"), found
