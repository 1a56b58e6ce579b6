"""Which quantized layers take the places of those with sparse weights."""

from cresset import nn

__all__ = ["get_static_sparse_quantized_mapping", "get_dynamic_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping():
    """{float layer: quantized layer with blocks of zeros in its weight}"""
    from cresset.ao.nn.sparse import quantized

    return {nn.Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping():
    """{float layer: layer with blocks of zeros in weights of eight bits}"""
    from cresset.ao.nn.sparse import quantized

    return {nn.Linear: quantized.dynamic.Linear}
