"""What a backend can quantize: patterns of modules and functions, the dtypes that each takes and gives, and who watches its result."""

from dataclasses import dataclass
from enum import Enum

import cresset

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]

# Keys of the dictionaries.
INPUT_DTYPE_DICT_KEY, OUTPUT_DTYPE_DICT_KEY, WEIGHT_DTYPE_DICT_KEY = "input_dtype", "output_dtype", "weight_dtype"
BIAS_DTYPE_DICT_KEY, IS_DYNAMIC_DICT_KEY = "bias_dtype", "is_dynamic"
NAME_DICT_KEY, CONFIGS_DICT_KEY = "name", "configs"
PATTERN_DICT_KEY, PATTERN_COMPLEX_FORMAT_DICT_KEY = "pattern", "pattern_complex_format"
OBSERVATION_TYPE_DICT_KEY, DTYPE_CONFIGS_DICT_KEY = "observation_type", "dtype_configs"
ROOT_MODULE_DICT_KEY, QAT_MODULE_DICT_KEY, REFERENCE_QUANTIZED_MODULE_DICT_KEY = "root_module", "qat_module", "reference_quantized_module_for_root"
FUSED_MODULE_DICT_KEY, FUSER_METHOD_DICT_KEY = "fused_module", "fuser_method"
ROOT_NODE_GETTER_DICT_KEY, EXTRA_INPUTS_GETTER_DICT_KEY = "root_node_getter", "extra_inputs_getter"
NUM_TENSOR_ARGS_TO_OBSERVATION_TYPE_DICT_KEY, INPUT_TYPE_TO_INDEX_DICT_KEY = "num_tensor_args_to_observation_type", "input_type_to_index"


class ObservationType(Enum):
    """How the result of a pattern is watched."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    """By an observer of its own."""
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    """By the observer of the input: it has the input's scale."""
    INPUT_OUTPUT_NOT_OBSERVED = 2
    """Not at all, nor is the input."""


@dataclass
class DTypeWithConstraints:
    """A dtype, with bounds for its whole numbers and its scales, or with the one scale and zero point that are possible."""

    dtype: cresset.dtype | None = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


def _constrained(value):
    return value if isinstance(value, DTypeWithConstraints) else DTypeWithConstraints(dtype=value)


@dataclass
class DTypeConfig:
    """The dtypes of inputs, results, weights and biases that go together. `is_dynamic`: inputs are quantized as they come."""

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: cresset.dtype | None
    is_dynamic: bool | None

    def __init__(self, input_dtype=None, output_dtype=None, weight_dtype=None, bias_dtype=None, is_dynamic=None):
        self.input_dtype_with_constraints = _constrained(input_dtype)
        self.output_dtype_with_constraints = _constrained(output_dtype)
        self.weight_dtype_with_constraints = _constrained(weight_dtype)
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self):
        """The dtype of the input."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self):
        """The dtype of the result."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self):
        """The dtype of the weight."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict):
        """Of what to_dict gives; dtypes may stand without constraints."""
        names = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")
        for name in names[:3]:
            value = dtype_config_dict.get(name)
            if value is not None and not isinstance(value, (cresset.dtype, DTypeWithConstraints)):
                raise ValueError(f"Expected {name} to be a torch.dtype or DTypeWithConstraints")
        return cls(**{name: dtype_config_dict.get(name) for name in names})

    def to_dict(self):
        """{"input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic"}, without those that say nothing."""
        made = {}
        for name in ("input_dtype", "output_dtype", "weight_dtype"):
            constrained = getattr(self, name + "_with_constraints")
            if constrained.dtype is not None:
                made[name] = constrained
        if self.bias_dtype is not None:
            made["bias_dtype"] = self.bias_dtype
        if self.is_dynamic is not None:
            made["is_dynamic"] = self.is_dynamic
        return made


class BackendConfig:
    """What a backend can quantize: a BackendPatternConfig for each pattern; the later one of a pattern counts."""

    def __init__(self, name=""):
        self.name = name
        self._pattern_complex_format_to_config = {}

    def __repr__(self):
        return f"BackendConfig({self.__dict__})"

    def set_name(self, name):
        """Another name."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config):
        """Add what can be done with one pattern."""
        from .utils import _get_pattern_in_reversed_nested_tuple_format

        self._pattern_complex_format_to_config[_get_pattern_in_reversed_nested_tuple_format(config)] = config
        return self

    def set_backend_pattern_configs(self, configs):
        """Add what can be done with several patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self):
        """A copy of the list of BackendPatternConfigs."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict):
        """Of what to_dict gives."""
        made = cls(backend_config_dict.get("name", ""))
        for entry in backend_config_dict.get("configs", []):
            if isinstance(entry, BackendPatternConfig):
                made.set_backend_pattern_config(entry)
            elif isinstance(entry, dict):
                made.set_backend_pattern_config(BackendPatternConfig.from_dict(entry))
            else:
                raise ValueError("Expected backend_config_dict['configs'] to be a dictionary")
        return made

    def to_dict(self):
        """{"name": …, "configs": [the dictionary of a pattern, …]}"""
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}


