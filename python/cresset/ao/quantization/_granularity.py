"""How many elements share a scale, and how ranges become whole numbers: the words of observers for affine quantization."""

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass

from cresset import nn

from ._partial import with_args


class MappingType(enum.Enum):
    """Is the zero point in the middle?"""

    SYMMETRIC = enum.auto()
    SYMMETRIC_NO_CLIPPING_ERR = enum.auto()
    ASYMMETRIC = enum.auto()


class ZeroPointDomain(enum.Enum):
    """What the zero point counts in."""

    INT = enum.auto()
    FLOAT = enum.auto()
    NONE = enum.auto()


class TorchAODType(enum.Enum):
    """Whole numbers of less than eight bits."""

    INT1 = enum.auto()
    INT2 = enum.auto()
    INT3 = enum.auto()
    INT4 = enum.auto()
    INT5 = enum.auto()
    INT6 = enum.auto()
    INT7 = enum.auto()


@dataclass(frozen=True)
class Granularity:
    """How many elements share a scale."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """A scale for each block of this size."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One scale."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """A scale for each index of a dimension."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """A scale for so many neighbours of a row."""

    group_size: int


class PerRow(Granularity):
    """A scale for each row."""


class PerToken(Granularity):
    """A scale for each row, which stands for a token."""


def get_block_size(input_shape, granularity):
    """The sizes of the blocks that share a scale. ValueError for another granularity."""
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerBlock):
        return granularity.block_size
    if isinstance(granularity, PerAxis):
        sizes = list(input_shape)
        sizes[granularity.axis] = 1
        return tuple(sizes)
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(input_shape) - 1) + (input_shape[-1],)
    if isinstance(granularity, PerGroup):
        if input_shape[-1] % granularity.group_size:
            raise AssertionError(f"Group size {granularity.group_size} does not divide input shape {input_shape}")
        return (1,) * (len(input_shape) - 1) + (granularity.group_size,)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(ABC, nn.Module):
    """A module that watches values for affine quantization of any granularity."""

    with_args = classmethod(with_args)

    def __init__(self, mapping_type, target_dtype, granularity, quant_min=None, quant_max=None, eps=None, scale_dtype=None, zero_point_dtype=None,
                 preserve_zero=True, zero_point_domain=ZeroPointDomain.INT, **kwargs):  # fmt: skip
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        if zero_point_domain is None:
            raise ValueError("Please use ZeroPointDomain.NONE instead of None")
        if zero_point_domain is ZeroPointDomain.NONE and zero_point_dtype is not None:
            raise ValueError("zero_point_dtype should be None when zero_point_domain is ZeroPointDomain.NONE")
        self.mapping_type, self.target_dtype, self.granularity = mapping_type, target_dtype, granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain

    @abstractmethod
    def forward(self, input):
        """The input, watched."""

    @abstractmethod
    def calculate_qparams(self):
        """(scale, zero point)"""

    def convert(self, model, observer_node):
        """Put quantization into a graph in place of the observer's node. NotImplementedError: graphs are not quantized here."""
        raise NotImplementedError("AffineQuantizedObserverBase.convert: quantization of exported graphs is not part of Cresset.")
