"""Tensor classes that the package itself makes of the extension points."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

from .fake_tensor import (
    DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException, UnsupportedOperatorException,
)  # fmt: skip

from .fake_utils import CrossRefFakeMode

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "DynamicOutputShapeException", "UnsupportedOperatorException"]

__getattr__ = _partial(_submodule, __name__)
