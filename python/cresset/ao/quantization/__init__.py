"""Dynamic quantization of trained modules: weights in int8 or float16, inputs quantized as they come."""

from .observer import FakeQuantizeBase, ObserverBase
from .qconfig import QConfig, default_dynamic_qconfig, default_dynamic_quant_observer, float16_dynamic_qconfig, per_channel_dynamic_qconfig
from .quantize import DeQuantStub, QuantStub, convert, get_default_dynamic_quant_module_mappings, propagate_qconfig_, quantize_dynamic
from .quantize import swap_module

__all__ = [
    "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "convert", "default_dynamic_qconfig", "default_dynamic_quant_observer", "float16_dynamic_qconfig",
    "get_default_dynamic_quant_module_mappings", "per_channel_dynamic_qconfig", "propagate_qconfig_", "quantize_dynamic", "swap_module",
]  # fmt: skip


def __getattr__(name):
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: of quantization there is quantize_dynamic for Linear and recurrent layers.")
