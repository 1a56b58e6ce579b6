"""Embeddings with rounded rows."""

from cresset import nn

from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(ReferenceQuantizedModule, nn.Embedding):
    """nn.Embedding whose rows are rounded as quantization rounds them."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None,
                 device=None, dtype=None, weight_qparams=None):  # fmt: skip
        nn.Embedding.__init__(self, num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, False, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, input):
        return nn.functional.embedding(input, self.get_weight(), self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def _get_name(self):
        return "QuantizedEmbedding(Reference)"

    @classmethod
    def from_float(cls, mod, weight_qparams):
        """Of an nn.Embedding, with its rows."""
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse, mod.weight.detach().clone(),
            weight_qparams=weight_qparams,
        )  # fmt: skip


class EmbeddingBag(ReferenceQuantizedModule, nn.EmbeddingBag):
    """nn.EmbeddingBag whose rows are rounded as quantization rounds them."""

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False, _weight=None,
                 include_last_offset=False, padding_idx=None, device=None, dtype=None, weight_qparams=None):  # fmt: skip
        nn.EmbeddingBag.__init__(self, num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, include_last_offset,
                                 padding_idx, device, dtype)  # fmt: skip
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return nn.functional.embedding_bag(
            input, self.get_weight(), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
            self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def _get_name(self):
        return "QuantizedEmbedding(Reference)"

    @classmethod
    def from_float(cls, mod, weight_qparams, use_precomputed_fake_quant=False):
        """Of an nn.EmbeddingBag, with its rows."""
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse, mod.weight.detach().clone(),
            mod.include_last_offset, mod.padding_idx, weight_qparams=weight_qparams,
        )  # fmt: skip
