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


def test_forms_of_attention_may_be_chosen():
    """MATH and FLASH_ATTENTION are there on processors, as in PyTorch; the settings hold in the block."""
    from cresset.backends import cuda
    from cresset.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel

    cresset.manual_seed(0)
    q = cresset.randn(1, 2, 3, 4)
    want = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    flash, math_form = SDPBackend.FLASH_ATTENTION, SDPBackend.MATH
    for chosen in (flash, math_form, [flash], [SDPBackend.CUDNN_ATTENTION, flash], [math_form, flash]):
        with sdpa_kernel(chosen):
            assert cresset.equal(F.scaled_dot_product_attention(q, q, q, is_causal=True), want)
            wanted = chosen if isinstance(chosen, list) else [chosen]
            assert sorted(_cur_sdpa_kernel_backends()) == sorted(wanted)
            assert (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled()) == (flash in wanted, False)
    with sdpa_kernel(flash), pytest.raises(ZeroDivisionError), sdpa_kernel(math_form):
        1 / 0  # noqa: B018
    assert cuda.flash_sdp_enabled() and cuda.cudnn_sdp_enabled()
    for chosen in (SDPBackend.EFFICIENT_ATTENTION, [SDPBackend.CUDNN_ATTENTION], []):
        with pytest.raises(RuntimeError, match="No viable backend for scaled_dot_product_attention was found"), sdpa_kernel(chosen):
            pass
    with pytest.raises(AssertionError, match="must be an instance of SDPBackend or a list of SDPBackend instances, got int"), sdpa_kernel(3):
        pass


def test_missing_weights_are_named():
    x = cresset.ones(2, 1, 4)
    arguments = (x, x, x, 4, 2, None, None, None, None, False, 0.0, cresset.eye(4), None)
    with pytest.raises(AssertionError, match="use_separate_proj_weight is False but in_proj_weight is None"):
        F.multi_head_attention_forward(*arguments)
    with pytest.raises(AssertionError, match="use_separate_proj_weight is True but k_proj_weight is None"):
        F.multi_head_attention_forward(*arguments, use_separate_proj_weight=True, q_proj_weight=cresset.eye(4))


def test_masks_are_named_where_they_are_given():
    x = cresset.ones(2, 3, 4)
    layer = nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)
    stack = nn.TransformerEncoder(layer, 1)
    floats, bools = nn.Transformer.generate_square_subsequent_mask(3), cresset.zeros(2, 3, dtype=cresset.bool)
    for call, words in (
        (lambda: layer(x, src_mask=floats, src_key_padding_mask=bools), "mismatched src_key_padding_mask and src_mask is deprecated"),
        (lambda: stack(x, mask=floats, src_key_padding_mask=bools), "mismatched src_key_padding_mask and mask is deprecated"),
    ):
        with pytest.warns(UserWarning, match=words) as seen:
            call()
        assert len(seen) == 1
    with pytest.raises(AssertionError, match="only bool and floating types of src_mask are supported"):
        layer(x, src_mask=floats.long())
    with pytest.raises(RuntimeError, match="You may use the Transformer module method `generate_square_subsequent_mask` to create this mask"):
        layer(x, is_causal=True)
    with pytest.raises(RuntimeError, match="query.dtype: float key.dtype: double and value.dtype: float instead"):
        F.scaled_dot_product_attention(x, x.double(), x)
