"""Embeddings with quantized rows.

Rows that are packed by floats have 8, 4 or 2 bits an element, the lowest first in each byte, and end with their own scale and smallest value:
in float32 beside 8 bits, in float16 beside fewer.
"""

import cresset
from cresset.nn import functional as F

from .._tensor import QuantizedTensor
from ._register import operator

_SUM = 0


def _halves(values):
    """float16 numbers as bytes."""
    return values.half().contiguous().view(cresset.uint8)


def _limits(weight, given=None):
    if given is not None:
        return given[..., :1].float(), given[..., 1:2].float()
    return weight.amin(-1, keepdim=True), weight.amax(-1, keepdim=True)


def _eight_bits(weight, limits=None):
    weight = weight.detach().float()
    low, high = _limits(weight, limits)
    spread = high - low
    whole = ((weight - low) * (255.0 / (spread + 1e-8))).round().clamp(0, 255).to(cresset.uint8)
    facts = cresset.cat([spread / 255.0, low], -1).contiguous().view(cresset.uint8)
    return cresset.cat([whole, facts], -1)


def _few_bits(bits):
    each, most = 8 // bits, (1 << bits) - 1

    def pack(weight, optimized_qparams=False, nbins=200, ratio=0.16, limits=None):
        if optimized_qparams:
            raise NotImplementedError(f"embedding_bag_{bits}bit_prepack: optimized_qparams is not part of Cresset.")
        if weight.shape[-1] % each:
            raise RuntimeError(f"FloatToFused{bits}BitRowwiseQuantizedSBHalf only works for the number of columns a multiple of {each}; got {weight.shape[-1]}.")
        weight = weight.detach().float()
        low, high = _limits(weight, limits)
        low = low.half().float()
        spread = high - low
        scale = cresset.where(spread == 0, 1.0, spread / most).half().float()
        scale = cresset.where((scale == 0) | (1 / scale).isinf(), 1.0, scale)
        whole = ((weight - low) * (1 / scale)).round().clamp(0, most).to(cresset.uint8).unflatten(-1, (-1, each))
        packed = sum(whole[..., i] << (bits * i) for i in range(each)).to(cresset.uint8)
        return cresset.cat([packed, _halves(scale), _halves(low)], -1)

    return pack


def _real_rows(packed, bits):
    """The float32 rows of a packed matrix."""
    facts = 8 if bits == 8 else 4
    whole, tail = packed[..., :-facts], packed[..., -facts:].contiguous()
    if bits == 8:
        scale, low = tail.view(cresset.float32).split(1, -1)
    else:
        scale, low = tail.view(cresset.float16).float().split(1, -1)
        each = 8 // bits
        whole = cresset.stack([(whole >> (bits * i)) & ((1 << bits) - 1) for i in range(each)], -1).flatten(-2)
    return whole.float() * scale + low


_BITS = {"byte": 8, "4bit": 4, "2bit": 2}
_BAG = (
    "Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, "
    "Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor"
)


def _bag(rows_of, name):
    """rows_of(weight, indices): the float32 rows of these indices."""

    def bag(weight, indices, offsets=None, scale_grad_by_freq=False, mode=_SUM, pruned_weights=False, per_sample_weights=None,
            compressed_indices_mapping=None, include_last_offset=False):  # fmt: skip
        if indices.dim() not in (1, 2):
            raise RuntimeError(f"{name}: input has to be 1D or 2D Tensor, but got Tensor of dimension {indices.dim()}")
        if indices.dim() == 1 and offsets is None:
            raise RuntimeError(f"{name} expects offsets to be set for 1D indices.")
        if indices.dim() == 2:
            if offsets is not None:
                raise RuntimeError(f"{name}: if input is 2D, then offsets has to be None, as input is treated as a mini-batch of fixed length sequences.")
            offsets = cresset.arange(0, indices.numel(), indices.shape[1], dtype=indices.dtype)
            include_last_offset = False
        flat = indices.reshape(-1)
        weights = None if per_sample_weights is None else per_sample_weights.reshape(-1).float()
        if pruned_weights and compressed_indices_mapping is not None and compressed_indices_mapping.numel() > 1:
            flat = compressed_indices_mapping[flat.long()].long()
            kept = (flat >= 0).float()
            weights, flat = kept if weights is None else weights * kept, flat.clamp_min(0)
        rows = rows_of(weight, flat.long())
        order = cresset.arange(len(flat))
        return F.embedding_bag(order, rows, offsets.long(), mode="sum", per_sample_weights=weights, include_last_offset=include_last_offset)

    return bag


def _of_rows(bits):
    return lambda weight, indices: _real_rows(weight[indices], bits)


def _of_packed(packed, indices):
    weight = packed.tensors()[0]
    q = weight._quantizer
    scale, zero = q.scales.float()[indices].unsqueeze(-1), q.zero_points[indices].float().unsqueeze(-1)
    return weight._numbers[indices].float() * scale + -zero * scale


for _name, _bits in _BITS.items():
    if _bits == 8:
        operator("embedding_bag_byte_prepack(Tensor weight) -> Tensor")(_eight_bits)
        operator("embedding_bag_byte_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max) -> Tensor")(_eight_bits)
    else:
        _pack, _tail = _few_bits(_bits), "bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor"
        operator(f"embedding_bag_{_name}_prepack(Tensor weight, {_tail}")(_pack)
        operator(f"embedding_bag_{_name}_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max, {_tail}")(
            lambda weight, limits, *rest, pack=_pack: pack(weight, *rest, limits=limits)
        )
    operator(f"embedding_bag_{_name}_unpack(Tensor weight) -> Tensor")(lambda weight, bits=_bits: _real_rows(weight, bits))
    operator(f"embedding_bag_{_name}_rowwise_offsets(Tensor weight, {_BAG}")(_bag(_of_rows(_bits), f"embedding_bag_{_name}_rowwise_offsets"))


@operator("embedding_bag_prepack(Tensor weight) -> EMBEDDING W_prepack")
def embedding_bag_prepack(weight):
    """The rows of a quint8 matrix, with a floating scale and zero point each, packed."""
    if not isinstance(weight, QuantizedTensor) or weight.qscheme() is not cresset.per_channel_affine_float_qparams:
        found = weight.qscheme() if isinstance(weight, QuantizedTensor) else "a tensor that is not quantized"
        raise RuntimeError(f"Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams; got {found}.")
    if weight.q_per_channel_axis() != 0:
        raise RuntimeError(f"Per Channel Quantization for embedding only supports axis 0; got {weight.q_per_channel_axis()}.")
    return cresset.classes.quantized.EmbeddingPackedParamsBase([weight, None], [8])


@operator("embedding_bag_unpack(EMBEDDING W_prepack) -> Tensor W_origin")
def embedding_bag_unpack(W_prepack):
    """What was packed."""
    return W_prepack.tensors()[0]


operator(f"embedding_bag_byte(EMBEDDING weight, {_BAG}")(_bag(_of_packed, "embedding_bag_byte"))


@operator("embedding_byte(EMBEDDING weight, Tensor indices, bool pruned_weights=False) -> Tensor")
def embedding_byte(weight, indices, pruned_weights=False):
    """The rows of the indices, float32."""
    return _of_packed(weight, indices.reshape(-1).long()).view(*indices.shape, -1)
