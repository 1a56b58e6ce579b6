"""Questions about quantization schemes, ranges and configurations."""

import warnings
from typing import Any, Tuple

import cresset
from cresset import Tensor, nn

from .quant_type import QuantType

NodePattern = Pattern = Any


class MatchAllNode:
    """In a pattern of a graph: any node."""


_DTYPES = {  # dtype: (smallest, largest, those of the reduced range)
    cresset.qint8: (-128, 127, -64, 63), cresset.int8: (-128, 127, -64, 63), cresset.quint8: (0, 255, 0, 127), cresset.uint8: (0, 255, 0, 127),
    cresset.qint32: (-(2**31), 2**31 - 1, -(2**31), 2**31 - 1), cresset.int32: (-(2**31), 2**31 - 1, -(2**31), 2**31 - 1),
    cresset.uint16: (0, 2**16 - 1, 0, 2**16 - 1), cresset.int16: (-(2**15), 2**15 - 1, -(2**15), 2**15 - 1),
}  # fmt: skip


def is_per_tensor(qscheme):
    """Is there one scale?"""
    return qscheme in (cresset.per_tensor_affine, cresset.per_tensor_symmetric)


def is_per_channel(qscheme):
    """Is there a scale for each index of a dimension?"""
    return qscheme in (cresset.per_channel_affine, cresset.per_channel_affine_float_qparams, cresset.per_channel_symmetric)


def is_symmetric(qscheme: cresset.qscheme) -> bool:
    """Is the zero point fixed in the middle?"""
    return qscheme == cresset.per_tensor_symmetric or qscheme == cresset.per_channel_symmetric


def to_underlying_dtype(qdtype):
    """The dtype of the whole numbers."""
    known = {cresset.quint8: cresset.uint8, cresset.qint8: cresset.int8, cresset.qint32: cresset.int32, cresset.quint4x2: cresset.uint8, cresset.quint2x4: cresset.uint8}
    known |= {t: t for t in (cresset.uint8, cresset.int8, cresset.uint16, cresset.int16, cresset.int32, cresset.float8_e5m2, cresset.float8_e4m3fn)}
    if qdtype not in known:
        raise AssertionError("Unsupported dtype: " + str(qdtype))
    return known[qdtype]




def get_combined_dict(default_dict, additional_dict):
    """A copy of the first dictionary, updated by the second."""
    return {**default_dict, **(additional_dict or {})}


def getattr_from_fqn(obj, fqn):
    """obj.a.b.c by its dotted name."""
    for name in fqn.split("."):
        obj = getattr(obj, name)
    return obj


def get_qparam_dict(observer_or_fake_quant):
    """{"qscheme", "dtype", "scale", "zero_point", and where it has them "axis", "quant_min", "quant_max"} of an observer."""
    qscheme = getattr(observer_or_fake_quant, "qscheme", None)
    found = {"qscheme": qscheme, "dtype": observer_or_fake_quant.dtype}
    if not qscheme or not getattr(observer_or_fake_quant, "_watches", True):
        return {"qscheme": None, "dtype": observer_or_fake_quant.dtype}
    if is_per_tensor(qscheme):
        qscheme = cresset.per_tensor_affine
    elif is_per_channel(qscheme):
        qscheme = cresset.per_channel_affine if qscheme is cresset.per_channel_symmetric else qscheme
        found["axis"] = observer_or_fake_quant.ch_axis
    else:
        raise RuntimeError(f"Unrecognized qscheme: {qscheme}")
    found["qscheme"] = qscheme
    found["scale"], found["zero_point"] = observer_or_fake_quant.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(observer_or_fake_quant, name):
            found[name] = getattr(observer_or_fake_quant, name)
    return found


def get_swapped_custom_module_class(custom_module, custom_module_class_mapping, qconfig):
    """The class that takes the custom module's place, by the kind of quantization that its qconfig asks for."""
    mapping = custom_module_class_mapping
    if any(isinstance(kind, QuantType) for kind in mapping):
        mapping = mapping.get(get_quant_type(qconfig), {})
    found = mapping.get(type(custom_module))
    if found is None:
        raise AssertionError(f"did not find corresponding observed module class for {type(custom_module)} in mapping: {custom_module_class_mapping}")
    return found


def activation_dtype(qconfig):
    """The dtype that activations get."""
    return _made(qconfig.activation).dtype


