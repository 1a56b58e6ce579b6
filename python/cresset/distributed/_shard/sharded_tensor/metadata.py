"""What a ShardedTensor says of itself."""

from dataclasses import dataclass, field
from typing import List

import cresset
from cresset.distributed._shard.metadata import ShardMetadata
from cresset.distributed.checkpoint.metadata import _MEM_FORMAT_ENCODING as MEM_FORMAT_ENCODING
from cresset.distributed.checkpoint.metadata import TensorProperties as _Properties

__all__ = ["MEM_FORMAT_ENCODING", "ShardedTensorMetadata", "TensorProperties"]


@dataclass
class TensorProperties(_Properties):
    """What is needed to make a tensor, beside its size."""

    @staticmethod
    def create_from_tensor(tensor):
        """Those of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, cresset.contiguous_format, tensor.is_pinned())


@dataclass
class ShardedTensorMetadata:
    """The boxes of all ranks, the whole size, and the properties of its tensors."""

    shards_metadata: List[ShardMetadata] = field(default_factory=list)
    size: "cresset.Size" = field(default=cresset.Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
