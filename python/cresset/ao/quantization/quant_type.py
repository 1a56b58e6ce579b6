"""Kinds of quantization."""

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """When activations are quantized: as they come, with scales found beforehand, in training, or never."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


_quant_type_to_str = {kind: kind.name.lower() for kind in (QuantType.STATIC, QuantType.DYNAMIC, QuantType.QAT, QuantType.WEIGHT_ONLY)}


def _get_quant_type_to_str(quant_type):
    return _quant_type_to_str[quant_type]


def _quant_type_from_str(name):
    for kind, text in _quant_type_to_str.items():
        if text == name:
            return kind
    raise ValueError(f"Unknown QuantType name '{name}'")