def weight_dtype(qconfig):
    """The dtype that weights get."""
    return _made(qconfig.weight).dtype


def _made(constructor):
    if constructor is None:
        raise AssertionError("qconfig must be provided, and what watches activations or weights with it")
    return constructor()


_WHOLE = (cresset.quint8, cresset.qint8, cresset.qint32, cresset.float16, cresset.uint8, cresset.int8, cresset.int16, cresset.int32)


def activation_is_dynamically_quantized(qconfig):
    """Are activations quantized as they come?"""
    return getattr(_made(qconfig.activation), "is_dynamic", False)


def activation_is_statically_quantized(qconfig):
    """Do activations get a scale beforehand?"""
    return activation_dtype(qconfig) in _WHOLE and not activation_is_dynamically_quantized(qconfig)


def activation_is_int8_quantized(qconfig):
    """Do activations get eight bits?"""
    return activation_dtype(qconfig) in (cresset.quint8, cresset.qint8, cresset.uint8, cresset.int8)


def activation_is_int32_quantized(qconfig):
    """Do activations get 32 bits?"""
    return activation_dtype(qconfig) in (cresset.qint32, cresset.int32)


def weight_is_quantized(qconfig):
    """Are weights quantized, to float16 at least?"""
    return weight_dtype(qconfig) in (*_WHOLE, cresset.quint4x2)


def weight_is_statically_quantized(qconfig):
    """Do weights get eight bits?"""
    return weight_dtype(qconfig) in (cresset.quint8, cresset.qint8, cresset.uint8, cresset.int8)


def op_is_int8_dynamically_quantized(qconfig):
    """Do weights get eight bits, and activations as they come?"""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    return activation in (cresset.quint8, cresset.uint8) and weight in (cresset.qint8, cresset.int8) and dynamic


def get_qconfig_dtypes(qconfig):
    """(dtype of activations, dtype of weights, are activations quantized as they come?)"""
    return activation_dtype(qconfig), weight_dtype(qconfig), activation_is_dynamically_quantized(qconfig)


def get_quant_type(qconfig):
    """What kind of quantization a qconfig asks for."""
    activation = _made(qconfig.activation)
    weight, static = weight_dtype(qconfig), (cresset.quint8, cresset.qint8, cresset.quint4x2, cresset.qint32, cresset.uint8, cresset.int8, cresset.int16, cresset.int32)
    if weight in static:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        return QuantType.STATIC if activation.dtype in static else QuantType.WEIGHT_ONLY
    if weight == cresset.float16:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype == cresset.float16:
            return QuantType.STATIC
    raise Exception(f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}),weight({weight})")