_OPTIONAL = {  # attribute: its key in dictionaries, where it is there only when it says something
    "pattern": PATTERN_DICT_KEY, "root_module": ROOT_MODULE_DICT_KEY, "qat_module": QAT_MODULE_DICT_KEY, "fused_module": FUSED_MODULE_DICT_KEY,
    "reference_quantized_module": REFERENCE_QUANTIZED_MODULE_DICT_KEY, "fuser_method": FUSER_METHOD_DICT_KEY, "_root_node_getter": ROOT_NODE_GETTER_DICT_KEY,
    "_extra_inputs_getter": EXTRA_INPUTS_GETTER_DICT_KEY, "_num_tensor_args_to_observation_type": NUM_TENSOR_ARGS_TO_OBSERVATION_TYPE_DICT_KEY,
    "_input_type_to_index": INPUT_TYPE_TO_INDEX_DICT_KEY, "_pattern_complex_format": PATTERN_COMPLEX_FORMAT_DICT_KEY,
}  # fmt: skip


class BackendPatternConfig:
    """What a backend can do with a pattern: a class of modules, a function, the name of a method, or a tuple of two or three of them in order."""

    def __init__(self, pattern=None):
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs = []
        self.root_module = self.qat_module = self.reference_quantized_module = self.fused_module = self.fuser_method = None
        self._root_node_getter = self._extra_inputs_getter = None
        self._num_tensor_args_to_observation_type, self._input_type_to_index = {}, {}
        self._pattern_complex_format = None

    def __repr__(self):
        said = {name: value for name, value in self.__dict__.items() if value is not None and not (isinstance(value, (list, dict)) and not value)}
        return f"BackendPatternConfig({said})"

    def _with(self, name, value):
        setattr(self, name, value)
        return self

    def set_pattern(self, pattern):
        """The pattern, in the order of execution."""
        if self._pattern_complex_format is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._with("pattern", pattern)

    def set_observation_type(self, observation_type):
        """How the result is watched."""
        return self._with("observation_type", observation_type)

    def add_dtype_config(self, dtype_config):
        """Dtypes that go together, beside those before."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs):
        """Dtypes that go together, in place of those before."""
        return self._with("dtype_configs", dtype_configs)

    def set_root_module(self, root_module):
        """The class of the module that holds the weight."""
        return self._with("root_module", root_module)

    def set_qat_module(self, qat_module):
        """The class that takes the pattern's place in training."""
        return self._with("qat_module", qat_module)

    def set_reference_quantized_module(self, reference_quantized_module):
        """The class that computes with real numbers what the quantized root module stands for."""
        return self._with("reference_quantized_module", reference_quantized_module)

    def set_fused_module(self, fused_module):
        """The class that the pattern becomes by fusion."""
        return self._with("fused_module", fused_module)

    def set_fuser_method(self, fuser_method):
        """The function that fuses: fuser_method(is_qat, first, second, …)."""
        return self._with("fuser_method", fuser_method)

    def _set_root_node_getter(self, root_node_getter):
        return self._with("_root_node_getter", root_node_getter)

    def _set_extra_inputs_getter(self, extra_inputs_getter):
        return self._with("_extra_inputs_getter", extra_inputs_getter)

    def _set_num_tensor_args_to_observation_type(self, num_tensor_args_to_observation_type):
        return self._with("_num_tensor_args_to_observation_type", num_tensor_args_to_observation_type)

    def _set_input_type_to_index(self, input_type_to_index):
        return self._with("_input_type_to_index", input_type_to_index)

    def _set_pattern_complex_format(self, pattern):
        """The pattern from its last part: (last, first) for two, and so on, with MatchAllNode for what may be anything."""
        if self.pattern is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._with("_pattern_complex_format", pattern)

    @classmethod
    def from_dict(cls, backend_pattern_config_dict):
        """Of what to_dict gives."""
        given, made = backend_pattern_config_dict, cls()
        for entry in given.get("dtype_configs", []):
            if not isinstance(entry, (dict, DTypeConfig)):
                raise ValueError(f'Expected a list of DTypeConfigs in backend_pattern_config_dict["dtype_configs"], got \'{type(entry)}\'')
            made.add_dtype_config(entry if isinstance(entry, DTypeConfig) else DTypeConfig.from_dict(entry))
        made.set_observation_type(given.get("observation_type", made.observation_type))
        for name, key in _OPTIONAL.items():
            setattr(made, name, given.get(key, getattr(made, name)))
        return made

    def to_dict(self):
        """The dictionary, without keys that say nothing."""
        made = {"observation_type": self.observation_type, "dtype_configs": [config.to_dict() for config in self.dtype_configs]}
        return made | {key: value for name, key in _OPTIONAL.items() if (value := getattr(self, name)) is not None and (value or not isinstance(value, dict))}
