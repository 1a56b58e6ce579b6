"""The operators of `torch.ops.quantized` and `torch.ops.sparse`, by family; loaded when one of them is asked for. Each is a Python function under its schema."""

from . import activation, archive, conv, embedding, linear, normalization, pointwise, recurrent, sparse  # noqa: F401
