"""Which QConfig belongs to what, by global default, class, regular expression or name."""

from collections import OrderedDict

import cresset
from cresset import nn
from cresset.nn import functional as F

from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import default_fixed_qparams_range_0to1_observer, default_fixed_qparams_range_neg1to1_observer, default_placeholder_observer, default_weight_observer
from .qconfig import (
    QConfig, default_quint8_weight_qconfig, default_reuse_input_qconfig, default_symmetric_qnnpack_qat_qconfig, default_symmetric_qnnpack_qconfig,
    get_default_qat_qconfig, get_default_qconfig,
)  # fmt: skip

__all__ = ["get_default_qconfig_mapping", "get_default_qat_qconfig_mapping", "QConfigMapping"]

_GLOBAL_DICT_KEY, _OBJECT_TYPE_DICT_KEY, _MODULE_NAME_REGEX_DICT_KEY = "", "object_type", "module_name_regex"
_MODULE_NAME_DICT_KEY, _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY = "module_name", "module_name_object_type_order"
_FIXED_QPARAMS_OP_TO_OBSERVER = {
    **dict.fromkeys(
        (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, cresset.sigmoid, "sigmoid", "sigmoid_", nn.Softmax),
        default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys((nn.Tanh, cresset.tanh, "tanh", "tanh_"), default_fixed_qparams_range_neg1to1_observer),
}  # fmt: skip
_QCONFIG_STYLE_ORDER = ["global_qconfig", "object_type_qconfigs", "module_name_regex_qconfigs", "module_name_qconfigs", "module_name_object_type_order_qconfigs"]


class QConfigMapping:
    """QConfigs by what they are for; the narrower wins: name, regular expression, class, default."""

    def __init__(self):
        self.global_qconfig = None
        self.object_type_qconfigs = OrderedDict()
        self.module_name_regex_qconfigs = OrderedDict()
        self.module_name_qconfigs = OrderedDict()
        self.module_name_object_type_order_qconfigs = OrderedDict()

    def set_global(self, global_qconfig):
        """The default."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig):
        """For a class, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig):
        """For modules whose name matches; the first expression that matches counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig):
        """For the module of that name and those below it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig):
        """For the nth function of that kind within the module of that name."""
        self.module_name_object_type_order_qconfigs[(module_name, object_type, index)] = qconfig
        return self

    def __repr__(self):
        lines = [f"{self.__class__.__name__} ("]
        for name in _QCONFIG_STYLE_ORDER:
            value = getattr(self, name)
            lines.append(f"\n {name}")
            if isinstance(value, OrderedDict) and value:
                lines += [f"\n  {key}: {qconfig}" for key, qconfig in value.items()]
            else:
                lines.append(f"\n  {value}")
        return "".join(lines) + "\n)"

    def to_dict(self):
        """{"": default, "object_type": [(type, qconfig), …], …}"""
        return {
            _GLOBAL_DICT_KEY: self.global_qconfig, _OBJECT_TYPE_DICT_KEY: list(self.object_type_qconfigs.items()),
            _MODULE_NAME_REGEX_DICT_KEY: list(self.module_name_regex_qconfigs.items()), _MODULE_NAME_DICT_KEY: list(self.module_name_qconfigs.items()),
            _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY: [(*key, qconfig) for key, qconfig in self.module_name_object_type_order_qconfigs.items()],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, qconfig_dict):
        """Of what to_dict gives."""
        made = cls()
        if _GLOBAL_DICT_KEY in qconfig_dict:
            made.set_global(qconfig_dict[_GLOBAL_DICT_KEY])
        setters = (
            (_OBJECT_TYPE_DICT_KEY, made.set_object_type), (_MODULE_NAME_REGEX_DICT_KEY, made.set_module_name_regex), (_MODULE_NAME_DICT_KEY, made.set_module_name),
            (_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY, made.set_module_name_object_type_order),
        )  # fmt: skip
        for key, setter in setters:
            for entry in qconfig_dict.get(key, []):
                setter(*entry)
        return made


def _with_default(is_qat, backend, default):
    """The default, and what differs from it: fixed ranges, shapes, transposed convolutions, weights of norms."""
    placeholder = default_placeholder_observer
    mapping = QConfigMapping().set_global(default).set_object_type("reshape", default_reuse_input_qconfig)
    if backend in ("fbgemm", "x86"):
        transposed = QConfig(activation=default.activation, weight=default_weight_fake_quant if is_qat else default_weight_observer)
        for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d):
            mapping.set_object_type(kind, transposed)
    made_of = {}
    for kind, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        if observer not in made_of:
            activation = FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer
            made_of[observer] = QConfig(activation=activation, weight=default.weight)
        mapping.set_object_type(kind, made_of[observer])
    norms = QConfig(activation=default.activation, weight=placeholder)
    for kind in (F.layer_norm, nn.LayerNorm):
        mapping.set_object_type(kind, norms)
    return mapping.set_object_type(nn.PReLU, default_quint8_weight_qconfig)


def get_default_qconfig_mapping(backend="x86", version=0):
    """The usual QConfigs of an engine, for quantization after training."""
    return _with_default(False, backend, get_default_qconfig(backend, version))


def get_default_qat_qconfig_mapping(backend="x86", version=1):
    """The usual QConfigs of an engine, for quantization in training."""
    return _with_default(True, backend, get_default_qat_qconfig(backend, version))


def _get_symmetric_qnnpack_qconfig_mapping():
    return _with_default(False, "qnnpack", default_symmetric_qnnpack_qconfig)


def _get_symmetric_qnnpack_qat_qconfig_mapping():
    return _with_default(True, "qnnpack", default_symmetric_qnnpack_qat_qconfig)
