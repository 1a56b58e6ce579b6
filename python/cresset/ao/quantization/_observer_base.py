"""What observers have in common: a dtype, a scheme, and the range of whole numbers."""

import warnings
from abc import ABC, abstractmethod

import cresset
from cresset import nn

from ._partial import with_args as _with_args
from ._partial import with_callable_args as _with_callable_args
from .utils import calculate_qmin_qmax, determine_qparams, validate_qmin_qmax

__all__ = ["ObserverBase", "UniformQuantizationObserverBase", "make_room"]

_EPS = cresset.finfo(cresset.float32).eps
_SCHEMES = (
    cresset.per_tensor_affine, cresset.per_tensor_symmetric, cresset.per_channel_affine, cresset.per_channel_symmetric, cresset.per_channel_affine_float_qparams,
)  # fmt: skip
_DTYPES = (
    cresset.qint8, cresset.quint8, cresset.quint4x2, cresset.qint32, cresset.int8, cresset.uint8, cresset.int16, cresset.int32, cresset.float8_e5m2,
    cresset.float8_e4m3fn, cresset.uint16,
)  # fmt: skip


def make_room(module, names, state_dict, prefix, strict, missing_keys):
    """Give buffers the sizes that they have in a state dict, which are those of what was seen; with `strict` absent ones are noted as missing."""
    for name in names:
        value = state_dict.get(prefix + name)
        if value is not None:
            getattr(module, name).resize_(value.shape)
        elif strict:
            missing_keys.append(prefix + name)


class ObserverBase(ABC, nn.Module):
    """A module whose forward(x) watches x, and whose calculate_qparams() tells how to quantize what it saw to `dtype`."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x):
        """x, watched."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)"""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """An observer whose scale comes from the least and the greatest value, `min_val` and `max_val`."""

    _version = 3  # of its part of state dicts
    eps: cresset.Tensor

    def __init__(self, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None,
                 eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers.                     reduce_range will be deprecated in a future release of PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", cresset.tensor([eps], **(factory_kwargs or {})))
        if qscheme not in _SCHEMES:
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric and "
                f"per_channel_float_qparams quantization scheme; got {qscheme}"
            )
        if dtype not in _DTYPES:
            raise AssertionError(f"Default Observer only works for {', '.join(map(str, _DTYPES))} data type; got {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version", None)
        if version is None or version == 1:  # before there was eps
            state_dict[prefix + "eps"] = cresset.tensor([_EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _validate_qmin_qmax(self, quant_min, quant_max):
        validate_qmin_qmax(quant_min, quant_max)

    def _calculate_qparams(self, min_val, max_val):
        return determine_qparams(min_val, max_val, self.quant_min, self.quant_max, self.dtype, self.eps, self.has_customized_qrange, self.qscheme)

    def reset_min_max_vals(self):
        """Raises NotImplementedError: the class has no values to forget."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


ObserverBase.__module__ = UniformQuantizationObserverBase.__module__ = f"{__package__}.observer"
