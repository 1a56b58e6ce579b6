"""The mesh of data parallelism, and the states of training."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Optional

__all__ = ["FSDPMeshInfo", "HSDPMeshInfo", "TrainingState"]


class TrainingState(Enum):
    """Where a group of parameters is in an iteration."""

    FORWARD = auto()
    PRE_BACKWARD = auto()
    POST_BACKWARD = auto()
    IDLE = auto()


@dataclass
class FSDPMeshInfo:
    """The mesh, and which of its dimensions shards."""

    mesh: Any
    shard_mesh_dim: int = 0
    replicate_mesh_dim: Optional[int] = None

    @property
    def shard_mesh_size(self):
        return self.mesh.size(self.shard_mesh_dim)

    @property
    def shard_mesh_rank(self):
        return self.mesh.get_local_rank(self.shard_mesh_dim)

    @property
    def shard_process_group(self):
        return self.mesh.get_group(self.shard_mesh_dim)

    @property
    def replicate_process_group(self):
        return None if self.replicate_mesh_dim is None else self.mesh.get_group(self.replicate_mesh_dim)

    @property
    def replicate_mesh_size(self):
        return 1 if self.replicate_mesh_dim is None else self.mesh.size(self.replicate_mesh_dim)


HSDPMeshInfo = FSDPMeshInfo
