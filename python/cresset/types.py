"""Names for annotations."""

import builtins
import os
from collections.abc import Sequence

import cresset

Number = builtins.int | builtins.float | builtins.bool
Device = cresset.device | builtins.str | builtins.int | None
FileLike = builtins.str | os.PathLike
Storage = cresset.storage.UntypedStorage | cresset.storage.TypedStorage

_TensorOrTensors = cresset.Tensor | Sequence[cresset.Tensor]
_dtype, _device, _size, _layout = cresset.dtype, cresset.device, cresset.Size | list | tuple, cresset.layout
_int, _float, _bool, _symint = builtins.int, builtins.float, builtins.bool, builtins.int

IntLikeType, FloatLikeType, BoolLikeType = builtins.int | cresset.SymInt, builtins.float | cresset.SymFloat, builtins.bool | cresset.SymBool
py_sym_types = (cresset.SymInt, cresset.SymFloat, cresset.SymBool)
PySymType = cresset.SymInt | cresset.SymFloat | cresset.SymBool

__all__ = ["Number", "Device", "FileLike", "Storage"]
