"""Linear layers with blocks of zeros in weights of eight bits, and real inputs and outputs."""

import cresset
from cresset import nn
from cresset.nn.utils.parametrize import type_before_parametrizations

from .. import linear as nnsq
from ..utils import LinearBlockSparsePattern

__all__ = ["Linear"]


class Linear(nnsq.Linear):
    """nn.Linear whose weight has eight bits and blocks of zeros, and whose input is quantized for each call. `weight()` and `bias()` are methods."""

    _op_type = "sparse_dynamic"
    _NAME = "SparseQuantizedDynamicLinear"

    def __init__(self, in_features, out_features, row_block_size, col_block_size, bias=True, dtype=cresset.qint8):
        if dtype is not cresset.qint8:
            raise NotImplementedError("Only QINT8 is supported for Sparse Quantized Linear Dynamic")
        super().__init__(in_features, out_features, row_block_size, col_block_size, bias, dtype)
        del self.scale, self.zero_point

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, qscheme={self.weight().qscheme()}"

    def forward(self, x):
        return cresset.ops.sparse.qlinear_dynamic(x, self._packed_params._packed_params)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        nn.Module._save_to_state_dict(self, destination, prefix, keep_vars)
        destination[prefix + "op_type"] = self._op_type

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        rest = dict(state_dict)
        kind = rest.pop(prefix + "op_type", None)
        if kind is None:
            missing_keys.append(prefix + "op_type")
        elif kind != self._op_type:
            error_msgs.append(f"{prefix}op_type: {self._op_type!r} was required; got {kind!r}.")
        nn.Module._load_from_state_dict(self, rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer, by its `qconfig`; blocks are those of `LinearBlockSparsePattern`."""
        if type_before_parametrizations(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        return cls._of(mod, mod, *LinearBlockSparsePattern.block_size())
