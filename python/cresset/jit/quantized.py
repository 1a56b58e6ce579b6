"""The first functions that quantized modules for scripts. They say what took their place, as in PyTorch."""

__all__ = ["quantize_linear_modules", "quantize_rnn_cell_modules", "quantize_rnn_modules"]


def _gone(name):
    raise RuntimeError(f"{name} function is no longer supported. Please use cresset.ao.quantization.quantize_dynamic API instead.")


def quantize_linear_modules(module, dtype=None):
    """RuntimeError: `cresset.ao.quantization.quantize_dynamic` took its place."""
    _gone("quantize_linear_modules")


def quantize_rnn_cell_modules(module):
    """RuntimeError: `cresset.ao.quantization.quantize_dynamic` took its place."""
    _gone("quantize_rnn_cell_modules")


def quantize_rnn_modules(module, dtype=None):
    """RuntimeError: `cresset.ao.quantization.quantize_dynamic` took its place."""
    _gone("quantize_rnn_modules")
