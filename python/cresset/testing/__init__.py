"""Comparing tensors, making tensors, and tests that run on every device.

| module | what is in it |
|---|---|
| `cresset.testing` | `assert_close`, `make_tensor`, `FileCheck` |
| `testing.samples` | rows of the operator table and their samples as calls |
| `testing.capabilities` | what a device can do: its dtypes, block and allow lists, tolerances |
| `testing.models` | the small example models |
| `testing._internal` | PyTorch's names for device-generic tests |
"""

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
