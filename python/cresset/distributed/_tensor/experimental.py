"""The older name of `cresset.distributed.tensor.experimental`."""

from ..tensor.experimental import context_parallel, implicit_replication, local_map, register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
