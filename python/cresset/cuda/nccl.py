"""Collectives of NVIDIA's library between tensors on CUDA devices: none is built in, so none is available and each call says so."""

from ._absent import refusal as _refusal
from ._absent import refuse as _refuse

__all__ = ["all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"]

SUM = 0
all_reduce, reduce, broadcast, all_gather, reduce_scatter = map(_refusal, __all__)
version, unique_id, init_rank = _refuse, _refuse, _refuse


def is_available(tensors):
    """Can the library work on these tensors? No."""
    return False
