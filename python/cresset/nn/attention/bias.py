"""Causal masks for attention between sequences of different lengths, as objects that scaled_dot_product_attention takes."""

from enum import IntEnum, auto

import cresset

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """Which corner of the matrix the diagonal begins in: queries and keys are aligned at their starts, or at their ends."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(cresset.Tensor):
    """A mask [seq_len_q, seq_len_kv] whose values are made when they are asked for; attention with it is `is_causal` where that is the same."""

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        return cresset.Tensor._make_subclass(cls, cls._mask(variant, seq_len_q, seq_len_kv, None), False)

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: a CausalVariant was required; given: {variant!r}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    @staticmethod
    def _mask(variant, seq_len_q, seq_len_kv, device):
        diagonal = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        return cresset.ones(seq_len_q, seq_len_kv, device=device, dtype=cresset.bool).tril(diagonal)

    def _materialize(self, device=None):
        """The mask as an ordinary tensor of bools."""
        return self._mask(self.variant, self.seq_len_q, self.seq_len_kv, device)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        attention = cresset.nn.functional.scaled_dot_product_attention
        if func is attention or getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._attend(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    @staticmethod
    def _attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        attention = cresset.nn.functional.scaled_dot_product_attention
        rest = dict(dropout_p=dropout_p, scale=scale, enable_gqa=enable_gqa)
        if attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return attention(query, key, value, is_causal=True, **rest)
        return attention(query, key, value, attn_mask=attn_mask._materialize(query.device), **rest)

    def __repr__(self):
        return repr(self._materialize())


def _two(size):
    if len(size) != 2:
        raise AssertionError("causal masks: two sizes (of queries and of keys) were required")
    return size


def causal_upper_left(*size):
    """The mask in which query i looks at keys 0 … i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size))


def causal_lower_right(*size):
    """The mask in which the last query looks at all keys, the one before at all but one, and so on."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size))
