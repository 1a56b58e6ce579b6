"""How a layer is quantized: what watches its activations, and what its weights."""

import copy
from collections import namedtuple

import cresset
from cresset import nn

from ._partial import PartialWrapper as _PartialWrapper
from .fake_quantize import (
    FakeQuantize, FakeQuantizeBase, FusedMovingAvgObsFakeQuantize, default_dynamic_fake_quant, default_embedding_fake_quant, default_embedding_fake_quant_4bit,
    default_fake_quant, default_fused_act_fake_quant, default_fused_per_channel_wt_fake_quant, default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant, default_weight_fake_quant, fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)  # fmt: skip
from .observer import (
    HistogramObserver, MinMaxObserver, MovingAverageMinMaxObserver, NoopObserver, ObserverBase, PlaceholderObserver, ReuseInputObserver, default_debug_observer,
    default_dynamic_quant_observer, default_float_qparams_observer, default_float_qparams_observer_4bit, default_observer,
    default_per_channel_weight_observer, default_placeholder_observer, default_reuse_input_observer, default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127, weight_observer_range_neg_127_to_127,
)  # fmt: skip

__all__ = [
    "QConfig", "QConfigDynamic", "default_qconfig", "default_debug_qconfig", "default_per_channel_qconfig", "default_dynamic_qconfig", "float16_dynamic_qconfig",
    "float16_static_qconfig", "per_channel_dynamic_qconfig", "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit",
    "default_quint8_weight_qconfig", "default_qat_qconfig", "default_dynamic_qat_qconfig", "default_weight_only_qconfig", "default_activation_only_qconfig",
    "default_qat_qconfig_v2", "default_reuse_input_qconfig", "default_symmetric_qnnpack_qconfig", "default_per_channel_symmetric_qnnpack_qconfig",
    "default_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "get_default_qconfig", "get_default_qat_qconfig", "get_default_qconfig_dict", "get_default_qat_qconfig_dict",
    "QConfigAny", "qconfig_equals",
]  # fmt: skip


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Two constructors: what watches the activations of a layer, and what its weights."""

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments to constructor if needed")
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older form of QConfig for dynamic quantization."""

    __slots__ = ()

    def __new__(cls, activation=nn.Identity, weight=nn.Identity):
        if isinstance(weight, nn.Module):
            raise ValueError("QConfigDynamic received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments to constructor if needed")
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None
_ObserverOrFakeQuantizeConstructor = _PartialWrapper | type[ObserverBase] | type[FakeQuantizeBase]

