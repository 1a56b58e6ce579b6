"""Facts of pipelines and their errors."""

from dataclasses import dataclass
from typing import Any

__all__ = []


class PipeliningShapeError(RuntimeError):
    """A tensor has another shape or dtype than its stage expects."""


@dataclass
class PipeInfo:
    """The graph of all stages, and how many there are."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool


@dataclass(frozen=True)
class TensorMeta:
    """What is known of a tensor that passes between stages."""

    shape: tuple
    dtype: Any
    requires_grad: bool

    @classmethod
    def of(cls, tensor):
        return cls(tuple(tensor.shape), tensor.dtype, tensor.requires_grad)

    def check(self, desc, tensor):
        """PipeliningShapeError for another shape or dtype."""
        if tuple(tensor.shape) != self.shape:
            raise PipeliningShapeError(f"{desc} has a shape mismatch: expected {self.shape} actual {tuple(tensor.shape)}")
        if tensor.dtype != self.dtype:
            raise PipeliningShapeError(f"{desc} has a dtype mismatch: expected {self.dtype} actual {tensor.dtype}")
