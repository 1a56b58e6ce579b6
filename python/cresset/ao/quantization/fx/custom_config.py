"""What a user says about modules that passes of quantization would not know by themselves."""

from dataclasses import dataclass
from typing import Any

from ..backend_config import BackendConfig
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType, _get_quant_type_to_str, _quant_type_from_str

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "StandaloneModuleConfigEntry"]

STANDALONE_MODULE_NAME_DICT_KEY, STANDALONE_MODULE_CLASS_DICT_KEY = "standalone_module_name", "standalone_module_class"
FLOAT_TO_OBSERVED_DICT_KEY, OBSERVED_TO_QUANTIZED_DICT_KEY = "float_to_observed_custom_module_class", "observed_to_quantized_custom_module_class"
NON_TRACEABLE_MODULE_NAME_DICT_KEY, NON_TRACEABLE_MODULE_CLASS_DICT_KEY = "non_traceable_module_name", "non_traceable_module_class"
INPUT_QUANTIZED_INDEXES_DICT_KEY, OUTPUT_QUANTIZED_INDEXES_DICT_KEY = "input_quantized_idxs", "output_quantized_idxs"
PRESERVED_ATTRIBUTES_DICT_KEY = "preserved_attributes"


@dataclass
class StandaloneModuleConfigEntry:
    """How a module is quantized that has a graph of its own."""

    qconfig_mapping: QConfigMapping | None
    example_inputs: tuple[Any, ...]
    prepare_custom_config: "PrepareCustomConfig | None"
    backend_config: BackendConfig | None


def _said(config):
    return f"{type(config).__name__}({ {name: value for name, value in config.__dict__.items() if value} })"


def _classes_to_dict(mapping):
    return {_get_quant_type_to_str(kind): dict(classes) for kind, classes in mapping.items()}


class PrepareCustomConfig:
    """For prepare_fx and prepare_qat_fx: modules with graphs of their own, classes with observed forms of their own, modules that are not traced, inputs
    and results that are quantized already, attributes that the result keeps."""

    _PLAIN = {  # attribute: its key in dictionaries
        "non_traceable_module_names": NON_TRACEABLE_MODULE_NAME_DICT_KEY, "non_traceable_module_classes": NON_TRACEABLE_MODULE_CLASS_DICT_KEY,
        "input_quantized_indexes": INPUT_QUANTIZED_INDEXES_DICT_KEY, "output_quantized_indexes": OUTPUT_QUANTIZED_INDEXES_DICT_KEY, PRESERVED_ATTRIBUTES_DICT_KEY: PRESERVED_ATTRIBUTES_DICT_KEY,
    }  # fmt: skip

    def __init__(self):
        self.standalone_module_names, self.standalone_module_classes, self.float_to_observed_mapping = {}, {}, {}
        self.non_traceable_module_names, self.non_traceable_module_classes = [], []
        self.input_quantized_indexes, self.output_quantized_indexes, self.preserved_attributes = [], [], []

    __repr__ = _said

    def set_standalone_module_name(self, module_name, qconfig_mapping, example_inputs, prepare_custom_config, backend_config):
        """The module of that name has a graph of its own; None for the parent's configs."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(qconfig_mapping, example_inputs, prepare_custom_config, backend_config)
        return self

    def set_standalone_module_class(self, module_class, qconfig_mapping, example_inputs, prepare_custom_config, backend_config):
        """Modules of that class have graphs of their own; None for the parent's configs."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(qconfig_mapping, example_inputs, prepare_custom_config, backend_config)
        return self

    def set_float_to_observed_mapping(self, float_class, observed_class, quant_type=QuantType.STATIC):
        """Modules of a class are observed as modules of another, which has `from_float`."""
        if quant_type != QuantType.STATIC:
            raise ValueError("set_float_to_observed_mapping is currently only supported for static quantization")
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names):
        """Modules that are not traced, by their names."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes):
        """Modules that are not traced, by their classes."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes):
        """Inputs that are quantized already."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes):
        """Results that stay quantized."""
        self.output_quantized_indexes = indexes
        return self

    def set_preserved_attributes(self, attributes):
        """Attributes that the result keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, prepare_custom_config_dict):
        """Of what to_dict gives."""
        given, made = prepare_custom_config_dict, cls()
        for key, setter in ((STANDALONE_MODULE_NAME_DICT_KEY, made.set_standalone_module_name), (STANDALONE_MODULE_CLASS_DICT_KEY, made.set_standalone_module_class)):
            for name, mapping, example_inputs, custom, backend in given.get(key, []):
                kinds = ((mapping, QConfigMapping), (custom, PrepareCustomConfig), (backend, BackendConfig))
                setter(name, *(_made(value, kind, key) for value, kind in kinds[:1]), example_inputs, *(_made(value, kind, key) for value, kind in kinds[1:]))
        for kind, classes in given.get(FLOAT_TO_OBSERVED_DICT_KEY, {}).items():
            for float_class, observed_class in classes.items():
                made.set_float_to_observed_mapping(float_class, observed_class, _quant_type_from_str(kind))
        for name, key in cls._PLAIN.items():
            setattr(made, name, given.get(key, []))
        return made

    def to_dict(self):
        """The dictionary, without keys that say nothing."""
        made = {}
        for key, entries in ((STANDALONE_MODULE_NAME_DICT_KEY, self.standalone_module_names), (STANDALONE_MODULE_CLASS_DICT_KEY, self.standalone_module_classes)):
            if entries:
                made[key] = [(name, *_entry_to_tuple(entry)) for name, entry in entries.items()]
        if self.float_to_observed_mapping:
            made[FLOAT_TO_OBSERVED_DICT_KEY] = _classes_to_dict(self.float_to_observed_mapping)
        return made | {key: getattr(self, name) for name, key in self._PLAIN.items() if getattr(self, name)}