default_qconfig = QConfig(activation=default_observer, weight=default_weight_observer)
default_debug_qconfig = QConfig(weight=default_weight_observer, activation=default_debug_observer)
default_per_channel_qconfig = QConfig(activation=default_observer, weight=default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(activation=default_dynamic_quant_observer, weight=default_weight_observer)
float16_dynamic_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=cresset.float16, is_dynamic=True), weight=PlaceholderObserver.with_args(dtype=cresset.float16)
)
float16_static_qconfig = QConfig(activation=PlaceholderObserver.with_args(dtype=cresset.float16), weight=PlaceholderObserver.with_args(dtype=cresset.float16))
per_channel_dynamic_qconfig = QConfig(activation=default_dynamic_quant_observer, weight=default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(activation=default_placeholder_observer, weight=default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(activation=default_placeholder_observer, weight=default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(activation=default_fake_quant, weight=default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(activation=default_dynamic_fake_quant, weight=default_weight_fake_quant)
default_weight_only_qconfig = QConfig(activation=nn.Identity, weight=default_weight_fake_quant)
default_activation_only_qconfig = QConfig(activation=default_fake_quant, weight=nn.Identity)
default_qat_qconfig_v2 = QConfig(activation=default_fused_act_fake_quant, weight=default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(activation=default_reuse_input_observer, weight=NoopObserver)
default_quint8_weight_qconfig = QConfig(activation=HistogramObserver, weight=MinMaxObserver)
default_embedding_qat_qconfig = QConfig(activation=NoopObserver.with_args(dtype=cresset.float32), weight=default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(activation=NoopObserver.with_args(dtype=cresset.float32), weight=default_embedding_fake_quant_4bit)

_SYMMETRIC_ACTIVATION = HistogramObserver.with_args(dtype=cresset.qint8, reduce_range=False, eps=2**-12)
_SYMMETRIC_TRAINED = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=cresset.qint8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qconfig = QConfig(activation=_SYMMETRIC_ACTIVATION, weight=weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(activation=_SYMMETRIC_ACTIVATION, weight=per_channel_weight_observer_range_neg_127_to_127)
default_symmetric_qnnpack_qat_qconfig = QConfig(activation=_SYMMETRIC_TRAINED, weight=fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(activation=_SYMMETRIC_TRAINED, weight=fused_per_channel_wt_fake_quant_range_neg_127_to_127)
_default_fp32_placeholder_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=cresset.float32), weight=PlaceholderObserver.with_args(dtype=cresset.float32)
)
_default_quint8_placeholder_qconfig = QConfig(activation=PlaceholderObserver.with_args(dtype=cresset.quint8), weight=None)

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _check(backend, version, versions, function):
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}")
    if version not in versions:
        raise AssertionError(f"Version number: {version} in {function} is not supported. Version number must be one of {', '.join(map(str, versions))}")


def get_default_qconfig(backend="x86", version=0):
    """The usual QConfig of an engine, for quantization after training. AssertionError for other engines or versions."""
    _check(backend, version, (0,), "get_default_qconfig")
    reduced = {"fbgemm": True, "x86": True, "qnnpack": False, "onednn": False}[backend]
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(activation=HistogramObserver.with_args(reduce_range=reduced), weight=weight)


def get_default_qat_qconfig(backend="x86", version=1):
    """The usual QConfig of an engine, for quantization in training. AssertionError for other engines or versions."""
    _check(backend, version, (0, 1), "get_default_qat_qconfig")
    reduced = backend in ("fbgemm", "x86")
    make = FakeQuantize if version == 0 else FusedMovingAvgObsFakeQuantize
    activation = make.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **({"reduce_range": reduced} if backend != "onednn" else {}))
    rows = default_per_channel_weight_fake_quant if version == 0 else default_fused_per_channel_wt_fake_quant
    one = default_weight_fake_quant if version == 0 else default_fused_wt_fake_quant
    return QConfig(activation=activation, weight=one if backend == "qnnpack" else rows)


def get_default_qconfig_dict(backend="x86", version=0):
    """get_default_qconfig_mapping as a dictionary."""
    return cresset.ao.quantization.get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend="x86", version=1):
    """get_default_qat_qconfig_mapping as a dictionary."""
    return cresset.ao.quantization.get_default_qat_qconfig_mapping(backend, version).to_dict()


def _assert_valid_qconfig(qconfig, mod):
    """AssertionError for weights by channels where the layer cannot have them: transposed convolutions with the axis 0."""
    if qconfig is None:
        return
    if isinstance(mod, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        if qconfig.weight is None:
            return
        from .observer import MovingAveragePerChannelMinMaxObserver, PerChannelMinMaxObserver

        if isinstance(qconfig.weight(), (PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _add_module_to_qconfig_obs_ctr(qconfig, module):
    """The QConfig whose constructors put buffers on the device of the module."""
    if module is None or qconfig is None or qconfig._fields != ("activation", "weight"):
        return qconfig

    def factory_kwargs():
        devices = {p.device for p in module.parameters()} | {b.device for b in module.buffers()}
        if len(devices) > 1:
            raise AssertionError(f"a module on one device was required; got {devices}")
        return None if not devices else {"device": next(iter(devices))}

    def on_device(constructor):
        base = constructor.p.func if isinstance(constructor, _PartialWrapper) else constructor
        takes = hasattr(constructor, "with_callable_args") and isinstance(base, type) and issubclass(base, ObserverBase)
        if not takes or "factory_kwargs" not in base.__init__.__code__.co_varnames:
            return constructor
        return constructor.with_callable_args(factory_kwargs=factory_kwargs)

    return QConfig(on_device(qconfig.activation), on_device(qconfig.weight))


def _obs_or_fq_ctr_equals(obs_or_fq1, obs_or_fq2):
    if isinstance(obs_or_fq1, _PartialWrapper) and isinstance(obs_or_fq2, _PartialWrapper):
        return _partial_wrapper_equals(obs_or_fq1, obs_or_fq2)
    return obs_or_fq1 == obs_or_fq2


def _partial_wrapper_equals(obs_or_fq1, obs_or_fq2):
    one, two = copy.copy(obs_or_fq1.p.keywords), copy.copy(obs_or_fq2.p.keywords)
    same = True
    if "observer" in one and "observer" in two:
        same = _obs_or_fq_ctr_equals(one.pop("observer"), two.pop("observer"))
    return same and one == two and obs_or_fq1.p.func == obs_or_fq2.p.func and obs_or_fq1.p.args == obs_or_fq2.p.args


def qconfig_equals(q1, q2):
    """Do two QConfigs, or None, make the same?"""
    if q1 is None or q2 is None:
        return q1 == q2
    try:
        return _obs_or_fq_ctr_equals(q1.activation, q2.activation) and _obs_or_fq_ctr_equals(q1.weight, q2.weight)
    except AttributeError:
        return q1 == q2


def _activation_is_memoryless(qconfig):
    """Does what watches activations only know the latest?"""

    def memoryless(observer):
        return getattr(observer, "averaging_constant", None) == 1

    made = qconfig.activation()
    return memoryless(made.activation_post_process if isinstance(made, FakeQuantizeBase) and hasattr(made, "activation_post_process") else made)


def _is_reuse_input_qconfig(qconfig):
    return qconfig is not None and isinstance(qconfig.activation(), ReuseInputObserver) and isinstance(qconfig.weight(), NoopObserver)
