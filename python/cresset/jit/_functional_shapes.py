"""Resizing, padding, rearranging and attention of nn.functional in the subset of Python that scripts are made of (see _functional.py)."""

import math
from typing import List, Optional, Tuple

import cresset
from cresset import Tensor
from cresset._C import _nn

from ._functional import Floats1, Ints1, Ints2


def _sizes(input: Tensor, scales: List[float]) -> List[int]:
    if len(scales) != input.dim() - 2:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{input.size()[2:]} and scale_factor of shape {scales}."
        )
    sizes: List[int] = []
    for i in range(len(scales)):
        sizes.append(int(math.floor(float(input.size(i + 2)) * scales[i])))
    return sizes


def interpolate(
    input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None, mode: str = "nearest",
    align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    weighted = not (mode == "nearest" or mode == "area" or mode == "nearest-exact")
    if align_corners is not None and not weighted:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    align = False if align_corners is None else align_corners
    spatial = input.dim() - 2
    scales: Optional[List[float]] = None
    if size is not None:
        if scale_factor is not None:
            raise ValueError("only one of size or scale_factor should be defined")
        if len(size) == 1 and spatial > 1:
            size = size * spatial
        if len(size) != spatial:
            raise ValueError(
                "Input and output size must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{input.size()[2:]} and output size of {size}."
            )
    elif scale_factor is not None:
        scales = scale_factor * spatial if len(scale_factor) == 1 else scale_factor
        if mode == "area" or (recompute_scale_factor is not None and recompute_scale_factor):
            size = _sizes(input, scales)
            scales = None
    else:
        raise ValueError("either size or scale_factor should be defined")
    if antialias and not (input.dim() == 4 and (mode == "bilinear" or mode == "bicubic" or mode == "lanczos")):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area":
        assert size is not None
        if spatial == 1:
            return cresset.adaptive_avg_pool1d(input, size)
        return _nn.adaptive_avg_pool2d(input, size) if spatial == 2 else _nn.adaptive_avg_pool3d(input, size)
    if mode == "nearest":
        if spatial == 1:
            return _nn.upsample_nearest1d(input, size, scales)
        return _nn.upsample_nearest2d(input, size, scales) if spatial == 2 else _nn.upsample_nearest3d(input, size, scales)
    if mode == "nearest-exact":
        if spatial == 1:
            return _nn._upsample_nearest_exact1d(input, size, scales)
        return _nn._upsample_nearest_exact2d(input, size, scales) if spatial == 2 else _nn._upsample_nearest_exact3d(input, size, scales)
    if mode == "linear" and spatial == 1:
        return _nn.upsample_linear1d(input, size, align, scales)
    if mode == "bilinear" and spatial == 2:
        return _nn._upsample_bilinear2d_aa(input, size, align, scales) if antialias else _nn.upsample_bilinear2d(input, size, align, scales)
    if mode == "bicubic" and spatial == 2:
        return _nn._upsample_bicubic2d_aa(input, size, align, scales) if antialias else _nn.upsample_bicubic2d(input, size, align, scales)
    if mode == "trilinear" and spatial == 3:
        return _nn.upsample_trilinear3d(input, size, align, scales)
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the mode {mode}")


def upsample(
    input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None, mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:  # fmt: skip
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None) -> Tensor:
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None) -> Tensor:
    return interpolate(input, size, scale_factor, "bilinear", True)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    modes = {"bilinear": 0, "nearest": 1, "bicubic": 2}
    paddings = {"zeros": 0, "border": 1, "reflection": 2}
    if mode not in modes:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in paddings:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    return cresset.grid_sampler(input, grid, modes[mode], paddings[padding_mode], False if align_corners is None else align_corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    return cresset.affine_grid_generator(theta, size, False if align_corners is None else align_corners)


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return _nn.pad(input, pad, mode, value)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    return cresset.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    return cresset.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)")
    size = input.size()
    if groups <= 0 or size[1] % groups != 0:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {size[1]} channels and {groups} groups.")
    return input.reshape([size[0], groups, size[1] // groups] + size[2:]).transpose(1, 2).reshape(size)


def unfold(input: Tensor, kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0, stride: Ints2 = 1) -> Tensor:
    return _nn.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Ints2, kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0, stride: Ints2 = 1
) -> Tensor:
    return _nn.col2im(input, output_size, kernel_size, dilation, padding, stride)


def _float_mask(mask: Tensor, dtype: int) -> Tensor:
    if mask.is_floating_point():
        return mask
    return cresset.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _is_causal(mask: Optional[Tensor], is_causal: Optional[bool], size: int) -> bool:
    if is_causal is not None:
        return is_causal
    if mask is None or mask.size(-2) != size or mask.size(-1) != size:
        return False
    ahead = cresset.ones([size, size], dtype=cresset.bool, device=mask.device).triu(1)
    if mask.dtype == cresset.bool:
        return bool((mask == ahead).all())
    causal = cresset.zeros([size, size], dtype=mask.dtype, device=mask.device).masked_fill(ahead, -math.inf)
    return bool((mask == causal).all())


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True, key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True, attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
    batched = query.dim() == 3
    if query.dim() != 2 and query.dim() != 3:
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.size(0), query.size(1), query.size(2)
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head = width // num_heads
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if key_padding_mask is not None:
        key_padding_mask = _float_mask(key_padding_mask, query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        if attn_mask is not None:
            attn_mask = _float_mask(attn_mask, query.dtype)
        if key_padding_mask is not None:
            is_causal = False

    if use_separate_proj_weight:
        assert q_proj_weight is not None and k_proj_weight is not None and v_proj_weight is not None
        w_q, w_k, w_v = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        assert in_proj_weight is not None
        w_q, w_k, w_v = in_proj_weight[:width], in_proj_weight[width : 2 * width], in_proj_weight[2 * width :]
    if in_proj_bias is not None:
        q = _nn.linear(query, w_q, in_proj_bias[:width])
        k = _nn.linear(key, w_k, in_proj_bias[width : 2 * width])
        v = _nn.linear(value, w_v, in_proj_bias[2 * width :])
    else:
        q, k, v = _nn.linear(query, w_q), _nn.linear(key, w_k), _nn.linear(value, w_v)
    if attn_mask is not None and attn_mask.dim() == 2:
        attn_mask = attn_mask.unsqueeze(0)
    if bias_k is not None and bias_v is not None:
        k = cresset.cat([k, bias_k.repeat([1, batch, 1])])
        v = cresset.cat([v, bias_v.repeat([1, batch, 1])])
        if attn_mask is not None:
            attn_mask = _nn.pad(attn_mask, [0, 1])
        if key_padding_mask is not None:
            key_padding_mask = _nn.pad(key_padding_mask, [0, 1])

    q = q.reshape([length, batch * num_heads, head]).transpose(0, 1)
    k = k.reshape([k.size(0), batch * num_heads, head]).transpose(0, 1) if static_k is None else static_k
    v = v.reshape([v.size(0), batch * num_heads, head]).transpose(0, 1) if static_v is None else static_v
    if add_zero_attn:
        zeros = cresset.zeros([batch * num_heads, 1, head], dtype=k.dtype, device=k.device)
        k, v = cresset.cat([k, zeros], 1), cresset.cat([v, zeros], 1)
        if attn_mask is not None:
            attn_mask = _nn.pad(attn_mask, [0, 1])
        if key_padding_mask is not None:
            key_padding_mask = _nn.pad(key_padding_mask, [0, 1])
    source = k.size(1)
    if key_padding_mask is not None:
        padding = key_padding_mask.view([batch, 1, 1, source]).expand([-1, num_heads, -1, -1]).reshape([batch * num_heads, 1, source])
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0

    if need_weights:
        scores = cresset.bmm(q * math.sqrt(1.0 / float(head)), k.transpose(-2, -1))
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = cresset.softmax(scores, -1)
        if dropout_p > 0.0:
            weights = cresset.dropout(weights, dropout_p, True)
        out = cresset.bmm(weights, v).transpose(0, 1).reshape([length, batch, width])
        out = _nn.linear(out, out_proj_weight, out_proj_bias)
        weights = weights.view([batch, num_heads, length, source])
        if average_attn_weights:
            weights = weights.mean([1])
        if not batched:
            return out.squeeze(1), weights.squeeze(0)
        return out, weights

    if attn_mask is not None:
        if attn_mask.size(0) == 1:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view([batch, num_heads, -1, source])
    out = _nn.scaled_dot_product_attention(
        q.reshape([batch, num_heads, length, head]), k.reshape([batch, num_heads, source, head]),
        v.reshape([batch, num_heads, source, head]), attn_mask, dropout_p, is_causal,
    )  # fmt: skip
    out = _nn.linear(out.permute([2, 0, 1, 3]).reshape([length, batch, width]), out_proj_weight, out_proj_bias)
    return (out if batched else out.squeeze(1)), None
