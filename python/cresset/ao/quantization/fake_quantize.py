"""Modules that round as quantization does, in floating point, so that training feels it."""

import re

import cresset

from ._fake_quantize_base import FakeQuantizeBase
from ._observer_base import make_room
from .observer import (  # noqa: F401
    FixedQParamsObserver,
    HistogramObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)  # fmt: skip
from .utils import is_per_channel, is_per_tensor, is_symmetric

__all__ = [
    "FakeQuantizeBase", "FakeQuantize", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize", "disable_fake_quant", "disable_observer", "enable_fake_quant",
    "enable_observer", "default_fake_quant", "default_weight_fake_quant", "default_dynamic_fake_quant", "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant", "default_symmetric_fixed_qparams_fake_quant", "default_affine_fixed_qparams_fake_quant",
    "default_per_channel_weight_fake_quant", "default_embedding_fake_quant", "default_embedding_fake_quant_4bit", "default_histogram_fake_quant",
    "default_fused_act_fake_quant", "default_fused_wt_fake_quant", "default_fused_per_channel_wt_fake_quant", "fused_wt_fake_quant_range_neg_127_to_127",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip

_is_per_channel, _is_per_tensor, _is_symmetric_quant = is_per_channel, is_per_tensor, is_symmetric


def _is_float_qparams(qscheme):
    return qscheme is cresset.per_channel_affine_float_qparams


class FakeQuantize(FakeQuantizeBase):
    """Rounds by the scale and zero point that an observer (`activation_post_process`) finds at each call."""

    scale: cresset.Tensor
    zero_point: cresset.Tensor

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", cresset.quint8)
            if hasattr(observer, "p"):  # the constructor may know the dtype
                dtype = getattr(getattr(observer, "p", {}), "keywords", {}).get("dtype", dtype)
            low, high = {cresset.quint8: (0, 255), cresset.qint8: (-128, 127), cresset.qint32: (-(2**31), 2**31 - 1)}.get(dtype) or _limits(dtype)
            if low > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > high:
                raise AssertionError("quant_max out of bound")
            observer_kwargs.update({"quant_min": quant_min, "quant_max": quant_max})
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        watching = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = watching.quant_min, watching.quant_max, watching.is_dynamic
        zero = cresset.float if _is_float_qparams(watching.qscheme) else cresset.int
        self.register_buffer("scale", cresset.tensor([1.0], dtype=cresset.float))
        self.register_buffer("zero_point", cresset.tensor([0], dtype=zero))
        self.dtype, self.qscheme = watching.dtype, watching.qscheme
        self.ch_axis = getattr(watching, "ch_axis", -1)
        if not (is_per_channel(self.qscheme) or is_per_tensor(self.qscheme)):
            raise AssertionError(f"Only per channel and per tensor quantization are supported in fake quantize got qscheme: {self.qscheme}")
        self.is_per_channel = is_per_channel(self.qscheme)

    @cresset.jit.export
    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            self.scale.resize_(scale.shape).copy_(scale)
            self.zero_point.resize_(zero_point.shape).copy_(zero_point)
        if self.fake_quant_enabled[0] == 1:
            if self.is_per_channel:
                return cresset.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max)
            return cresset.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, self.quant_min, self.quant_max)
        return X

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, dtype={self.dtype}, "
            f"qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        make_room(self, ("scale", "zero_point"), state_dict, prefix, strict, missing_keys)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


def _limits(dtype):
    if dtype in (cresset.quint4x2, cresset.quint2x4):
        return 0, 15
    info = cresset.iinfo(dtype)
    return info.min, info.max


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds by the scale and zero point of a FixedQParamsObserver."""

    def __init__(self, observer):
        super().__init__(observer=observer)
        if type(self.activation_post_process).__name__ != "FixedQParamsObserver":
            raise AssertionError(f"{self.__class__.__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point
        if not is_per_tensor(self.qscheme):
            raise AssertionError("Only per tensor quantization is supported FixedQParamsFakeQuantize module, got qscheme:" + str(self.qscheme))

    @cresset.jit.export
    def calculate_qparams(self):
        return self.scale, self.zero_point

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, zero_point={self.zero_point}, "
            f"dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """FakeQuantize with a moving average, as one operator."""

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **observer_kwargs):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver and MovingAveragePerChannelMinMaxObserver")
        self.register_buffer("fake_quant_enabled", cresset.tensor([1], dtype=cresset.long))
        self.register_buffer("observer_enabled", cresset.tensor([1], dtype=cresset.long))
        self.is_symmetric_quant = is_symmetric(self.activation_post_process.qscheme)

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, zero_point={self.zero_point}, "
            f"dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )

    def forward(self, X):
        watching = self.activation_post_process
        return cresset.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, watching.min_val, watching.max_val, self.scale, self.zero_point, watching.averaging_constant,
            watching.quant_min, watching.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


def _is_fake_quant_script_module(mod):
    """Is it a script of FakeQuantize?"""
    if not isinstance(mod, cresset.jit.RecursiveScriptModule):
        return False
    name = re.sub(r"\.___torch_mangle_\d+", "", mod._c._type().qualified_name()).rpartition("fake_quantize.")[2]
    return name in ("FakeQuantize", "FusedMovingAvgObsFakeQuantize")


def _switch(name):
    def change(mod):
        if isinstance(mod, FakeQuantizeBase) or _is_fake_quant_script_module(mod):
            getattr(mod, name)()

    change.__name__ = name
    change.__doc__ = f"{name}() of a fake quantizer; nothing for other modules. For `Module.apply`."
    return change


disable_fake_quant, enable_fake_quant, disable_observer, enable_observer = map(
    _switch, ("disable_fake_quant", "enable_fake_quant", "disable_observer", "enable_observer")
)

_ROWS = dict(observer=MovingAveragePerChannelMinMaxObserver, dtype=cresset.qint8, qscheme=cresset.per_channel_symmetric)
default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True, dtype=cresset.quint8, averaging_constant=1
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(**_ROWS, quant_min=-128, quant_max=127, reduce_range=False, ch_axis=0)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=cresset.per_channel_affine_float_qparams, dtype=cresset.quint8, quant_min=0, quant_max=255,
    ch_axis=0, averaging_constant=1,
)  # fmt: skip
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=cresset.per_channel_affine_float_qparams, ch_axis=0, dtype=cresset.quint4x2, averaging_constant=1
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, quant_min=0, quant_max=255, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=cresset.quint8)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_ROWS, quant_min=-128, quant_max=127)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-127, quant_max=127, dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric, eps=2**-12
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**_ROWS, quant_min=-127, quant_max=127, eps=2**-12)
