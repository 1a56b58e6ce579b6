"""Embeddings that are trained to be quantized."""

import cresset
from cresset import nn

from ._source import check_source

__all__ = ["Embedding", "EmbeddingBag"]


def _check_qconfig(qconfig, what="Embedding"):
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    scheme = qconfig.weight().qscheme
    if scheme is not cresset.per_channel_affine_float_qparams:
        raise AssertionError(f"{what} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}")


def _from_float(cls, mod, names):
    check_source(cls, mod)
    if not mod.qconfig.weight().qscheme:
        raise AssertionError("the qconfig's weight has no scheme")
    return cls(*(getattr(mod, name) for name in names), device=mod.weight.device, _weight=mod.weight, qconfig=mod.qconfig)


def _to_float(module, names):
    made = module._FLOAT_MODULE(*(getattr(module, name) for name in names), device=module.weight.device)
    made.weight = nn.Parameter(module.weight.detach())
    made.train(module.training)
    return made


class Embedding(nn.Embedding):
    """nn.Embedding whose rows pass through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = nn.Embedding
    _NAMES = ("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None,
                 device=None, dtype=None, qconfig=None):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, device=device, dtype=dtype)
        _check_qconfig(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})
        if _weight is not None:
            self.weight = _weight

    def forward(self, input):
        rows = self.weight_fake_quant(self.weight)
        return nn.functional.embedding(input, rows, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The form for training of a float layer that has a qconfig, with its rows."""
        return _from_float(cls, mod, cls._NAMES)

    def to_float(self):
        """The float layer, with the rows as they are."""
        return _to_float(self, self._NAMES)


class EmbeddingBag(nn.EmbeddingBag):
    """nn.EmbeddingBag whose rows pass through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = nn.EmbeddingBag
    _BEFORE = ("num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse")
    _AFTER = ("include_last_offset", "padding_idx")

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False, _weight=None,
                 include_last_offset=False, padding_idx=None, qconfig=None, device=None, dtype=None):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, include_last_offset, padding_idx,
                         device=device, dtype=dtype)  # fmt: skip
        _check_qconfig(qconfig, "Embedding Bag")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})
        if _weight is not None:
            self.weight = _weight

    def forward(self, input, offsets=None, per_sample_weights=None):
        rows = self.weight_fake_quant(self.weight)
        return nn.functional.embedding_bag(
            input, rows, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The form for training of a float layer that has a qconfig, with its rows."""
        check_source(cls, mod)
        return cls(
            *(getattr(mod, name) for name in cls._BEFORE), mod.weight, *(getattr(mod, name) for name in cls._AFTER), qconfig=mod.qconfig, device=mod.weight.device,
        )  # fmt: skip

    def to_float(self):
        """The float layer, with the rows as they are."""
        made = nn.EmbeddingBag(*(getattr(self, name) for name in self._BEFORE), None, *(getattr(self, name) for name in self._AFTER))
        made.weight = nn.Parameter(self.weight.detach())
        made.train(self.training)
        return made
