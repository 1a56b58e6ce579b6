"""Quantization of graphs (`quantize_fx`), pass by pass, and the operators of quantized graphs (`_decomposed`)."""

from .convert import convert
from .fuse import fuse
from .prepare import prepare
