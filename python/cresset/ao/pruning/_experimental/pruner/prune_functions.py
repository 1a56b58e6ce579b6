"""Removes the rows that masks zero, and in the layers after them what computes with these rows."""

import cresset
from cresset import nn
from cresset.nn.utils import parametrize

from .parametrization import BiasHook, FakeStructuredSparsity


def _remove_bias_handles(module):
    """Remove the hooks that add biases."""
    for key, hook in list(module._forward_hooks.items()):
        if isinstance(hook, BiasHook):
            del module._forward_hooks[key]


def _mask_of(module, name):
    """The mask of rows of a tensor, or None."""
    if not parametrize.is_parametrized(module, name):
        return None
    return next((p.mask for p in module.parametrizations[name] if isinstance(p, FakeStructuredSparsity)), None)


def _keep_rows(module, name, mask, columns=None):
    """Make a masked tensor an ordinary one, with the rows that `mask` keeps (and of these the columns that are true)."""
    if parametrize.is_parametrized(module, name):
        parametrize.remove_parametrizations(module, name, leave_parametrized=True)
    value = getattr(module, name)[mask]
    setattr(module, name, nn.Parameter(value if columns is None else value[:, columns]))


def _keep_columns(module, name, mask):
    """Keep the columns of a tensor where `mask` is true, beneath its parametrizations where it has any."""
    with cresset.no_grad():
        if parametrize.is_parametrized(module, name):
            entry = module.parametrizations[name]
            entry.original = nn.Parameter(entry.original[:, mask])
        else:
            setattr(module, name, nn.Parameter(getattr(module, name)[:, mask]))


def _prune_rows(module, size_name):
    mask = _mask_of(module, "weight")
    with cresset.no_grad():
        _keep_rows(module, "weight", mask)
    setattr(module, size_name, module.weight.shape[0])
    _remove_bias_handles(module)
    return mask


def _prune_linear_helper(linear):
    return _prune_rows(linear, "out_features")


def _prune_conv2d_helper(conv2d):
    return _prune_rows(conv2d, "out_channels")


def _bias_of(module):
    """The bias, wherever it is kept, or None."""
    bias = getattr(module, "_bias", None)
    return module.bias if bias is None else bias


def _set_bias(module, bias):
    if hasattr(module, "_bias"):
        delattr(module, "_bias")
    module.bias = nn.Parameter(bias.detach())


def _prune_module_bias(module, mask):
    """Keep the elements of the bias where `mask` is true."""
    bias = _bias_of(module)
    if bias is not None:
        _set_bias(module, bias[mask])


def _propagate_module_bias(module, mask):
    """Keep the elements of the bias where `mask` is true, and return the others, which the next layer needs."""
    bias = _bias_of(module)
    if bias is None:
        return None
    _set_bias(module, bias[mask])
    return bias.detach()[~mask]


def _get_adjusted_next_layer_bias(next_layer, pruned_biases, mask):
    """The next layer's bias with what constant inputs `pruned_biases` add, in place of the inputs where `mask` is false."""
    with cresset.no_grad():
        weight = next_layer.weight[:, ~mask]  # masked rows take nothing
        added = (weight.sum((2, 3)) if weight.dim() == 4 else weight) @ pruned_biases
        bias = _bias_of(next_layer)
        return nn.Parameter(added if bias is None else added + bias)


def _adjust(next_layer, pruned_biases, mask):
    """Give the next layer that bias, where a layer with masked rows keeps its own."""
    bias = _get_adjusted_next_layer_bias(next_layer, pruned_biases, mask)
    if getattr(next_layer, "_bias", None) is not None:
        next_layer._bias = bias
    else:
        next_layer.bias = bias


def prune_linear(linear):
    """Remove the rows of a layer whose output is the model's."""
    _prune_module_bias(linear, _prune_linear_helper(linear))


def prune_linear_linear(linear1, linear2):
    """linear1 -> linear2"""
    prune_linear_activation_linear(linear1, None, linear2)


def _prune_pair(first, mask, activation, second):
    """What linear and conv2d have in common: biases, and the columns of the second layer."""
    if getattr(first, "prune_bias", False):
        _prune_module_bias(first, mask)
    else:
        pruned = _propagate_module_bias(first, mask)
        if pruned is not None:
            _adjust(second, activation(pruned) if activation else pruned, mask)
    _keep_columns(second, "weight", mask)


def prune_linear_activation_linear(linear1, activation, linear2):
    """linear1 -> activation -> linear2"""
    _prune_pair(linear1, _prune_linear_helper(linear1), activation, linear2)
    linear2.in_features = linear1.out_features


