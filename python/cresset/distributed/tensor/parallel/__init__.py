"""Modules whose layers are divided among the ranks of a mesh: tensor and sequence parallelism."""

from .api import parallelize_module
from .loss import loss_parallel
from .style import ColwiseParallel, ParallelStyle, PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput, RowwiseParallel, SequenceParallel

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
    "loss_parallel", "parallelize_module",
]
