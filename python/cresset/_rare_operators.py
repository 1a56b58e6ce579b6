"""Operators of `aten` that are functions of Python here: for scripts, which find operators by name (`cresset.jit` loads this module), and for `ops.aten`."""

import cresset

from . import _rare_functions

__all__ = ["NAMES"]

_ROWS = {
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor": _rare_functions._grouped_mm,
    "dequantize.self(Tensor self) -> Tensor": lambda self: self.dequantize(),
}

NAMES = frozenset(schema.partition("(")[0].partition(".")[0] for schema in _ROWS)

_library = cresset.library.Library("aten", "FRAGMENT")
for _schema, _function in _ROWS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")
