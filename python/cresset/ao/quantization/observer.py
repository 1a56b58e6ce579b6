"""Observers: modules that watch values, and tell by which scales and zero points to quantize them."""

from abc import ABC, ABCMeta  # noqa: F401  names of this module in PyTorch
import re
import warnings
from typing import List
from collections import OrderedDict

import cresset
from cresset._homes import settle

from ._granularity import (
    AffineQuantizedObserverBase, Granularity, MappingType, PerAxis, PerBlock, PerGroup, PerRow, PerTensor, PerToken, TorchAODType, ZeroPointDomain, get_block_size,
)  # fmt: skip
from ._fake_quantize_base import FakeQuantizeBase
from ._histogram import HistogramObserver
from ._observer_base import _EPS, ObserverBase, UniformQuantizationObserverBase, make_room
from ._partial import PartialWrapper as _PartialWrapper  # noqa: F401
from ._partial import with_args as _with_args  # noqa: F401
from ._partial import with_callable_args as _with_callable_args  # noqa: F401
from .utils import calculate_qmin_qmax, check_min_max_valid, is_per_channel, is_per_tensor, validate_qmin_qmax  # noqa: F401

__all__ = [
    "default_affine_fixed_qparams_observer", "default_debug_observer", "default_dynamic_quant_observer", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer", "default_float_qparams_observer_4bit", "default_histogram_observer",
    "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer", "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer", "default_weight_observer", "get_observer_state_dict", "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127", "weight_observer_range_neg_127_to_127", "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver",
    "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver",
    "RecordingObserver", "ReuseInputObserver", "UniformQuantizationObserverBase", "AffineQuantizedObserverBase", "Granularity", "MappingType", "PerAxis",
    "PerBlock", "PerGroup", "PerRow", "PerTensor", "PerToken", "TorchAODType", "ZeroPointDomain", "get_block_size",
]  # fmt: skip

settle(globals())

