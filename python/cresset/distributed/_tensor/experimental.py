"""The older name of `cresset.distributed.tensor.experimental`."""

from ..tensor.experimental import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
