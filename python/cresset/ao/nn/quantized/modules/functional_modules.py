"""Sums, products and joins as modules, so that their results are watched and quantized."""

import cresset
from cresset import nn

from .utils import output_qparams

__all__ = ["FloatFunctional", "FXFloatFunctional", "QFunctional"]


def _float_functions(watching):
    """The methods; with `watching` their results pass through the observer, but for those with numbers, whose scale follows from the input's."""

    def of(compute, doc, watched=True):
        def method(self, *args, **kwargs):
            result = compute(*args, **kwargs)
            return self.activation_post_process(result) if watching and watched else result

        method.__doc__ = doc
        return method

    return {
        "add": of(cresset.add, "x + y"), "add_scalar": of(cresset.add, "x + a number", False), "mul": of(cresset.mul, "x * y"),
        "mul_scalar": of(cresset.mul, "x * a number", False), "cat": of(lambda x, dim=0: cresset.cat(x, dim=dim), "Tensors joined along a dimension."),
        "add_relu": of(lambda x, y: nn.functional.relu(cresset.add(x, y)), "relu(x + y)"), "matmul": of(cresset.matmul, "x @ y"),
    }  # fmt: skip


class FloatFunctional(nn.Module):
    """add, mul, cat and so on of real numbers, whose results are watched by `activation_post_process`."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the forward. Please use the corresponding operation")


for _name, _method in _float_functions(True).items():
    setattr(FloatFunctional, _name, _method)


class FXFloatFunctional(nn.Module):
    """FloatFunctional for graphs, which have observers of their own."""

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the forward. Please use the corresponding operation")


for _name, _method in _float_functions(False).items():
    setattr(FXFloatFunctional, _name, _method)


class QFunctional(nn.Module):
    """add, mul, cat and so on of quantized tensors; `scale` and `zero_point` are those of the result."""

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise RuntimeError("Functional is not intended to use the forward. Please use the corresponding operation")

    def _watched(self, result):
        return self.activation_post_process(result)

    def add(self, x, y):
        """x + y"""
        return self._watched(cresset.ops.quantized.add(x, y, scale=self.scale, zero_point=self.zero_point))

    def add_scalar(self, x, y):
        """x + a number, with a scale that follows from x's"""
        return cresset.ops.quantized.add_scalar(x, y)

    def mul(self, x, y):
        """x * y"""
        return self._watched(cresset.ops.quantized.mul(x, y, scale=self.scale, zero_point=self.zero_point))

    def mul_scalar(self, x, y):
        """x * a number, with a scale that follows from x's"""
        return cresset.ops.quantized.mul_scalar(x, y)

    def cat(self, x, dim=0):
        """Tensors joined along a dimension."""
        return self._watched(cresset.ops.quantized.cat(x, scale=self.scale, zero_point=self.zero_point, dim=dim))

    def add_relu(self, x, y):
        """relu(x + y)"""
        return self._watched(cresset.ops.quantized.add_relu(x, y, scale=self.scale, zero_point=self.zero_point))

    def matmul(self, x, y):
        """x @ y"""
        return cresset.ops.quantized.matmul(x, y, scale=self.scale, zero_point=self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a FloatFunctional whose results were watched."""
        if type(mod) is not FloatFunctional:
            raise AssertionError(f"QFunctional.from_float expects an instance of FloatFunctional; got {type(mod)}")
        made = cls()
        made.scale, made.zero_point = output_qparams(mod)
        return made
