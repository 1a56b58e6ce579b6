"""Steps of translations in version 10 of ONNX's operator set."""

from .symbolic_opset9 import select, squeeze, unsqueeze

__all__ = ["select", "squeeze", "unsqueeze"]
