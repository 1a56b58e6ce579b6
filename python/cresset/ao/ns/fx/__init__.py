"""Comparisons of graphs of a model and of its quantized forms: what `ns._numeric_suite_fx` is made of."""
