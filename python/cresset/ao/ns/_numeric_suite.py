"""Weights, outputs of layers and outputs of float shadows, of a float model beside its quantized form."""

import cresset
from cresset import nn
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.quantized import dynamic as nnqd
from cresset.ao.quantization import get_default_compare_output_module_list, prepare

__all__ = [
    "compare_weights", "get_logger_dict", "Logger", "ShadowLogger", "OutputLogger", "Shadow", "prepare_model_with_stubs", "compare_model_stub",
    "get_matching_activations", "prepare_model_outputs", "compare_model_outputs", "NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST",
]  # fmt: skip

NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST = {nnqd.Linear, nnq.Linear, nnqd.LSTM, nn.LSTM}


def _find_match(str_list, key_str, postfix):
    """The float name of a quantized one that ends with `postfix`: parts that only fused or packed layers have are left out."""
    parts = key_str.split(".")
    if parts[-1] != postfix:
        return None
    stem = "".join(parts[:-1])
    shorter = "".join(parts[:-2])
    return next((name for name in str_list if "".join(name.split(".")[:-1]) in (stem, shorter) and name.split(".")[-1] == postfix), None) or _fused_match(str_list, parts, postfix)


def _fused_match(str_list, parts, postfix):
    """conv.weight of the quantized layer is conv.0.weight of the float sequence."""
    lead = ".".join(parts[:-1])
    return next((name for name in str_list if name == f"{lead}.0.{postfix}" or (postfix == "stats" and name.rpartition(".")[0] in (lead, f"{lead}.0"))), None)


def _packed_weight(param):
    """The weights of packed parameters: one, or all of a recurrent layer."""
    tensors = param.tensors()
    return tensors[0] if len(tensors) == 2 else tuple(tensors[i] for i in (0, 2))


def compare_weights(float_dict, quantized_dict):
    """{name of a weight: {"float": …, "quantized": …}} of two state dicts."""
    found = {}
    for key, value in quantized_dict.items():
        match = _find_match(float_dict, key, "weight")
        if match is not None:
            found[key] = {"float": float_dict[match], "quantized": value}
            continue
        stem, _, last = key.rpartition(".")
        if last == "_packed_params":  # of a linear layer, whose float name lacks a part
            name = stem.rpartition(".")[0] if stem.endswith("_packed_params") else stem
            names = [f"{name}.weight" if name else "weight", f"{name}.0.weight"]
            match = next((n for n in names if n in float_dict), None)
            if match is not None:
                found[key] = {"float": float_dict[match], "quantized": value[0] if isinstance(value, tuple) else _packed_weight(value)}
        elif last == "param":  # of a recurrent layer
            name, _, index = stem.rpartition("._all_weight_values.")
            lead = f"{name}." if name else ""
            suffixes = [k.removeprefix(lead + "weight_ih_") for k in float_dict if k.startswith(lead + "weight_ih_")]
            if suffixes:
                suffix = suffixes[int(index)]
                found[key] = {"float": tuple(float_dict[f"{lead}weight_{part}_{suffix}"] for part in ("ih", "hh")), "quantized": _packed_weight(value)}
    return found


def _get_logger_dict_helper(mod, target_dict, prefix=""):
    lead = prefix + "." if prefix else ""
    for name, child in mod.named_children():
        if isinstance(child, Logger):
            target_dict[lead + "stats"] = child.stats
            break
    for name, child in mod.named_children():
        _get_logger_dict_helper(child, target_dict, lead + name)


def get_logger_dict(mod, prefix=""):
    """{name: what a logger has kept} of all loggers in a model."""
    found = {}
    _get_logger_dict_helper(mod, found, prefix)
    return found


class Logger(nn.Module):
    """Keeps what passes through it in `stats`."""

    def __init__(self):
        super().__init__()
        self.stats = {}
        self.dtype, self.is_dynamic = cresset.quint8, False

    def forward(self, x):
        raise NotImplementedError("Logger.forward: a subclass says what is kept")


class ShadowLogger(Logger):
    """Keeps the quantized and the float outputs of a layer."""

    def __init__(self):
        super().__init__()
        self.stats["float"], self.stats["quantized"] = [], []

    def forward(self, x, y):
        """x of the quantized layer, y of the float one."""
        if len(x) > 1 and isinstance(x, (tuple, list)):
            x = x[0]
        if len(y) > 1 and isinstance(y, (tuple, list)):
            y = y[0]
        self.stats["quantized"].append(x.detach())
        self.stats["float"].append(y.detach())