def _entry_to_tuple(entry):
    mapping, custom = (value.to_dict() if value else None for value in (entry.qconfig_mapping, entry.prepare_custom_config))
    return mapping, entry.example_inputs, custom, entry.backend_config


def _made(value, kind, key):
    """A config as it is, or of its dictionary; None where nothing is said."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, dict):
        return kind.from_dict(value)
    raise ValueError(f'Expected {kind.__name__} in prepare_custom_config_dict["{key}"], got \'{type(value)}\'')


class ConvertCustomConfig:
    """For convert_fx: classes with quantized forms of their own, attributes that the result keeps."""

    def __init__(self):
        self.observed_to_quantized_mapping, self.preserved_attributes = {}, []

    __repr__ = _said

    def set_observed_to_quantized_mapping(self, observed_class, quantized_class, quant_type=QuantType.STATIC):
        """Observed modules of a class become quantized ones of another, which has `from_observed`."""
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    def set_preserved_attributes(self, attributes):
        """Attributes that the result keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, convert_custom_config_dict):
        """Of what to_dict gives."""
        made = cls()
        for kind, classes in convert_custom_config_dict.get(OBSERVED_TO_QUANTIZED_DICT_KEY, {}).items():
            for observed_class, quantized_class in classes.items():
                made.set_observed_to_quantized_mapping(observed_class, quantized_class, _quant_type_from_str(kind))
        return made.set_preserved_attributes(convert_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))

    def to_dict(self):
        """The dictionary, without keys that say nothing."""
        made = {}
        if self.observed_to_quantized_mapping:
            made[OBSERVED_TO_QUANTIZED_DICT_KEY] = _classes_to_dict(self.observed_to_quantized_mapping)
        if self.preserved_attributes:
            made[PRESERVED_ATTRIBUTES_DICT_KEY] = self.preserved_attributes
        return made


class FuseCustomConfig:
    """For fuse_fx: attributes that the result keeps."""

    def __init__(self):
        self.preserved_attributes = []

    __repr__ = _said

    def set_preserved_attributes(self, attributes):
        """Attributes that the result keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, fuse_custom_config_dict):
        """Of what to_dict gives."""
        return cls().set_preserved_attributes(fuse_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))

    def to_dict(self):
        """The dictionary, without keys that say nothing."""
        return {PRESERVED_ATTRIBUTES_DICT_KEY: self.preserved_attributes} if self.preserved_attributes else {}
