"""Comparisons of a model before and after quantization."""
