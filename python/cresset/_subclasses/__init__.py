"""Tensor classes that the package itself makes of the extension points."""

from .fake_tensor import (
    DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException, UnsupportedOperatorException,
)  # fmt: skip

from .fake_utils import CrossRefFakeMode

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "DynamicOutputShapeException", "UnsupportedOperatorException"]
