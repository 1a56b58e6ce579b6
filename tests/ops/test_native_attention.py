"""_native_multi_head_attention and _transformer_encoder_layer_fwd, which scripts of PyTorch call, against NumPy."""

import cresset
import numpy as np
import pytest

N, L, E, HEADS = 2, 3, 8, 2
RNG = np.random.default_rng(0)
QKV, QKV_BIAS, PROJECT, PROJECT_BIAS = (RNG.normal(size=s) for s in ((3 * E, E), 3 * E, (E, E), E))
X = RNG.normal(size=(N, L, E))
FUTURE = np.triu(np.ones((L, L), bool), 1)
PADDING = np.array([[0, 0, 1], [0, 1, 1]], bool)
ANY = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]], bool) & np.ones((N, HEADS, L, L), bool)


def tensors(*arrays):
    return [cresset.from_numpy(np.asarray(a)) for a in arrays]


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads(x):
    return x.reshape(N, L, HEADS, E // HEADS).transpose(0, 2, 1, 3)


def attention(x, excluded=None):
    q, k, v = (heads(x @ w.T + b) for w, b in zip(np.split(QKV, 3), np.split(QKV_BIAS, 3)))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(E // HEADS)
    weights = softmax(scores if excluded is None else np.where(excluded, -np.inf, scores))
    return (weights @ v).transpose(0, 2, 1, 3).reshape(N, L, E) @ PROJECT.T + PROJECT_BIAS, weights


def call(x=X, mask=None, mask_type=None, embed=E, n_heads=HEADS, qkv=QKV, qkv_bias=QKV_BIAS, key=None, **options):
    x, qkv, qkv_bias, project, project_bias = tensors(x, qkv, qkv_bias, PROJECT, PROJECT_BIAS)
    key = x if key is None else tensors(key)[0]
    mask = None if mask is None else tensors(mask)[0]
    return cresset._native_multi_head_attention(
        x, key, key, embed, n_heads, qkv, qkv_bias, project, project_bias, mask, mask_type=mask_type, **options
    )


MASKS = {
    "none": (None, None, None),
    "future": (FUTURE, 0, FUTURE),
    "numbers": (np.where(FUTURE, -np.inf, 0.0), 0, FUTURE),
    "padding": (PADDING, 1, PADDING[:, None, None]),
    "every score": (ANY, 2, ANY),
    "the shape says it": (ANY, None, ANY),
}


@pytest.mark.parametrize("name", MASKS)
def test_attention(name):
    mask, kind, excluded = MASKS[name]
    want, weights = attention(X, excluded)
    got, mean = call(mask=mask, mask_type=kind)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    np.testing.assert_allclose(mean.numpy(), weights.mean(1), atol=1e-12)
    np.testing.assert_allclose(
        call(mask=mask, mask_type=kind, average_attn_weights=False)[1].numpy(), weights, atol=1e-12
    )
    assert call(mask=mask, mask_type=kind, need_weights=False)[1] is None


def normed(x, weight, bias):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_encoder_layer(name, norm_first):
    mask, kind, excluded = MASKS[name]
    norms = RNG.normal(size=(4, E))
    feed = [RNG.normal(size=s) for s in ((16, E), 16, (E, 16), E)]

    def forward(x):
        return np.maximum(x @ feed[0].T + feed[1], 0) @ feed[2].T + feed[3]

    if norm_first:
        want = X + attention(normed(X, *norms[:2]), excluded)[0]
        want = want + forward(normed(want, *norms[2:]))
    else:
        want = normed(X + attention(X, excluded)[0], *norms[:2])
        want = normed(want + forward(want), *norms[2:])
    weights = tensors(QKV, QKV_BIAS, PROJECT, PROJECT_BIAS)
    mask = None if mask is None else tensors(mask)[0]
    arguments = (*tensors(X), E, HEADS, *weights, False, norm_first, 1e-5, *tensors(*norms, *feed), mask, kind)
    np.testing.assert_allclose(cresset._transformer_encoder_layer_fwd(*arguments).numpy(), want, atol=1e-11)
    gelu = cresset._transformer_encoder_layer_fwd(*arguments[:7], True, *arguments[8:])
    assert not np.allclose(gelu.numpy(), want)


WRONG = {
    "expected 3-D `query`, got 2-D tensor": dict(x=X[0]),
    "passed-in embed_dim 6 didn't match last dim of query 8": dict(embed=6),
    "`embed_dim` must divide evenly by `num_heads`": dict(n_heads=3),
    "expected `query`/`key`/`value` shapes to match": dict(key=X[:, :2]),
    "expected `qkv_weight` first dim to be 3x embed_dim": dict(qkv=QKV[1:]),
    "expected `qkv_weight` second dim to be embed_Dim": dict(qkv=QKV[:, 1:]),
    "expected 1-D `qkv_bias`, got 2-D tensor": dict(qkv_bias=QKV_BIAS[None]),
    "expected `qkv_bias` first dim and first dim of query to be equal": dict(qkv_bias=QKV_BIAS[1:]),
    "Mask Type should be defined": dict(mask=FUTURE),
    "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)": dict(mask=FUTURE, mask_type=3),
    "For mask_type == 0 mask shape should be (L, L)": dict(mask=PADDING, mask_type=0),
    "For mask_type == 1 mask shape should be (B, L)": dict(mask=FUTURE, mask_type=1),
    "For mask_type == 2 mask shape should match input shape": dict(mask=FUTURE, mask_type=2),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_arguments(words):
    with pytest.raises(RuntimeError) as caught:
        call(**WRONG[words])
    assert words in str(caught.value)


def test_no_gradient():
    x = cresset.from_numpy(X).requires_grad_()
    y = cresset._native_multi_head_attention(x, x, x, E, HEADS, *tensors(QKV, QKV_BIAS, PROJECT, PROJECT_BIAS))[0]
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented"):
        y.sum().backward()
