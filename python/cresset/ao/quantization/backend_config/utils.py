"""Tables that passes of quantization read off a BackendConfig, and patterns as text."""

from cresset.nn import functional as F

from ..fuser_method_mappings import _reverse2, _reverse3

__all__ = [
    "get_pattern_to_dtype_configs", "get_qat_module_classes", "get_fused_module_classes", "get_pattern_to_input_type_to_index",
    "get_root_module_to_quantized_reference_module", "get_fuser_method_mapping", "get_module_to_qat_module", "get_fusion_pattern_to_root_node_getter",
    "get_fusion_pattern_to_extra_inputs_getter", "remove_boolean_dispatch_from_name", "pattern_to_human_readable", "entry_to_pretty_str",
]  # fmt: skip


def _patterns(backend_config):
    return backend_config._pattern_complex_format_to_config.items()


def get_pattern_to_dtype_configs(backend_config):
    """{pattern: [DTypeConfig, …]}"""
    return {pattern: config.dtype_configs for pattern, config in _patterns(backend_config)}


def get_qat_module_classes(backend_config):
    """The classes of modules that are trained to be quantized."""
    return tuple({config.qat_module for config in backend_config.configs if config.qat_module is not None})


def get_fused_module_classes(backend_config):
    """The classes of fused modules."""
    return tuple({config.fused_module for config in backend_config.configs if config.fused_module is not None})


def get_pattern_to_input_type_to_index(backend_config):
    """{pattern: {"weight": position of the argument, …}}"""
    return {pattern: config._input_type_to_index for pattern, config in _patterns(backend_config)}


def get_root_module_to_quantized_reference_module(backend_config):
    """{float class: class of the reference}"""
    found = backend_config.configs
    return {c.root_module: c.reference_quantized_module for c in found if c.root_module is not None and c.reference_quantized_module is not None}


def get_fuser_method_mapping(backend_config):
    """{pattern: its fuser, which takes modules in the pattern's order}"""
    return {pattern: _get_fuser_method_in_reversed_nested_tuple_format(c) for pattern, c in _patterns(backend_config) if c.fuser_method is not None}


def get_module_to_qat_module(backend_config):
    """{pattern: class that takes its place in training}"""
    return {pattern: config.qat_module for pattern, config in _patterns(backend_config) if config.qat_module is not None}


def get_fusion_pattern_to_root_node_getter(backend_config):
    """{pattern: function that finds the node of the root module in what matched}"""
    return {pattern: config._root_node_getter for pattern, config in _patterns(backend_config) if config._root_node_getter is not None}


def get_fusion_pattern_to_extra_inputs_getter(backend_config):
    """{pattern: function that finds further inputs in what matched}"""
    return {pattern: config._extra_inputs_getter for pattern, config in _patterns(backend_config) if config._extra_inputs_getter is not None}


def _get_pattern_in_reversed_nested_tuple_format(config):
    """(a, b) becomes (b, a), and (a, b, c) becomes (c, (b, a))."""
    if config._pattern_complex_format is not None:
        return config._pattern_complex_format
    if config.pattern is None:
        raise ValueError("Either 'pattern' or 'pattern_complex_format' must be specified")
    if not isinstance(config.pattern, tuple):
        return config.pattern
    if len(config.pattern) == 2:
        return config.pattern[::-1]
    if len(config.pattern) == 3:
        a, b, c = config.pattern
        return c, (b, a)
    raise ValueError(f"Expected a tuple with 2 or 3 elements, got: {config.pattern}")


def _get_fuser_method_in_reversed_nested_tuple_format(config):
    if config.fuser_method is None:
        raise AssertionError("config.fuser_method must be set to convert to reversed nested tuple format")
    if config._pattern_complex_format is not None:
        return config.fuser_method
    if not isinstance(config.pattern, tuple):
        raise ValueError(f"Expected pattern to be a tuple, got: {config.pattern}")
    if len(config.pattern) == 2:
        return _reverse2(config.fuser_method)
    if len(config.pattern) == 3:
        return _reverse3(config.fuser_method)
    raise ValueError(f"Expected a tuple with 2 or 3 elements, got: {config.pattern}")


_DISPATCHED = ("fractional_max_pool2d", "fractional_max_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d",
               "adaptive_max_pool2d", "adaptive_max_pool3d")  # fmt: skip


def remove_boolean_dispatch_from_name(p):
    """The full name of a pooling function that can give indices, too; what else is given as it is."""
    for name in _DISPATCHED:
        if p is getattr(F, name):
            return f"torch.nn.functional.{name}"
    return p


def pattern_to_human_readable(p):
    """A pattern with names in place of functions that have none of their own."""
    if isinstance(p, tuple):
        return tuple(pattern_to_human_readable(part) for part in p)
    return p if isinstance(p, str) else remove_boolean_dispatch_from_name(p)


_KEY_ORDER = (
    "pattern", "dtype_configs", "num_tensor_args_to_observation_type", "observation_type", "root_module", "qat_module", "reference_quantized_module_for_root",
    "fused_module", "fuser_method", "root_node_getter", "extra_inputs_getter", "input_type_to_index", "pattern_complex_format",
)  # fmt: skip


def entry_to_pretty_str(entry):
    """The dictionary of a pattern as text of several lines."""
    lines = ["{"]
    for key in [k for k in _KEY_ORDER if k in entry]:
        value = entry[key]
        if key == "dtype_configs":
            lines.append("  'dtype_configs': [")
            for config in value:
                lines += ["    {", *(f"      '{name}': {dtype}," for name, dtype in config.items()), "    },"]
            lines.append("  ],")
        elif key == "num_tensor_args_to_observation_type":
            lines += [f"  '{key}': {{", *(f"    {count}: {kind}," for count, kind in value.items()), "  },"]
        else:
            lines.append(f"  '{key}': {pattern_to_human_readable(value)},")
    return "\n".join([*lines, "}"])
