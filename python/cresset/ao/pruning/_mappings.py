"""Which layers take the places of those with sparse weights."""

__all__ = ["get_static_sparse_quantized_mapping", "get_dynamic_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping():
    """NotImplementedError: there are no layers of sparse and quantized weights."""
    raise NotImplementedError("get_static_sparse_quantized_mapping: layers of sparse and quantized weights are not part of Cresset. Use those of ao.nn.quantized.")


def get_dynamic_sparse_quantized_mapping():
    """NotImplementedError: there are no layers of sparse and quantized weights."""
    raise NotImplementedError("get_dynamic_sparse_quantized_mapping: layers of sparse and quantized weights are not part of Cresset. Use those of ao.nn.quantized.dynamic.")
