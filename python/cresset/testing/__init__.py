"""Comparing tensors, making tensors, and tests that run on every device.

| module | what is in it |
|---|---|
| `cresset.testing` | `assert_close`, `make_tensor`, `FileCheck` |
| `testing.samples` | rows of the operator table and their samples as calls |
| `testing.capabilities` | what a device can do: its dtypes, block and allow lists, tolerances |
| `testing.models` | the small example models |
| `testing._internal` | PyTorch's names for device-generic tests |
"""

from .._submodules import submodule
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]


def __getattr__(name):
    if name == "FileCheck":  # with the graph part, which is loaded at its first use
        from .._C import FileCheck

        return FileCheck
    return submodule(__name__, name)
