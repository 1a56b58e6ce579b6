"""Older spellings that programs still use: orders of arguments, functions in place, several tensors at once, pieces that change alone."""

import warnings

import cresset
import pytest

A, B, C = cresset.ones(3), cresset.full((3,), 2.0), cresset.full((3,), 3.0)
V, M, BATCH = cresset.ones(2), cresset.ones(2, 2), cresset.ones(1, 2, 2)

# (older call, the same in today's words)
CALLS = {
    "add": (lambda: cresset.add(A, 2.5, B), lambda: cresset.add(A, B, alpha=2.5)),
    "Tensor.add": (lambda: A.add(2, B), lambda: A.add(B, alpha=2)),
    "Tensor.add_": (lambda: A.clone().add_(2, B), lambda: A.add(B, alpha=2)),
    "add out": (lambda: cresset.add(A, 2, B, out=cresset.zeros(3)), lambda: A.add(B, alpha=2)),
    "sub": (lambda: cresset.sub(A, 2, B), lambda: cresset.sub(A, B, alpha=2)),
    "addcmul": (lambda: cresset.addcmul(A, 2, B, C), lambda: cresset.addcmul(A, B, C, value=2)),
    "Tensor.addcmul_": (lambda: A.clone().addcmul_(2, B, C), lambda: cresset.addcmul(A, B, C, value=2)),
    "addcdiv": (lambda: cresset.addcdiv(A, 2, B, C), lambda: cresset.addcdiv(A, B, C, value=2)),
    "addmm": (lambda: cresset.addmm(2, M, M, M), lambda: cresset.addmm(M, M, M, beta=2)),
    "addmm with alpha": (lambda: cresset.addmm(2, M, 3, M, M), lambda: cresset.addmm(M, M, M, beta=2, alpha=3)),
    "Tensor.addmm": (lambda: M.addmm(2, 3, M, M), lambda: cresset.addmm(M, M, M, beta=2, alpha=3)),
    "Tensor.addmm_": (lambda: M.clone().addmm_(2, M, M), lambda: cresset.addmm(M, M, M, beta=2)),
    "addmv": (lambda: cresset.addmv(2, V, 3, M, V), lambda: cresset.addmv(V, M, V, beta=2, alpha=3)),
    "addr": (lambda: cresset.addr(2, M, V, V), lambda: cresset.addr(M, V, V, beta=2)),
    "addbmm": (lambda: cresset.addbmm(2, M, 3, BATCH, BATCH), lambda: cresset.addbmm(M, BATCH, BATCH, beta=2, alpha=3)),
    "baddbmm": (lambda: BATCH.baddbmm(2, BATCH, BATCH), lambda: cresset.baddbmm(BATCH, BATCH, BATCH, beta=2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_order(name):
    older, today = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cresset.equal(older(), today())


def test_an_older_order_warns_once():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            cresset.Tensor.addcdiv_(cresset.ones(3), 2, B, C)
    assert len(seen) <= 1 and all("This overload of addcdiv_ is deprecated" in str(w.message) for w in seen)


def test_errors_show_todays_orders_alone():
    with pytest.raises(TypeError) as caught:
        cresset.add(A, "two", B)
    assert "Number alpha, Tensor other" not in str(caught.value)


def test_functions_in_place():
    x = cresset.tensor([-1.0, 0.0, 2.0])
    assert cresset.clamp_min_(x, 0) is x and x.tolist() == [0.0, 0.0, 2.0]
    assert cresset.clamp_max_(x, cresset.ones(3)) is x and x.tolist() == [0.0, 0.0, 1.0]
    assert cresset.gcd_(cresset.tensor([4]), cresset.tensor([6])).tolist() == [2]
    assert cresset.addmv_(cresset.zeros(2), M, V).tolist() == [2.0, 2.0]
    assert not hasattr(cresset, "add_")


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_atleast(dims):
    f = getattr(cresset, f"atleast_{dims}d")
    x, y = cresset.tensor(1.0), cresset.ones(2)
    assert f(x).dim() == dims
    assert [t.shape for t in f(x, y)] == [t.shape for t in f([x, y])] == [f(x).shape, f(y).shape]
    assert f() == ()


@pytest.mark.parametrize("split", [lambda t: t.unsafe_chunk(2), lambda t: cresset.unsafe_split(t, 2), lambda t: t.unsafe_split_with_sizes([2, 2])])
def test_pieces_change_alone(split):
    """A piece that is changed does not spoil what was saved of the others, and its gradient arrives."""
    leaf = cresset.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    whole = leaf * 1
    first, second = split(whole)
    kept = second * second
    first.mul_(3)
    assert (first._version, second._version, whole._version) == (1, 0, 0)
    assert first._base is None
    (kept.sum() + first.sum()).backward()
    assert leaf.grad.tolist() == [3.0, 3.0, 6.0, 8.0]
    # The memory is shared all the same.
    assert whole.tolist() == [3.0, 6.0, 3.0, 4.0]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("sizes", [(5, 0), (0, 3)], ids=["no batch", "no steps"])
def test_attention_on_nothing(batch_first, need_weights, training, sizes):
    length, batch = sizes
    layer = cresset.nn.MultiheadAttention(4, 2, batch_first=batch_first).train(training)
    shape = (batch, length, 4) if batch_first else (length, batch, 4)
    x = cresset.zeros(shape)
    result, weights = layer(x, x, x, need_weights=need_weights)
    assert tuple(result.shape) == shape
    assert (tuple(weights.shape) == (batch, length, length)) if need_weights else weights is None


def test_encoder_layer_on_nothing():
    for training in (False, True):
        layer = cresset.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).train(training)
        assert tuple(layer(cresset.zeros(0, 3, 4)).shape) == (0, 3, 4)


def test_every_mask_of_bytes_warns():
    mask, y = cresset.zeros(10, dtype=cresset.uint8), cresset.ones(10, 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.index_put_((mask,), y[mask], accumulate=True)
    assert [str(w.message) for w in caught] == ["indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."] * 2
