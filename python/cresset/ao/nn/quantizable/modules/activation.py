"""Attention that is made of layers which can be quantized."""

import math
from typing import Optional, Tuple

import cresset
from cresset import Tensor, nn
from cresset.ao.nn.quantized.modules.functional_modules import FloatFunctional

__all__ = ["MultiheadAttention"]


def _as(like: Tensor, x: Tensor) -> Tensor:
    """x, quantized where `like` is."""
    if not like.is_quantized:
        return x
    return cresset.quantize_per_tensor(x.dequantize(), like.q_scale(), like.q_zero_point(), like.dtype)


class MultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention whose projections can be quantized; the attention itself is computed with real numbers."""

    _FLOAT_MODULE = nn.MultiheadAttention
    __constants__ = ["batch_first"]

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None,
                 dtype=None):  # fmt: skip
        super().__init__(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype)
        facts = {"device": device, "dtype": dtype}
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **facts)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, bias=bias, **facts)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, bias=bias, **facts)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **facts)
        self.q_scaling_product = FloatFunctional()
        stubs = cresset.ao.quantization
        self.quant_attn_output, self.quant_attn_output_weights = stubs.QuantStub(), stubs.QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = stubs.DeQuantStub(), stubs.DeQuantStub(), stubs.DeQuantStub()

    def _get_name(self):
        return "QuantizableMultiheadAttention"

    def _projections(self, other):
        """(weight, bias) of the three projections of an nn.MultiheadAttention."""
        weights = other.in_proj_weight.chunk(3) if other._qkv_same_embed_dim else (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        return zip((self.linear_Q, self.linear_K, self.linear_V), weights, biases)

    @classmethod
    def from_float(cls, other):
        """Of an nn.MultiheadAttention that has a qconfig, with observers."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"type mismatch: {type(other)}; {cls._FLOAT_MODULE.__name__} was required")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None, other.add_zero_attn, other.kdim, other.vdim,
            other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        for layer, weight, bias in made._projections(other):
            layer.weight = nn.Parameter(weight.detach().clone())
            layer.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        made.train(other.training)
        prepare = cresset.ao.quantization.prepare_qat if other.training else cresset.ao.quantization.prepare
        return prepare(made, inplace=True)

    def dequantize(self):
        """The nn.MultiheadAttention with the real numbers of the quantized weights."""
        biased = self.linear_Q._weight_bias()[1] is not None
        made = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, self.dropout, biased, self.bias_k is not None, self.add_zero_attn, self.kdim, self.vdim, self.batch_first
        )
        real = [tuple(t if t is None else t.dequantize() for t in layer._weight_bias()) for layer in (self.linear_Q, self.linear_K, self.linear_V)]
        if made._qkv_same_embed_dim:
            made.in_proj_weight = nn.Parameter(cresset.cat([weight for weight, _ in real]))
        else:
            made.q_proj_weight, made.k_proj_weight, made.v_proj_weight = (nn.Parameter(weight) for weight, _ in real)
        if biased:
            made.in_proj_bias = nn.Parameter(cresset.cat([bias for _, bias in real]))
        weight, bias = self.out_proj._weight_bias()
        made.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            made.out_proj.bias = nn.Parameter(bias)
        if self.bias_k is not None:
            made.bias_k, made.bias_v = nn.Parameter(self.bias_k.dequantize()), nn.Parameter(self.bias_v.dequantize())
        return made

    @classmethod
    def from_observed(cls, other):
        """The quantized form."""
        made = cresset.ao.quantization.convert(other, mapping=None, inplace=False, remove_qconfig=True, convert_custom_config_dict=None)
        made.__class__ = cls
        return made

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
        attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        length, batch = query.size(0), query.size(1)
        heads, size = self.num_heads, self.embed_dim // self.num_heads
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), 1.0 / math.sqrt(size))
        k = self.linear_K(key)
        v = self.linear_V(value)
        extra = 0
        bias_k, bias_v = self.bias_k, self.bias_v
        if bias_k is not None and bias_v is not None:
            k = cresset.cat([k, _as(k, bias_k).repeat(1, batch, 1)])
            v = cresset.cat([v, _as(v, bias_v).repeat(1, batch, 1)])
            extra += 1
        q = q.contiguous().view(-1, batch * heads, size).transpose(0, 1)
        k = k.contiguous().view(-1, batch * heads, size).transpose(0, 1)
        v = v.contiguous().view(-1, batch * heads, size).transpose(0, 1)
        if self.add_zero_attn:
            zeros = cresset.zeros(k.size(0), 1, size)
            k = cresset.cat([k, _as(k, zeros)], dim=1)
            v = cresset.cat([v, _as(v, zeros)], dim=1)
            extra += 1
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        scores = self._masked(cresset.bmm(q, k.transpose(1, 2)), attn_mask, key_padding_mask, batch, extra)
        weights = nn.functional.dropout(nn.functional.softmax(scores, dim=-1), p=self.dropout, training=self.training)
        output = cresset.bmm(weights, v)
        if self.batch_first:
            output = output.view(batch, heads, length, size).transpose(1, 2).reshape(batch, length, self.embed_dim)
        else:
            output = output.transpose(0, 1).contiguous().view(length, batch, self.embed_dim)
        output = self.out_proj(self.quant_attn_output(output))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return output, None
        weights = weights.view(batch, heads, length, -1)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return output, weights

    def _masked(self, scores: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], batch: int, extra: int) -> Tensor:
        if attn_mask is not None:
            mask = attn_mask if attn_mask.dim() == 3 else attn_mask.unsqueeze(0)
            if extra > 0:
                mask = nn.functional.pad(mask, [0, extra])
            if mask.dtype == cresset.bool or mask.dtype == cresset.uint8:
                scores = scores.masked_fill(mask.to(cresset.bool), float("-inf"))
            else:
                scores = scores + mask
        if key_padding_mask is not None:
            mask = key_padding_mask.to(cresset.bool)
            if extra > 0:
                mask = nn.functional.pad(mask, [0, extra])
            by_head = scores.view(batch, self.num_heads, scores.size(1), scores.size(2))
            scores = by_head.masked_fill(mask.unsqueeze(1).unsqueeze(2), float("-inf")).view(scores.size(0), scores.size(1), scores.size(2))
        return scores