# What scripts of observers compile has types.


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Has a range been seen? With a warning where not; AssertionError for one whose start is above its end."""
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
        return False
    if min_val.dim() == 0 or max_val.dim() == 0:
        if bool(min_val == float("inf")) and bool(max_val == float("-inf")):
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
            return False
    if not bool((min_val <= max_val).all()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def calculate_qmin_qmax(quant_min, quant_max, has_customized_qrange, dtype, reduce_range):
    """(smallest, largest) whole number: those given, or those of the dtype; half as many with reduce_range."""
    if not has_customized_qrange:
        low, high, reduced_low, reduced_high = _DTYPES.get(dtype, (0, 15, 0, 15))
        return (reduced_low, reduced_high) if reduce_range else (low, high)
    if quant_min is None or quant_max is None:
        low, high = _DTYPES.get(dtype, (0, 15, 0, 15))[:2]
    else:
        low, high = quant_min, quant_max
    numbers = high - low + 1
    if dtype in (cresset.qint8, cresset.int8) and not 0 < numbers <= 256:
        raise AssertionError("quantization range should be positive and not exceed the maximum bit range (=256).")
    if dtype in (cresset.qint32, cresset.int32) and not 0 < numbers <= 2**32:
        raise AssertionError("quantization range should be positive and not exceed the maximum bit range (=4294967296).")
    return (low // 2, high // 2) if reduce_range else (low, high)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """AssertionError unless the range given includes 0 and is not empty."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if not quant_min < quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def determine_qparams(
    min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: cresset.dtype, eps: Tensor, has_customized_qrange: bool,
    qscheme: cresset.qscheme = cresset.per_tensor_affine,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(scales, zero points) by which the ranges from min_val to max_val, made to hold 0, cover the whole numbers from quant_min to quant_max."""
    if not check_min_max_valid(min_val, max_val):
        return cresset.tensor([1.0], device=min_val.device), cresset.tensor([0], device=min_val.device)
    low, high = min_val.clamp_max(0), max_val.clamp_min(0)
    steps = float(quant_max - quant_min)
    eps = eps.to(low.device)
    least = eps.view([]) if eps.numel() == 1 else eps
    if is_symmetric(qscheme):
        high = cresset.maximum(-low, high)
        scale = cresset.maximum(high / (steps / 2), least)
        middle = 0
        if dtype == cresset.quint8 or dtype == cresset.uint8:
            middle = (quant_min + quant_max) // 2 if has_customized_qrange else 128
        elif dtype == cresset.uint16:
            middle = (quant_min + quant_max) // 2 if has_customized_qrange else 32768
        zero = cresset.full(low.shape, middle, dtype=cresset.int64, device=low.device)
    elif qscheme == cresset.per_channel_affine_float_qparams:
        scale = (max_val - min_val) / steps
        scale = cresset.where(scale > eps, scale, cresset.ones_like(scale))
        zero = -1 * min_val / scale
    else:
        scale = cresset.maximum((high - low) / steps, least)
        zero = (quant_min - (low / scale).round().to(cresset.int32)).clamp(quant_min, quant_max)
    # Of one range: tensors of one element, as modules keep them.
    if scale.dim() == 0:
        scale = scale.reshape(1)
    if zero.dim() == 0:
        zero = zero.reshape(1)
    return (scale.to(cresset.float32) if scale.dtype != cresset.float32 and scale.dtype != cresset.float64 else scale), zero


def has_no_children_ignoring_parametrizations(module):
    """Has the module no parts, but for those of parametrizations?"""
    return len(module._modules) == 0 or (nn.utils.parametrize.is_parametrized(module) and set(module._modules) == {"parametrizations"})


def get_fqn_to_example_inputs(model, example_inputs):
    """{name of a module: the positional arguments of its first call} while the model runs once on the example inputs."""
    found, handles = {}, []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda m, args, name=name: found.setdefault(name, args) and None))
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _assert_and_get_unique_device(module):
    """The device of the module's parameters and buffers, None where there are none; AssertionError for several."""
    devices = {t.device for t in (*module.parameters(), *module.buffers())}
    if devices == {cresset.device("cpu"), cresset.device("meta")}:
        return cresset.device("cpu")
    if len(devices) > 1:
        raise AssertionError(f"prepare only works with cpu or single-device CUDA modules, but got devices {devices}")
    return next(iter(devices), None)


DEPRECATION_WARNING = (
    "torch.ao.quantization is deprecated and will be removed in 2.10. \n"
    "For migrations of users: \n"
    "1. Eager mode quantization (torch.ao.quantization.quantize, torch.ao.quantization.quantize_dynamic), please migrate to use torchao eager mode quantize_ API instead \n"
    "2. FX graph mode quantization (torch.ao.quantization.quantize_fx.prepare_fx,torch.ao.quantization.quantize_fx.convert_fx, please migrate to use torchao pt2e "
    "quantization API instead (prepare_pt2e, convert_pt2e) \n"
    "3. pt2e quantization has been migrated to torchao (https://github.com/pytorch/ao/tree/main/torchao/quantization/pt2e) \n"
    "see https://github.com/pytorch/ao/issues/2259 for more details"
)

__all__ = [
    "NodePattern", "Pattern", "MatchAllNode", "get_combined_dict", "is_per_tensor", "is_per_channel", "getattr_from_fqn", "get_qparam_dict",
    "get_swapped_custom_module_class", "activation_dtype", "weight_dtype", "activation_is_statically_quantized", "activation_is_dynamically_quantized",
    "activation_is_int8_quantized", "activation_is_int32_quantized", "weight_is_quantized", "weight_is_statically_quantized",
    "op_is_int8_dynamically_quantized", "get_qconfig_dtypes", "get_quant_type", "check_min_max_valid", "calculate_qmin_qmax",
    "has_no_children_ignoring_parametrizations", "get_fqn_to_example_inputs", "to_underlying_dtype", "determine_qparams", "validate_qmin_qmax",
    "DEPRECATION_WARNING",
]  # fmt: skip
