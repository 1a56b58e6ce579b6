"""Models in stages on several ranks, through which microbatches go. docs/guide/distributed.md."""

from ._IR import Pipe, SplitPoint, pipe_split, pipeline
from .schedules import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble, ScheduleLoopedBFS, _ScheduleForwardOnly  # noqa: F401
from .stage import PipelineStage, build_stage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "SplitPoint",
    "build_stage", "pipe_split", "pipeline",
]
