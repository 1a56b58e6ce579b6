"""ModelReport: puts the observers of detectors into a prepared model, and collects what they say after it has seen data."""

from collections import OrderedDict

import cresset
from cresset.ao.quantization.qconfig_mapping import QConfigMapping

from .detector import DETECTOR_IS_POST_OBS_KEY, DETECTOR_OBS_ARGS_KEY, DETECTOR_OBS_TO_INSERT_KEY, DETECTOR_TARGET_NODE_KEY, DetectorQConfigInfo, OutlierDetector
from .model_report_visualizer import ModelReportVisualizer

__all__ = ["ModelReport"]


class ModelReport:
    """Reports of detectors about a model of prepare_fx: prepare_detailed_calibration(), then data through the model, then generate_model_report(…).

    ValueError without a detector.
    """

    def __init__(self, model, desired_report_detectors):
        if not desired_report_detectors:
            raise ValueError("Should include at least 1 desired report")
        self._model, self._detectors = model, list(desired_report_detectors)
        self._observers = {d.get_detector_name(): set() for d in self._detectors}
        self._prepared, self._removed, self._reports = False, False, {}

    def get_desired_reports_names(self):
        """The names of the detectors."""
        return {d.get_detector_name() for d in self._detectors}

    def get_observers_of_interest(self):
        """{name of a detector: the names of its observers}."""
        return {name: set(observers) for name, observers in self._observers.items()}

    def prepare_detailed_calibration(self):
        """The model with the observers. ValueError where it has them already."""
        if self._prepared:
            raise ValueError("Already ran preparing detailed calibration. Run the report generation next after calibration.")
        # Detectors of one place share its observer. OutlierDetector, which says what it compares with, makes it.
        for detector in sorted(self._detectors, key=lambda d: not isinstance(d, OutlierDetector)):
            for name, point in detector.determine_observer_insert_points(self._model).items():
                self._observers[detector.get_detector_name()].add(name)
                self._insert(name, point)
        self._model.recompile()
        self._prepared = True
        return self._model

    def _insert(self, name, point):
        if any(n.target == name for n in self._model.graph.nodes):
            return
        target, graph = point[DETECTOR_TARGET_NODE_KEY], self._model.graph
        self._model.add_submodule(name, point[DETECTOR_OBS_TO_INSERT_KEY])
        with graph.inserting_after(target) if point[DETECTOR_IS_POST_OBS_KEY] else graph.inserting_before(target):
            graph.create_node("call_module", name, tuple(point[DETECTOR_OBS_ARGS_KEY]))

    def _check_usable(self):
        if not self._prepared:
            raise Exception("Cannot generate report without preparing model for calibration")
        if self._removed:
            raise Exception("Cannot generate report on model you already removed observers from")

    def generate_model_report(self, remove_inserted_observers):
        """{name of a detector: (text, {module: {feature: value}})}. With remove_inserted_observers the model loses the observers.

        Exception before prepare_detailed_calibration, and after they are lost.
        """
        self._check_usable()
        found = {d.get_detector_name(): d.generate_detector_report(self._model) for d in self._detectors}
        self._reports = found
        if remove_inserted_observers:
            self._removed = True
            names = set().union(*self._observers.values())
            for node in [n for n in self._model.graph.nodes if n.target in names]:
                self._model.graph.erase_node(node)
            for name in names:
                self._model.delete_submodule(name)
            self._model.recompile()
        return dict(found)

    def _features(self):
        """{module: {feature: value}} of all reports. ValueError where detectors say different things under one name."""
        found = OrderedDict()
        for _, modules in self._reports.values():
            for name, features in modules.items():
                known = found.setdefault(name, {})
                for key, value in features.items():
                    if key in known and not _equal(known[key], value):
                        raise ValueError(f"You have the same key with different values across detectors. {key} of {name} is {known[key]} and {value}.")
                    known.setdefault(key, value)
        order = {name: i for i, (name, _) in enumerate(self._model.named_modules())}
        return OrderedDict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))

    def generate_visualizer(self):
        """The reports as tables and plots. Exception without reports."""
        if not self._reports:
            raise Exception("Unable to generate visualizers without first generating reports")
        return ModelReportVisualizer(self._features())

    def _infos(self):
        self._check_usable()
        found = {}
        for detector in self._detectors:
            for name, info in detector.get_qconfig_info(self._model).items():
                known = found.setdefault(name, DetectorQConfigInfo(name))
                known.is_activation_dynamic |= info.is_activation_dynamic
                known.is_weight_per_channel |= info.is_weight_per_channel
                known.is_equalization_recommended |= info.is_equalization_recommended
        return found

    def _mapping(self, setting):
        found, infos = QConfigMapping(), self._infos()
        for name, module in self._model.named_modules():
            if name in infos:
                found.set_module_name(name, setting(infos[name], module))
        return found

    def generate_qconfig_mapping(self):
        """The QConfigMapping that the detectors suggest. Exception as generate_model_report."""
        return self._mapping(lambda info, module: info.generate_quantization_qconfig(module))

    def generate_equalization_mapping(self):
        """The setting for equalization of the modules that detectors have looked at. Exception as generate_model_report."""
        return self._mapping(lambda info, module: info.generate_equalization_qconfig())


def _equal(a, b):
    return cresset.equal(a, b) if isinstance(a, cresset.Tensor) and isinstance(b, cresset.Tensor) else type(a) is type(b) and a == b
