"""Tensor classes that the package itself makes of the extension points."""

from .fake_tensor import (
    DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException, UnsupportedOperatorException,
)  # fmt: skip

__all__ = ["FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "DynamicOutputShapeException", "UnsupportedOperatorException"]
