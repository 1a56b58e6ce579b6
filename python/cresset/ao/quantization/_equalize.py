"""Cross-layer equalization: the ranges of the channels between two layers are made alike, without a change of what both compute."""

import copy

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni

__all__ = [
    "set_module_weight", "set_module_bias", "has_bias", "get_module_weight", "get_module_bias", "max_over_ndim", "min_over_ndim", "channel_range",
    "get_name_by_module", "cross_layer_equalization", "process_paired_modules_list_to_name", "expand_groups_in_paired_modules_list", "equalize", "converged",
]  # fmt: skip

_supported_types = {nn.Conv2d, nn.Linear, nn.Conv1d}
_supported_intrinsic_types = {nni.ConvReLU2d, nni.LinearReLU, nni.ConvReLU1d}
_all_supported_types = _supported_types | _supported_intrinsic_types


def _layer(module):
    """The layer that has the weight: the first of a fused sequence."""
    return module if type(module) in _supported_types else module[0]


def set_module_weight(module, weight):
    """Another weight."""
    _layer(module).weight = nn.Parameter(weight)


def set_module_bias(module, bias):
    """Another bias."""
    _layer(module).bias = nn.Parameter(bias)


def has_bias(module):
    """Is there a bias?"""
    return _layer(module).bias is not None


def get_module_weight(module):
    """The weight."""
    return _layer(module).weight


def get_module_bias(module):
    """The bias, or None."""
    return _layer(module).bias


def max_over_ndim(input, axis_list, keepdim=False):
    """The greatest over several dimensions."""
    return input.amax(axis_list, keepdim=keepdim) if axis_list else input


def min_over_ndim(input, axis_list, keepdim=False):
    """The least over several dimensions."""
    return input.amin(axis_list, keepdim=keepdim) if axis_list else input


def channel_range(input, axis=0):
    """Greatest minus least, for each index of a dimension."""
    others = [d for d in range(input.dim()) if d != axis]
    spread = max_over_ndim(input, others) - min_over_ndim(input, others)
    if spread.shape[0] != input.shape[axis]:
        raise AssertionError("Dimensions of resultant channel range does not match size of requested axis")
    return spread


def get_name_by_module(model, module):
    """The name of a module in the model. ValueError where it is not there."""
    for name, other in model.named_modules():
        if other is module:
            return name
    raise ValueError("module is not in the model")


def cross_layer_equalization(module1, module2, output_axis=0, input_axis=1):
    """Scale the first module's outputs and the second one's inputs so that both have the same ranges. ValueError for other layers, and for channels
    that do not fit."""
    if type(module1) not in _all_supported_types or type(module2) not in _all_supported_types:
        raise ValueError("module type not supported:", type(module1), " ", type(module2))
    bias = get_module_bias(module1) if has_bias(module1) else None
    first, second = get_module_weight(module1), get_module_weight(module2)
    if first.size(output_axis) != second.size(input_axis):
        raise TypeError("Number of output channels of first arg do not match             number input channels of second arg")
    one, two = channel_range(first, output_axis) + 1e-9, channel_range(second, input_axis)
    factors = cresset.sqrt(two / one)
    if bias is not None:
        set_module_bias(module1, (bias * factors).detach())
    by_output, by_input = ([-1 if d == axis else 1 for d in range(w.dim())] for w, axis in ((first, output_axis), (second, input_axis)))
    set_module_weight(module1, (first * factors.view(by_output)).detach())
    set_module_weight(module2, (second * cresset.reciprocal(factors).view(by_input)).detach())


def process_paired_modules_list_to_name(model, paired_modules_list):
    """The groups with names in place of modules."""
    for group in paired_modules_list:
        for i, item in enumerate(group):
            if isinstance(item, nn.Module):
                group[i] = get_name_by_module(model, item)
            elif not isinstance(item, str):
                raise TypeError("item must be a nn.Module or a string")
    return paired_modules_list


def expand_groups_in_paired_modules_list(paired_modules_list):
    """[a, b, c] → [a, b], [b, c]"""
    pairs = []
    for group in paired_modules_list:
        if len(group) == 1:
            raise ValueError("Group must have at least two modules")
        pairs += [[one, two] for one, two in zip(group, group[1:])]
    return pairs


def equalize(model, paired_modules_list, threshold=1e-4, inplace=True):
    """Equalize pairs of layers, by their names, until nothing changes by more than the threshold."""
    pairs = expand_groups_in_paired_modules_list(process_paired_modules_list_to_name(model, paired_modules_list))
    model = model if inplace else copy.deepcopy(model)
    names = [name for pair in pairs for name in pair]
    modules = {name: module for name, module in model.named_modules() if name in names}
    before = {name: None for name in names}
    while not converged(modules, before, threshold):
        for one, two in pairs:
            before[one], before[two] = copy.deepcopy(modules[one]), copy.deepcopy(modules[two])
            cross_layer_equalization(modules[one], modules[two])
    return model


def converged(curr_modules, prev_modules, threshold=1e-4):
    """Is the sum of the weights' differences less than the threshold? ValueError for other names."""
    if curr_modules.keys() != prev_modules.keys():
        raise ValueError("The keys to the given mappings must have the same set of names of modules")
    if any(module is None for module in prev_modules.values()):
        return False
    with cresset.no_grad():
        return sum((get_module_weight(curr_modules[n]) - get_module_weight(prev_modules[n])).norm() for n in curr_modules) < threshold
