"""The operators of `torch.ops.quantized`, by family; loaded when one of them is asked for. Each is a Python function under its schema."""

from . import activation, archive, conv, embedding, linear, normalization, pointwise, recurrent  # noqa: F401
