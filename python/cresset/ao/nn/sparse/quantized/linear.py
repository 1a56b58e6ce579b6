"""Linear layers of whole numbers with blocks of zeros."""

import cresset
from cresset import nn
from cresset.ao.nn.quantized.modules.utils import _hide_packed_params_repr, _quantize_weight, output_qparams, take_numbers
from cresset.nn.utils.parametrize import type_before_parametrizations

__all__ = ["LinearPackedParams", "Linear"]


def _check_block(row_block_size, col_block_size):
    if row_block_size is None or col_block_size is None:
        raise AssertionError(f"row_block_size and col_block_size must not be None, got row_block_size={row_block_size}, col_block_size={col_block_size}")


class LinearPackedParams(nn.Module):
    """The weight (qint8) and bias of a linear layer, packed."""

    _version = 1  # of its part of state dicts

    def __init__(self, row_block_size=1, col_block_size=4, dtype=cresset.qint8):
        super().__init__()
        if dtype is not cresset.qint8:
            raise NotImplementedError("Linear prepacking only supports QINT8")
        self.dtype = dtype
        self.set_weight_bias(cresset._empty_affine_quantized([1, 1], scale=1.0, zero_point=0, dtype=cresset.qint8), None, row_block_size, col_block_size)

    def _get_name(self):
        return "SparseQuantizedLinearPackedParams"

    def set_weight_bias(self, weight, bias, row_block_size, col_block_size):
        """Pack others."""
        _check_block(row_block_size, col_block_size)
        self._packed_params = cresset.ops.sparse.qlinear_prepack(weight, bias, row_block_size, col_block_size)

    def _weight_bias(self):
        weight, bias, block = cresset.ops.sparse.qlinear_unpack(self._packed_params)
        return weight, bias, block[0], block[1]

    def forward(self, x):
        return x

    # A state dict has the dtype, and weight, bias and sizes of blocks in one tuple.
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        known = ("dtype", "_packed_params")
        missing_keys += [prefix + name for name in known if prefix + name not in state_dict]
        self.dtype = state_dict.get(prefix + "dtype", self.dtype)
        if prefix + "_packed_params" in state_dict:
            self.set_weight_bias(*state_dict[prefix + "_packed_params"])
        if strict:
            unexpected_keys += [name for name in state_dict if name.startswith(prefix) and name[len(prefix) :] not in known]

    def __repr__(self):
        return repr(self._weight_bias())


class Linear(nn.Module):
    """nn.Linear of whole numbers whose weight has blocks of zeros. `weight()` and `bias()` are methods; `scale` and `zero_point` are those of the output."""

    _version = 1  # of its part of state dicts
    _FLOAT_MODULE = nn.Linear
    _NAME = "SparseQuantizedLinear"

    def __init__(self, in_features, out_features, row_block_size, col_block_size, bias=True, dtype=cresset.qint8):
        super().__init__()
        if dtype is not cresset.qint8:
            raise NotImplementedError("Only QINT8 is supported for Sparse Quantized Linear")
        self.in_features, self.out_features = in_features, out_features
        weight = cresset._empty_affine_quantized([out_features, in_features], scale=1, zero_point=0, dtype=cresset.qint8)
        self._packed_params = LinearPackedParams(1, 4, dtype)
        self.set_weight_bias(weight, cresset.zeros(out_features) if bias else None, row_block_size, col_block_size)
        self.scale, self.zero_point = 1.0, 0

    @classmethod
    def _get_name(cls):
        return cls._NAME

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"

    def __repr__(self):
        return _hide_packed_params_repr(self, LinearPackedParams)

    def forward(self, x):
        return cresset.ops.sparse.qlinear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        rest = dict(state_dict)
        missing_keys += [prefix + name for name in ("scale", "zero_point") if prefix + name not in rest]
        take_numbers(self, rest, prefix)
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        """The weight, quantized."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, or None."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w, b, row_block_size, col_block_size):
        """Another quantized weight, and another bias."""
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer whose activations were watched, with the `sparse_params` that `squash_mask` left there."""
        if type_before_parametrizations(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls._get_name()}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "sparse_params"):
            raise AssertionError('Expecting the Linear to have `sparse_params`. Make sure you have provided arguments in the `sparsifier.squash_mask(params_to_save=("sparse_block_shape",))` method.')
        block = mod.sparse_params.get("sparse_block_shape", None)
        if not isinstance(block, (tuple, list)):
            raise AssertionError(f"sparse_block_shape must be tuple or list, got {type(block)}")
        if len(block) != 2:
            raise AssertionError(f"sparse_block_shape must have length 2, got {len(block)}")
        made = cls._of(mod, mod, *block)
        made.scale, made.zero_point = output_qparams(mod) or (1.0, 0)
        return made

    @classmethod
    def _of(cls, mod, linear, row_block_size, col_block_size):
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = mod.qconfig.weight()
        if observer.dtype is not cresset.qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
        weight = linear.weight.detach()
        observer(weight)
        made = cls(linear.in_features, linear.out_features, row_block_size, col_block_size)
        made.set_weight_bias(_quantize_weight(weight.float(), observer), linear.bias, row_block_size, col_block_size)
        return made