class OutputLogger(Logger):
    """Keeps the outputs of a layer."""

    def __init__(self):
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x):
        self.stats["tensor_val"].append(x)
        return x


def _convert_tuple_to_list(t):
    return [_convert_tuple_to_list(x) for x in t] if type(t) is tuple else t


def _dequantize_tensor_list(t):
    if type(t) is list:
        return [_dequantize_tensor_list(x) for x in t]
    return t.dequantize() if t.is_quantized else t


class Shadow(nn.Module):
    """A quantized layer that gives its output, and runs its float form on the same inputs for a logger."""

    def __init__(self, q_module, float_module, logger_cls):
        super().__init__()
        self.orig_module, self.shadow_module = q_module, float_module
        self.dequant = nnq.DeQuantize()
        self.logger = logger_cls()

    def forward(self, *x):
        output = self.orig_module(*_convert_tuple_to_list(x))
        self.logger(output, self.shadow_module(*_dequantize_tensor_list(_convert_tuple_to_list(x))))
        return output


def _shadowed(name):
    def method(self, x, y=None, *rest, **named):
        real = [v.dequantize() if isinstance(v, cresset.Tensor) else v for v in x] if isinstance(x, (list, tuple)) else x.dequantize()
        others = [] if y is None else [y]
        output = getattr(self.orig_module, name)(x, *others, *rest, **named)
        real_others = [v.dequantize() if isinstance(v, cresset.Tensor) else v for v in others]
        self.logger(output, getattr(self.shadow_module, name)(real, *real_others, *rest, **named))
        return output

    method.__name__ = name
    method.__doc__ = f"{name} of both forms."
    return method


for _name in ("add", "add_scalar", "mul", "mul_scalar", "cat", "add_relu"):
    setattr(Shadow, _name, _shadowed(_name))


def _is_identical_module_type(mod1, mod2):
    """Have both models the same classes in the same places?"""
    return [type(m) for m in mod1.modules()] == [type(m) for m in mod2.modules()]


def prepare_model_with_stubs(float_module, q_module, module_swap_list, logger_cls):
    """Put a Shadow in the place of each quantized layer whose float form is of one of the classes."""
    float_children = dict(float_module.named_children())
    swapped = {}
    for name, child in q_module.named_children():
        float_child = float_children.get(name)
        if float_child is None:
            continue
        if type(float_child) not in module_swap_list:
            prepare_model_with_stubs(float_child, child, module_swap_list, logger_cls)
        if type(float_child) in module_swap_list and not _is_identical_module_type(child, float_child):
            swapped[name] = Shadow(child, float_child, logger_cls)
    q_module._modules.update(swapped)


def compare_model_stub(float_model, q_model, module_swap_list, *data, logger_cls=ShadowLogger):
    """{name of a layer: {"float": …, "quantized": …}}, outputs of layers and their float shadows on the same data."""
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


def get_matching_activations(float_module, q_module):
    """{name of a layer: {"float": …, "quantized": …}} of two models whose layers have loggers."""
    of_float, found = get_logger_dict(float_module), {}
    for key, stats in get_logger_dict(q_module).items():
        if not stats["tensor_val"]:
            continue
        match = key if key in of_float else _find_match(sorted(of_float, reverse=True), key, "stats")
        if match is not None:
            found[key] = {"float": of_float[match]["tensor_val"], "quantized": stats["tensor_val"]}
    return found


def prepare_model_outputs(float_module, q_module, logger_cls=OutputLogger, allow_list=None):
    """Give loggers to the layers of both models."""
    allow_list = get_default_compare_output_module_list() if allow_list is None else allow_list
    qconfig = cresset.ao.quantization.QConfig(activation=logger_cls, weight=None)
    for module, non_leaf in ((float_module, None), (q_module, NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST)):
        module.qconfig = qconfig
        prepare(module, inplace=True, allow_list=allow_list, observer_non_leaf_module_list=non_leaf, prepare_custom_config_dict={})


def compare_model_outputs(float_model, q_model, *data, logger_cls=OutputLogger, allow_list=None):
    """{name of a layer: {"float": …, "quantized": …}}, outputs of layers of both models on the same data."""
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
