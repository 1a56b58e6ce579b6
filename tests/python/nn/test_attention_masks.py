"""Masks of multi-head attention: with and without weights as a result, alone and together, the values are the same."""

import itertools
import math

import cresset
import cresset.nn.functional as F
import pytest
from cresset import nn


@pytest.mark.parametrize("attn, padded, batched", list(itertools.product([None, "2d", "3d"], [False, True], [False, True])))
def test_results_do_not_depend_on_need_weights(attn, padded, batched):
    cresset.manual_seed(0)
    heads, length, source, batch = 2, 3, 4, 2 if batched else 1
    layer = nn.MultiheadAttention(4, heads)
    q, k = cresset.randn(length, batch, 4), cresset.randn(source, batch, 4)
    mask = {None: None, "2d": cresset.randn(length, source), "3d": cresset.randn(batch * heads, length, source)}[attn]
    padding = cresset.zeros(batch, source).masked_fill_(cresset.arange(source) == source - 1, float("-inf")) if padded else None
    if not batched:
        q, k, padding = q.squeeze(1), k.squeeze(1), padding.squeeze(0) if padded else None
    plain, none = layer(q, k, k, attn_mask=mask, key_padding_mask=padding, need_weights=False)
    weighed, weights = layer(q, k, k, attn_mask=mask, key_padding_mask=padding)
    assert none is None and weights is not None
    cresset.testing.assert_close(plain, weighed)


@pytest.mark.parametrize("batch_first", [False, True])
def test_an_encoder_layer_takes_padding_alone(batch_first):
    cresset.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=batch_first)
    x = cresset.randn(2, 3, 4)
    padding = cresset.tensor([[False, False, True]] * 2 if batch_first else [[False, True]] * 3)
    out = layer(x, src_key_padding_mask=padding)
    changed = x.clone()
    (changed if batch_first else changed.transpose(0, 1))[:, -1] += 1  # what is masked reaches nothing else
    again = layer(changed, src_key_padding_mask=padding)
    kept = (slice(None), slice(-1)) if batch_first else (slice(-1),)
    cresset.testing.assert_close(out[kept], again[kept])


# PyTorch 2.13's answers.
def test_canonical_masks():
    own, f = F._canonical_mask, cresset.float32
    marks = cresset.tensor([True, False])
    assert own(marks, "m", f, "o", f).tolist() == own(marks, "m", cresset.bool, "o", f, check_other=False).tolist() == [-math.inf, 0]
    assert own(None, "m", None, "o", f) is None
    with pytest.warns(UserWarning, match="Support for mismatched m and o is deprecated. Use same type for both instead."):
        assert own(cresset.tensor([1.0, 0.0]), "m", cresset.bool, "o", f).tolist() == [1, 0]
    with pytest.raises(AssertionError, match="^only bool and floating types of m are supported$"):
        own(cresset.tensor([1, 0]), "m", None, "o", f)
    assert F._none_or_dtype(None) is None and F._none_or_dtype(marks) == cresset.bool
    with pytest.raises(RuntimeError, match="must be None or torch.Tensor"):
        F._none_or_dtype(3)