def prune_conv2d_padded(conv2d_1):
    """Zero the rows of a layer, which stay: their constant outputs and the zeros of the padding after them differ."""
    mask = _mask_of(conv2d_1, "weight")
    with cresset.no_grad():
        parametrize.remove_parametrizations(conv2d_1, "weight", leave_parametrized=True)
        bias = _bias_of(conv2d_1)
        if bias is not None:
            _set_bias(conv2d_1, cresset.where(mask, bias, 0.0) if getattr(conv2d_1, "prune_bias", False) else bias)
    _remove_bias_handles(conv2d_1)


def prune_conv2d(conv2d):
    """Remove the rows of a layer whose output is the model's."""
    _prune_module_bias(conv2d, _prune_conv2d_helper(conv2d))


def prune_conv2d_conv2d(conv2d_1, conv2d_2):
    """conv2d_1 -> conv2d_2"""
    prune_conv2d_activation_conv2d(conv2d_1, None, conv2d_2)


def _is_padded(conv2d):
    if isinstance(conv2d.padding, str):
        return conv2d.padding == "same" and max(conv2d.kernel_size) > 1
    return any(conv2d.padding)


def prune_conv2d_activation_conv2d(conv2d_1, activation, conv2d_2):
    """conv2d_1 -> activation -> conv2d_2"""
    if _is_padded(conv2d_2) and _bias_of(conv2d_1) is not None:
        prune_conv2d_padded(conv2d_1)
        return
    _prune_pair(conv2d_1, _prune_conv2d_helper(conv2d_1), activation, conv2d_2)
    conv2d_2.in_channels = conv2d_1.out_channels


def prune_conv2d_pool_activation_conv2d(c1, pool, activation, c2):
    """c1 -> pool -> activation -> c2"""
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_activation_pool_conv2d(c1, activation, pool, c2):
    """c1 -> activation -> pool -> c2"""
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_pool_flatten_linear(conv2d, pool, flatten, linear):
    """conv2d -> pool -> flatten -> linear: a channel is as many columns as the pool has outputs."""
    mask = _prune_conv2d_helper(conv2d)
    each = linear.weight.shape[1] // len(mask)
    columns = mask.repeat_interleave(each)
    if getattr(conv2d, "prune_bias", False):
        _prune_module_bias(conv2d, mask)
    else:
        pruned = _propagate_module_bias(conv2d, mask)
        if pruned is not None:
            _adjust(linear, pruned.repeat_interleave(each), columns)
    _keep_columns(linear, "weight", columns)
    linear.in_features = int(columns.sum())


def prune_lstm_output_linear(lstm, getitem, linear):
    """lstm -> its output -> linear"""
    prune_lstm_output_layernorm_linear(lstm, getitem, None, linear)


def prune_lstm_output_layernorm_linear(lstm, getitem, layernorm, linear):
    """lstm -> its output -> layernorm -> linear

    Each of the four gates, a quarter of the rows, has a mask of its own, by which the columns of its recurrent weights go, too. Layers after it keep what the mask of
    the last gate keeps.
    """
    kept = None  # of the outputs of a layer
    for i in range(lstm.num_layers):
        before, kept = kept, None
        with cresset.no_grad():
            mask = _mask_of(lstm, f"weight_ih_l{i}")
            if mask is not None:
                _keep_rows(lstm, f"weight_ih_l{i}", mask, before)
                _prune_lstm_bias(lstm, f"bias_ih_l{i}", mask)
            elif before is not None:
                _keep_columns(lstm, f"weight_ih_l{i}", before)
            mask = _mask_of(lstm, f"weight_hh_l{i}")
            if mask is not None:
                parametrize.remove_parametrizations(lstm, f"weight_hh_l{i}", leave_parametrized=True)
                weights = getattr(lstm, f"weight_hh_l{i}").split(len(mask) // 4)
                gates = mask.split(len(mask) // 4)
                setattr(lstm, f"weight_hh_l{i}", nn.Parameter(cresset.cat([w[gate][:, gate] for w, gate in zip(weights, gates)])))
                _prune_lstm_bias(lstm, f"bias_hh_l{i}", mask)
                kept = gates[-1]
    if kept is None:
        return
    lstm.hidden_size = int(kept.sum())
    if layernorm is not None:
        if layernorm.elementwise_affine:
            for name in ("weight", "bias"):
                if getattr(layernorm, name) is not None:
                    setattr(layernorm, name, nn.Parameter(getattr(layernorm, name).detach()[kept]))
        layernorm.normalized_shape = (int(kept.sum()),)
    _keep_columns(linear, "weight", kept)
    linear.in_features = int(kept.sum())


def _prune_lstm_bias(lstm, name, mask):
    if lstm.bias:
        setattr(lstm, name, nn.Parameter(getattr(lstm, name)[mask]))
