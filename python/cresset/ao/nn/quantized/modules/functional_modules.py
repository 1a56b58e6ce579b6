"""Sums, products and joins as modules, so that their results are watched and quantized."""

import cresset
from cresset import Tensor, nn

from .utils import output_qparams

__all__ = ["FloatFunctional", "FXFloatFunctional", "QFunctional"]


class FloatFunctional(nn.Module):
    """add, mul, cat and so on of real numbers, whose results are watched by `activation_post_process`."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y"""
        return self.activation_post_process(cresset.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + a number, whose scale follows from x's"""
        return cresset.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y"""
        return self.activation_post_process(cresset.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * a number, whose scale follows from x's"""
        return cresset.mul(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors joined along a dimension."""
        return self.activation_post_process(cresset.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)"""
        return self.activation_post_process(nn.functional.relu(cresset.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y"""
        return self.activation_post_process(cresset.matmul(x, y))


class FXFloatFunctional(nn.Module):
    """FloatFunctional for graphs, which have observers of their own."""

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y"""
        return cresset.add(x, y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + a number"""
        return cresset.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y"""
        return cresset.mul(x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * a number"""
        return cresset.mul(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors joined along a dimension."""
        return cresset.cat(x, dim=dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)"""
        return nn.functional.relu(cresset.add(x, y))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y"""
        return cresset.matmul(x, y)


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
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def _watched(self, result):
        return self.activation_post_process(result)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y"""
        return self._watched(cresset.ops.quantized.add(x, y, scale=self.scale, zero_point=self.zero_point))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + a number, with a scale that follows from x's"""
        return cresset.ops.quantized.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y"""
        return self._watched(cresset.ops.quantized.mul(x, y, scale=self.scale, zero_point=self.zero_point))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * a number, with a scale that follows from x's"""
        return cresset.ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors joined along a dimension."""
        return self._watched(cresset.ops.quantized.cat(x, scale=self.scale, zero_point=self.zero_point, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)"""
        return self._watched(cresset.ops.quantized.add_relu(x, y, scale=self.scale, zero_point=self.zero_point))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
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
