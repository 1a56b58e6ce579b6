"""Operators of quantized graphs (`_decomposed`). Quantization of graphs itself is not part of Cresset."""
