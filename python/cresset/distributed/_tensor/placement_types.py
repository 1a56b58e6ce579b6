"""The older name of `cresset.distributed.tensor.placement_types`."""

from ..tensor._dtensor_spec import DTensorSpec, TensorMeta
from ..tensor.placement_types import Partial, Placement, Replicate, Shard, _Partial, _StridedShard

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta", "_Partial", "_StridedShard"]
