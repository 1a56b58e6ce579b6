"""Registers of patterns, which backend configs have taken the place of: empty unless a library adds to them."""

from collections import OrderedDict

from .quantize_handler import QuantizeHandler  # noqa: F401

__all__ = ["get_default_fusion_patterns", "get_default_quant_patterns", "get_default_output_activation_post_process_map"]

_DEFAULT_FUSION_PATTERNS, _DEFAULT_QUANTIZATION_PATTERNS = OrderedDict(), OrderedDict()
_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP, _DEFAULT_OUTPUT_OBSERVER_MAP = {}, {}


def _register_fusion_pattern(pattern):
    def put(handler):
        _DEFAULT_FUSION_PATTERNS[pattern] = handler
        return handler

    return put


def _register_quant_pattern(pattern, fixed_qparams_observer=None):
    def put(handler):
        from ..fake_quantize import FixedQParamsFakeQuantize

        _DEFAULT_QUANTIZATION_PATTERNS[pattern] = handler
        if fixed_qparams_observer is not None:
            _DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP[pattern] = FixedQParamsFakeQuantize.with_args(observer=fixed_qparams_observer)
            _DEFAULT_OUTPUT_OBSERVER_MAP[pattern] = fixed_qparams_observer
        return handler

    return put


def get_default_fusion_patterns():
    """{pattern: class that fuses it}, a copy."""
    return _DEFAULT_FUSION_PATTERNS.copy()


def get_default_quant_patterns():
    """{pattern: QuantizeHandler}, a copy."""
    return _DEFAULT_QUANTIZATION_PATTERNS.copy()


def get_default_output_activation_post_process_map(is_training):
    """{pattern: constructor of what watches results with a fixed range}, a copy."""
    return dict(_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP if is_training else _DEFAULT_OUTPUT_OBSERVER_MAP)


def _sorted_patterns_dict(patterns_dict):
    """Longer patterns before."""

    def length(pattern):
        return sum(map(length, pattern)) if isinstance(pattern, tuple) else 1

    return OrderedDict(sorted(patterns_dict.items(), key=lambda item: -length(item[0])))
