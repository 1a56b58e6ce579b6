"""Embeddings with quantized rows."""

from typing import Optional

import cresset
from cresset import Tensor, nn

from .utils import _hide_packed_params_repr, _quantize_weight

__all__ = ["EmbeddingPackedParams", "Embedding", "EmbeddingBag"]


class EmbeddingPackedParams(nn.Module):
    """The rows of an embedding, packed."""

    _version = 1  # of its part of state dicts

    def __init__(self, num_embeddings, embedding_dim, dtype=cresset.quint8):
        super().__init__()
        self.dtype = dtype
        if dtype is not cresset.quint8:
            raise NotImplementedError(f"Unsupported dtype on quantized embedding! Supports quint8. Got dtype: {dtype}")
        scales, zeros = cresset.ones(num_embeddings, dtype=cresset.float), cresset.zeros(num_embeddings, dtype=cresset.float)
        self.set_weight(
            cresset._empty_per_channel_affine_quantized([num_embeddings, embedding_dim], scales=scales, zero_points=zeros, axis=0, dtype=cresset.quint8)
        )

    def set_weight(self, weight):
        """Pack others."""
        self._packed_weight = cresset.ops.quantized.embedding_bag_prepack(weight)

    def _weight(self):
        return cresset.ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        names = ("dtype", "_packed_weight")
        missing_keys += [prefix + name for name in names if prefix + name not in state_dict]
        if prefix + "_packed_weight" in state_dict:
            self.dtype = state_dict[prefix + "dtype"]
            self.set_weight(state_dict[prefix + "_packed_weight"])
        if strict:
            unexpected_keys += [name for name in state_dict if name.startswith(prefix) and name[len(prefix) :] not in names]

    def __repr__(self):
        return repr(self._weight())


class Embedding(nn.Module):
    """nn.Embedding with rows of quint8, a floating scale and zero point each."""

    _version = 1  # of its part of state dicts
    _FLOAT_MODULE = nn.Embedding

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None,
                 dtype=cresset.quint8):  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self._packed_params.set_weight(_weight)

    def forward(self, indices):
        return cresset.ops.quantized.embedding_byte(self._packed_params._packed_weight, indices)

    def _get_name(self):
        return "QuantizedEmbedding"

    def __repr__(self):
        return _hide_packed_params_repr(self, EmbeddingPackedParams)

    def extra_repr(self):
        return f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"

    def set_weight(self, w):
        """Other quantized rows."""
        self._packed_params.set_weight(w)

    def weight(self):
        """The rows, quantized."""
        return self._packed_params._weight()

    @classmethod
    def _observed_rows(cls, mod, use_precomputed_fake_quant):
        observer = getattr(mod, "weight_fake_quant", None)
        if observer is None:
            if type(mod) is not cls._FLOAT_MODULE:
                raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}; got {type(mod)}")
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Embedding input float module must have qconfig defined")
            usual = cresset.ao.quantization.float_qparams_weight_only_qconfig
            observer = (mod.qconfig if mod.qconfig is not None and mod.qconfig.weight is not None else usual).weight()
        if observer.qscheme is not cresset.per_channel_affine_float_qparams:
            raise AssertionError(f"Embedding quantization is only supported with float_qparams_weight_only_qconfig; got {observer.qscheme}")
        if observer.dtype is not cresset.quint8:
            raise AssertionError(f"The only supported dtype for nnq.{cls.__name__} is torch.quint8; got {observer.dtype}")
        if not use_precomputed_fake_quant:
            observer(mod.weight)
        return _quantize_weight(mod.weight.detach().float(), observer)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of an nn.Embedding."""
        made = cls(mod.num_embeddings, mod.embedding_dim)
        made.set_weight(cls._observed_rows(mod, use_precomputed_fake_quant))
        return made

    @classmethod
    def from_reference(cls, ref_embedding):
        """Of an embedding that computes with real numbers what quantized ones stand for."""
        return cls(
            ref_embedding.num_embeddings, ref_embedding.embedding_dim, ref_embedding.padding_idx, ref_embedding.max_norm, ref_embedding.norm_type,
            ref_embedding.scale_grad_by_freq, ref_embedding.sparse, ref_embedding.get_quantized_weight(), ref_embedding.weight_dtype,
        )  # fmt: skip


class EmbeddingBag(Embedding):
    """nn.EmbeddingBag of sums with rows of quint8."""

    _FLOAT_MODULE = nn.EmbeddingBag
    _version = 1

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="sum", sparse=False, _weight=None,
                 include_last_offset=False, dtype=cresset.quint8):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights, self.include_last_offset, self.dtype = mode, False, include_last_offset, dtype

    def forward(
        self, indices: Tensor, offsets: Optional[Tensor] = None, per_sample_weights: Optional[Tensor] = None, compressed_indices_mapping: Optional[Tensor] = None
    ) -> Tensor:
        return cresset.ops.quantized.embedding_bag_byte(
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights, compressed_indices_mapping,
            self.include_last_offset,
        )  # fmt: skip

    def _get_name(self):
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of an nn.EmbeddingBag."""
        made = cls(mod.num_embeddings, mod.embedding_dim, max_norm=mod.max_norm, norm_type=mod.norm_type, mode=mod.mode, include_last_offset=mod.include_last_offset)
        made.set_weight(cls._observed_rows(mod, use_precomputed_fake_quant))
        return made

    @classmethod
    def from_reference(cls, ref_embedding_bag):
        return cls(
            ref_embedding_bag.num_embeddings, ref_embedding_bag.embedding_dim, ref_embedding_bag.max_norm, ref_embedding_bag.norm_type,
            ref_embedding_bag.scale_grad_by_freq, ref_embedding_bag.mode, ref_embedding_bag.sparse, ref_embedding_bag.get_quantized_weight(),
            ref_embedding_bag.include_last_offset, ref_embedding_bag.weight_dtype,
        )  # fmt: skip
