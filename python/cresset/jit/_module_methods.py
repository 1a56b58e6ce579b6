"""Methods of nn's modules in the subset of Python that scripts are made of, for those whose own text takes short cuts.

A subclass that overrides a method keeps its own.
"""

from typing import List, Optional, Tuple

import cresset
from cresset import Tensor, nn
from cresset._C import _nn
from cresset.nn import functional as F

# Containers -----------------------------------------------------------------------------------------------------------


def sequential(self, input):
    for module in self:
        input = module(input)
    return input


# Linear maps and convolutions -----------------------------------------------------------------------------------------


def linear(self, input: Tensor) -> Tensor:
    return F.linear(input, self.weight, self.bias)


def bilinear(self, input1: Tensor, input2: Tensor) -> Tensor:
    return F.bilinear(input1, input2, self.weight, self.bias)


def conv(self, input: Tensor) -> Tensor:
    return self._conv_forward(input, self.weight, self.bias)


def conv1d(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        padded = _nn.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return cresset.conv1d(padded, weight, bias, self.stride, [0], self.dilation, self.groups)
    return cresset.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def conv2d(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        padded = _nn.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return cresset.conv2d(padded, weight, bias, self.stride, [0, 0], self.dilation, self.groups)
    return cresset.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def conv3d(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        padded = _nn.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return cresset.conv3d(padded, weight, bias, self.stride, [0, 0, 0], self.dilation, self.groups)
    return cresset.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def _output_padding(
    input: Tensor, output_size: Optional[List[int]], n: int, given: List[int], stride: List[int], padding: List[int], dilation: List[int],
    kernel_size: List[int],
) -> List[int]:  # fmt: skip
    if output_size is None:
        return given
    extra = 2 if input.dim() == n + 2 else 1
    wanted = output_size[extra:] if len(output_size) == n + extra else output_size
    if len(wanted) != n:
        raise ValueError(
            f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {n + extra} elements (got {len(wanted)})"
        )
    result: List[int] = []
    for d in range(n):
        low = (input.size(d + extra) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1
        if wanted[d] < low or wanted[d] > low + stride[d] - 1:
            raise ValueError(f"requested an output size of {wanted}, but dimension {d} may be {low} to {low + stride[d] - 1}")
        result.append(wanted[d] - low)
    return result


def conv_transpose1d(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = _output_padding(
        input, output_size, 1, self.output_padding, self.stride, self.padding, self.dilation, self.kernel_size
    )
    return cresset.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


def conv_transpose2d(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = _output_padding(
        input, output_size, 2, self.output_padding, self.stride, self.padding, self.dilation, self.kernel_size
    )
    return cresset.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


def conv_transpose3d(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = _output_padding(
        input, output_size, 3, self.output_padding, self.stride, self.padding, self.dilation, self.kernel_size
    )
    return cresset.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


# Normalisation --------------------------------------------------------------------------------------------------------


def batch_norm(self, input: Tensor) -> Tensor:
    self._check_input_dim(input)
    factor = 0.0
    if self.momentum is not None:
        factor = float(self.momentum)
    if self.training and self.track_running_stats:
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
    use_running = not self.training or self.track_running_stats
    batch_statistics = True if self.training else self.running_mean is None and self.running_var is None
    return F.batch_norm(
        input, self.running_mean if use_running else None, self.running_var if use_running else None, self.weight, self.bias,
        batch_statistics, factor, self.eps,
    )  # fmt: skip


def check_2d_or_3d(self, input: Tensor):
    if input.dim() != 2 and input.dim() != 3:
        raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


def check_4d(self, input: Tensor):
    if input.dim() != 4:
        raise ValueError(f"expected 4D input (got {input.dim()}D input)")


def check_5d(self, input: Tensor):
    if input.dim() != 5:
        raise ValueError(f"expected 5D input (got {input.dim()}D input)")


def apply_instance_norm(self, input: Tensor) -> Tensor:
    factor = 0.0
    if self.momentum is not None:
        factor = float(self.momentum)
    return F.instance_norm(
        input, self.running_mean, self.running_var, self.weight, self.bias, self.training or not self.track_running_stats, factor, self.eps
    )


def instance_norm(self, input: Tensor) -> Tensor:
    n = self._ndim
    if input.dim() != n and input.dim() != n + 1:
        raise ValueError(f"expected {n}D or {n + 1}D input (got {input.dim()}D input)")
    feature_dim = input.dim() - n
    if input.size(feature_dim) != self.num_features and self.affine:
        raise ValueError(
            f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), but got: {input.size(feature_dim)}."
        )
    if feature_dim == 0:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
    return self._apply_instance_norm(input)


def layer_norm(self, input: Tensor) -> Tensor:
    return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


def group_norm(self, input: Tensor) -> Tensor:
    return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


# Embeddings -----------------------------------------------------------------------------------------------------------


def embedding(self, input: Tensor) -> Tensor:
    return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)


def embedding_bag(self, input: Tensor, offsets: Optional[Tensor] = None, per_sample_weights: Optional[Tensor] = None) -> Tensor:
    return F.embedding_bag(
        input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
        self.include_last_offset, self.padding_idx,
    )  # fmt: skip


# Pooling --------------------------------------------------------------------------------------------------------------


def max_pool1d(self, input: Tensor) -> Tensor:
    return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool2d(self, input: Tensor) -> Tensor:
    return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool3d(self, input: Tensor) -> Tensor:
    return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool1d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.max_pool1d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool2d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.max_pool2d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool3d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.max_pool3d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def avg_pool2d(self, input: Tensor) -> Tensor:
    return F.avg_pool2d(
        input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
    )


def avg_pool3d(self, input: Tensor) -> Tensor:
    return F.avg_pool3d(
        input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
    )


def lp_pool1d(self, input: Tensor) -> Tensor:
    return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


def lp_pool2d(self, input: Tensor) -> Tensor:
    return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


def lp_pool3d(self, input: Tensor) -> Tensor:
    return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


def adaptive_max_pool1d(self, input: Tensor) -> Tensor:
    return F.adaptive_max_pool1d(input, self.output_size)


def adaptive_max_pool2d(self, input: Tensor) -> Tensor:
    return F.adaptive_max_pool2d(input, self.output_size)


def adaptive_max_pool3d(self, input: Tensor) -> Tensor:
    return F.adaptive_max_pool3d(input, self.output_size)


def adaptive_max_pool1d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d_with_indices(input, self.output_size)


def adaptive_max_pool2d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.adaptive_max_pool2d_with_indices(input, self.output_size)


def adaptive_max_pool3d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.adaptive_max_pool3d_with_indices(input, self.output_size)


def adaptive_avg_pool1d(self, input: Tensor) -> Tensor:
    return F.adaptive_avg_pool1d(input, self.output_size)


def adaptive_avg_pool2d(self, input: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(input, self.output_size)


def adaptive_avg_pool2d_keeping(self, input: Tensor) -> Tensor:
    height, width = self.output_size
    return F.adaptive_avg_pool2d(
        input, [input.size(-2) if height is None else height, input.size(-1) if width is None else width]
    )


def adaptive_avg_pool3d_keeping(self, input: Tensor) -> Tensor:
    depth, height, width = self.output_size
    return F.adaptive_avg_pool3d(
        input,
        [
            input.size(-3) if depth is None else depth,
            input.size(-2) if height is None else height,
            input.size(-1) if width is None else width,
        ],
    )


def adaptive_avg_pool3d(self, input: Tensor) -> Tensor:
    return F.adaptive_avg_pool3d(input, self.output_size)


def max_unpool1d(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def max_unpool2d(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def max_unpool3d(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def fractional_max_pool2d(self, input: Tensor) -> Tensor:
    return F.fractional_max_pool2d(input, self.kernel_size, self.output_size, self.output_ratio, False, self._random_samples)


def fractional_max_pool3d(self, input: Tensor) -> Tensor:
    return F.fractional_max_pool3d(input, self.kernel_size, self.output_size, self.output_ratio, False, self._random_samples)


def fractional_max_pool2d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.fractional_max_pool2d_with_indices(input, self.kernel_size, self.output_size, self.output_ratio, True, self._random_samples)


def fractional_max_pool3d_indices(self, input: Tensor) -> Tuple[Tensor, Tensor]:
    return F.fractional_max_pool3d_with_indices(input, self.kernel_size, self.output_size, self.output_ratio, True, self._random_samples)


# Recurrent layers -----------------------------------------------------------------------------------------------------


def _zero_state(self, input: Tensor, batch: int, width: int) -> Tensor:
    layers = self.num_layers * (2 if self.bidirectional else 1)
    return cresset.zeros([layers, batch, width], dtype=input.dtype, device=input.device)


def _check_state(self, state: Tensor, batch: int, width: int):
    expected = [self.num_layers * (2 if self.bidirectional else 1), batch, width]
    if state.size() != expected:
        raise RuntimeError(f"Expected hidden size {expected}, got {state.size()}")


def _check_recurrent_input(self, input: Tensor):
    if input.dim() != 2 and input.dim() != 3:
        raise ValueError(f"Expected input to be 2D or 3D, got {input.dim()}D instead")
    if input.size(-1) != self.input_size:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")


def lstm(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    self._check_recurrent_input(input)
    batched = input.dim() == 3
    batch_dim = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(batch_dim)
    batch = input.size(batch_dim)
    width = self.proj_size if self.proj_size > 0 else self.hidden_size
    if hx is None:
        h, c = self._zero_state(input, batch, width), self._zero_state(input, batch, self.hidden_size)
    else:
        h, c = hx
        if not batched:
            h, c = h.unsqueeze(1), c.unsqueeze(1)
    self._check_state(h, batch, width)
    self._check_state(c, batch, self.hidden_size)
    output, h, c = cresset.lstm(
        input, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first
    )
    if not batched:
        return output.squeeze(batch_dim), (h.squeeze(1), c.squeeze(1))
    return output, (h, c)


def _recurrent_state(self, input: Tensor, hx: Optional[Tensor], batched: bool) -> Tensor:
    batch = input.size(0 if self.batch_first else 1)
    if hx is None:
        return self._zero_state(input, batch, self.hidden_size)
    h = hx if batched else hx.unsqueeze(1)
    self._check_state(h, batch, self.hidden_size)
    return h


def gru(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    self._check_recurrent_input(input)
    batched = input.dim() == 3
    batch_dim = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(batch_dim)
    output, h = cresset.gru(
        input, self._recurrent_state(input, hx, batched), self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
        self.bidirectional, self.batch_first,
    )  # fmt: skip
    return (output, h) if batched else (output.squeeze(batch_dim), h.squeeze(1))


def rnn(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    self._check_recurrent_input(input)
    batched = input.dim() == 3
    batch_dim = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(batch_dim)
    state = self._recurrent_state(input, hx, batched)
    if self.mode == "RNN_TANH":
        output, h = cresset.rnn_tanh(
            input, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first
        )
    else:
        output, h = cresset.rnn_relu(
            input, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first
        )
    return (output, h) if batched else (output.squeeze(batch_dim), h.squeeze(1))


def _cell_input(input: Tensor) -> Tensor:
    if input.dim() != 1 and input.dim() != 2:
        raise ValueError(f"Expected input to be 1D or 2D, got {input.dim()}D instead")
    return input if input.dim() == 2 else input.unsqueeze(0)


def _cell_state(input: Tensor, state: Optional[Tensor], width: int) -> Tensor:
    if state is None:
        return cresset.zeros([input.size(0), width], dtype=input.dtype, device=input.device)
    return state if state.dim() == 2 else state.unsqueeze(0)


def rnn_cell(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    x = _cell_input(input)
    h = _cell_state(x, hx, self.hidden_size)
    if self.nonlinearity == "tanh":
        result = cresset.rnn_tanh_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    elif self.nonlinearity == "relu":
        result = cresset.rnn_relu_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    else:
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
    return result if input.dim() == 2 else result.squeeze(0)


def gru_cell(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    x = _cell_input(input)
    result = cresset.gru_cell(x, _cell_state(x, hx, self.hidden_size), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return result if input.dim() == 2 else result.squeeze(0)


def lstm_cell(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
    x = _cell_input(input)
    if hx is None:
        h, c = _cell_state(x, None, self.hidden_size), _cell_state(x, None, self.hidden_size)
    else:
        h, c = _cell_state(x, hx[0], self.hidden_size), _cell_state(x, hx[1], self.hidden_size)
    h, c = cresset.lstm_cell(x, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


# Attention ------------------------------------------------------------------------------------------------------------


def multihead_attention(
    self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
    attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
    swap = self.batch_first and query.dim() == 3
    if swap:
        query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
    out, weights = F.multi_head_attention_forward(
        query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
        self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
        key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
        use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight,
        v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
    )  # fmt: skip
    return (out.transpose(0, 1) if swap else out), weights


_RECURRENT = {
    "_zero_state": _zero_state, "_check_state": _check_state, "_check_recurrent_input": _check_recurrent_input,
    "_recurrent_state": _recurrent_state,
}  # fmt: skip

# {class: {method: what is compiled for it}}
METHODS = {
    nn.Sequential: {"forward": sequential},
    nn.Linear: {"forward": linear},
    nn.Bilinear: {"forward": bilinear},
    nn.Conv1d: {"forward": conv, "_conv_forward": conv1d},
    nn.Conv2d: {"forward": conv, "_conv_forward": conv2d},
    nn.Conv3d: {"forward": conv, "_conv_forward": conv3d},
    nn.ConvTranspose1d: {"forward": conv_transpose1d},
    nn.ConvTranspose2d: {"forward": conv_transpose2d},
    nn.ConvTranspose3d: {"forward": conv_transpose3d},
    nn.BatchNorm1d: {"forward": batch_norm, "_check_input_dim": check_2d_or_3d},
    nn.BatchNorm2d: {"forward": batch_norm, "_check_input_dim": check_4d},
    nn.BatchNorm3d: {"forward": batch_norm, "_check_input_dim": check_5d},
    nn.SyncBatchNorm: {"forward": batch_norm},
    nn.InstanceNorm1d: {"forward": instance_norm, "_apply_instance_norm": apply_instance_norm},
    nn.InstanceNorm2d: {"forward": instance_norm, "_apply_instance_norm": apply_instance_norm},
    nn.InstanceNorm3d: {"forward": instance_norm, "_apply_instance_norm": apply_instance_norm},
    nn.LayerNorm: {"forward": layer_norm},
    nn.GroupNorm: {"forward": group_norm},
    nn.Embedding: {"forward": embedding},
    nn.EmbeddingBag: {"forward": embedding_bag},
    nn.MaxPool1d: {"forward": max_pool1d},
    nn.MaxPool2d: {"forward": max_pool2d},
    nn.MaxPool3d: {"forward": max_pool3d},
    nn.AvgPool2d: {"forward": avg_pool2d},
    nn.AvgPool3d: {"forward": avg_pool3d},
    nn.LPPool1d: {"forward": lp_pool1d},
    nn.LPPool2d: {"forward": lp_pool2d},
    nn.LPPool3d: {"forward": lp_pool3d},
    nn.AdaptiveMaxPool1d: {"forward": adaptive_max_pool1d},
    nn.AdaptiveMaxPool2d: {"forward": adaptive_max_pool2d},
    nn.AdaptiveMaxPool3d: {"forward": adaptive_max_pool3d},
    nn.AdaptiveAvgPool1d: {"forward": adaptive_avg_pool1d},
    nn.AdaptiveAvgPool2d: {"forward": adaptive_avg_pool2d},
    nn.AdaptiveAvgPool3d: {"forward": adaptive_avg_pool3d},
    nn.MaxUnpool1d: {"forward": max_unpool1d},
    nn.MaxUnpool2d: {"forward": max_unpool2d},
    nn.MaxUnpool3d: {"forward": max_unpool3d},
    nn.FractionalMaxPool2d: {"forward": fractional_max_pool2d},
    nn.FractionalMaxPool3d: {"forward": fractional_max_pool3d},
    nn.LSTM: {"forward": lstm, **_RECURRENT},
    nn.GRU: {"forward": gru, **_RECURRENT},
    nn.RNN: {"forward": rnn, **_RECURRENT},
    nn.RNNCell: {"forward": rnn_cell},
    nn.GRUCell: {"forward": gru_cell},
    nn.LSTMCell: {"forward": lstm_cell},
    nn.MultiheadAttention: {"forward": multihead_attention},
}

# The same where `return_indices` is set.
WITH_INDICES = {
    nn.MaxPool1d: {"forward": max_pool1d_indices},
    nn.MaxPool2d: {"forward": max_pool2d_indices},
    nn.MaxPool3d: {"forward": max_pool3d_indices},
    nn.AdaptiveMaxPool1d: {"forward": adaptive_max_pool1d_indices},
    nn.AdaptiveMaxPool2d: {"forward": adaptive_max_pool2d_indices},
    nn.AdaptiveMaxPool3d: {"forward": adaptive_max_pool3d_indices},
    nn.FractionalMaxPool2d: {"forward": fractional_max_pool2d_indices},
    nn.FractionalMaxPool3d: {"forward": fractional_max_pool3d_indices},
}

# The same where a size of the result is None: the input's stays.
KEEPING_SIZES = {
    nn.AdaptiveAvgPool2d: {"forward": adaptive_avg_pool2d_keeping},
    nn.AdaptiveAvgPool3d: {"forward": adaptive_avg_pool3d_keeping},
}