_ObserverBase = UniformQuantizationObserverBase


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest of all values."""

    min_val: cresset.Tensor
    max_val: cresset.Tensor

    def __init__(self, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None,
                 eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError("MinMaxObserver's qscheme only support torch.per_tensor_symmetric                     and torch.per_tensor_affine.")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self._register_range(factory_kwargs or {})
        if self.qscheme is cresset.per_tensor_symmetric and self.reduce_range and self.dtype is cresset.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric                                        quantization for quint8")

    def _register_range(self, factory_kwargs):
        self.register_buffer("min_val", cresset.tensor(float("inf"), **factory_kwargs))
        self.register_buffer("max_val", cresset.tensor(float("-inf"), **factory_kwargs))

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = cresset.aminmax(x_orig.detach().to(self.min_val.dtype))
        self._take(low, high)
        return x_orig

    def _take(self, low, high):
        self.min_val.copy_(cresset.minimum(low, self.min_val))
        self.max_val.copy_(cresset.maximum(high, self.max_val))

    @cresset.jit.export
    def calculate_qparams(self):
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    @cresset.jit.export
    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val.copy_(cresset.tensor(float("inf")))
        self.max_val.copy_(cresset.tensor(float("-inf")))


def _check_averaging(name, is_dynamic, constant):
    if is_dynamic and constant != 1:
        raise NotImplementedError(f"{name} doesn't support dynamic quantization for averaging constant of {constant}")


class MovingAverageMinMaxObserver(MinMaxObserver):
    """The least and the greatest value of each call, averaged: `averaging_constant` of the new ones, the rest of what was."""

    def __init__(self, averaging_constant=0.01, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
                 eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(f"MovingAverageMinMaxObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine. but got: {qscheme}")
        self.averaging_constant = averaging_constant
        _check_averaging("MovingAverageMinMaxObserver", is_dynamic, averaging_constant)
        super().__init__(dtype=dtype, qscheme=qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)

    def _take(self, low, high):
        if self.min_val != float("inf") or self.max_val != float("-inf"):
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self.min_val.copy_(low)
        self.max_val.copy_(high)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest value for each index of dimension `ch_axis`."""

    min_val: cresset.Tensor
    max_val: cresset.Tensor

    def __init__(self, ch_axis=0, dtype=cresset.quint8, qscheme=cresset.per_channel_affine, reduce_range=False, quant_min=None, quant_max=None,
                 factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        if is_per_tensor(qscheme):
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support                     torch.per_channel_symmetric, torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", cresset.tensor([], **(factory_kwargs or {})))
        self.register_buffer("max_val", cresset.tensor([], **(factory_kwargs or {})))
        if self.qscheme is cresset.per_channel_symmetric and self.reduce_range and self.dtype is cresset.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        rows = x_orig.detach().transpose(self.ch_axis, 0).to(self.min_val.dtype).flatten(1)
        low, high = cresset.aminmax(rows, dim=1)
        self._take(low, high)
        return x_orig

    def _take(self, low, high):
        if self.min_val.numel():
            low, high = cresset.minimum(low, self.min_val), cresset.maximum(high, self.max_val)
        self._keep(low, high)

    def _keep(self, low, high):
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    @cresset.jit.export
    def calculate_qparams(self):
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        if version is not None and version < 3:
            names = {"min_vals": "min_val", "max_vals": "max_val"}
            for old, new in names.items():
                if prefix + old in state_dict:
                    state_dict[prefix + new] = state_dict.pop(prefix + old)
        make_room(self, ("min_val", "max_val"), state_dict, prefix, strict, missing_keys)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    @cresset.jit.export
    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val = cresset.rand(0)
        self.max_val = cresset.rand(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """PerChannelMinMaxObserver with averages over the calls."""

    def __init__(self, averaging_constant=0.01, ch_axis=0, dtype=cresset.quint8, qscheme=cresset.per_channel_affine, reduce_range=False, quant_min=None,
                 quant_max=None, eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        if is_per_tensor(qscheme):
            raise NotImplementedError(
                "MovingAveragePerChannelMinMaxObserver's qscheme only support                     torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("MovingAveragePerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(ch_axis=ch_axis, dtype=dtype, qscheme=qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max, eps=eps,
                         is_dynamic=is_dynamic, **kwargs)  # fmt: skip
        self.averaging_constant = averaging_constant

    def _take(self, low, high):
        if self.min_val.numel():
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self._keep(low, high)


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known: those of functions with a fixed range."""

    scale: cresset.Tensor
    zero_point: cresset.Tensor

    def __init__(self, scale, zero_point, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, quant_min=0, quant_max=255, is_dynamic=False, **kwargs):
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", cresset.tensor([scale], dtype=cresset.float))
        self.register_buffer("zero_point", cresset.tensor([zero_point], dtype=cresset.int))
        self.dtype, self.qscheme = dtype, qscheme

    def forward(self, X):
        return X

    @cresset.jit.export
    def calculate_qparams(self):
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Watches nothing: says which dtype is meant, and whether values are quantized as they come."""

    _watches = False

    def __init__(self, dtype=cresset.float32, custom_op_name="", compute_dtype=None, quant_min=None, quant_max=None, qscheme=None, eps=None, is_dynamic=False):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = cresset.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, 2**-12 if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            self.is_dynamic = True
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`.                     `compute_dtype` will be deprecated in a future release                     of PyTorch.", stacklevel=2,
            )  # fmt: skip

    def forward(self, x):
        return x

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    @cresset.jit.export
    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")


class RecordingObserver(ObserverBase):
    """Keeps copies of all values."""

    __annotations__ = {"tensor_val": List[cresset.Tensor]}

    def __init__(self, dtype=cresset.quint8):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    @cresset.jit.export
    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    @cresset.jit.export
    def get_tensor_value(self):
        """The values, in the order of the calls."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Watches nothing: for layers whose values only change dtype."""

    def __init__(self, dtype=cresset.float16, custom_op_name=""):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.dtype, self.custom_op = dtype, custom_op_name

    def forward(self, x):
        return x

    @cresset.jit.export
    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Stands for the observer of the input, where the output has its scale."""

    def __init__(self):
        super().__init__(cresset.quint8, is_dynamic=False)

    def forward(self, x):
        return x

    @cresset.jit.export
    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")


def _is_observer_script_module(mod, obs_type_name):
    """Is it a script of the observer class of that name?"""
    if not isinstance(mod, cresset.jit.RecursiveScriptModule):
        return False
    parts = mod._c._type().qualified_name().split(".observer.", 1)
    return len(parts) == 2 and re.sub(r"___torch_mangle_\d+\.", "", parts[1]) == obs_type_name


def _is_activation_post_process(module):
    """Is it an observer or a fake quantizer, of Python or of a script?"""
    return isinstance(module, (ObserverBase, FakeQuantizeBase, AffineQuantizedObserverBase)) or _is_observer_script_module(module, "quantization.observer")


def _is_per_channel_script_obs_instance(module):
    return any(_is_observer_script_module(module, name) for name in ("PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"))


def get_observer_state_dict(mod):
    """The part of the state dict that belongs to observers."""
    found = {name: value for name, value in mod.state_dict().items() if "observer" in name or "activation_post_process" in name}
    return OrderedDict(found)


def load_observer_state_dict(mod, obs_dict):
    """Load what get_observer_state_dict gave. RuntimeError for names that do not fit."""
    missing, unexpected = [], []
    for name, module in mod.named_modules():
        prefix = name + "."
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, prefix, {}, False, missing, unexpected, [])
    for key in missing:
        if "observer" in key or "activation_post_process" in key:
            raise Exception(f"Missing keys for observer {key} in state_dict")
    for key in unexpected:
        if "observer" in key or "activation_post_process" in key:
            raise Exception(f"Unexpected keys for observer {key} in state_dict")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)  # fmt: skip
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=cresset.qint8, qscheme=cresset.per_channel_symmetric)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=cresset.qint8, qscheme=cresset.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)  # fmt: skip
default_dynamic_quant_observer = PlaceholderObserver.with_args(dtype=cresset.quint8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(dtype=cresset.quint8, qscheme=cresset.per_channel_affine_float_qparams, ch_axis=0)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(dtype=cresset.quint4x2, qscheme=cresset.per_channel_affine_float_qparams, ch_axis=0)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(scale=2.0 / 256.0, zero_point=128, dtype=cresset.quint8, quant_min=0, quant_max=255)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(scale=1.0 / 256.0, zero_point=0, dtype=cresset.quint8, quant_min=0, quant_max=255)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
