"""Resizing, grid sampling, unpooling and embedding bags against the definitions written in NumPy."""

import cresset
import numpy as np
import pytest
from cresset.nn import functional as F

RNG = np.random.default_rng(3)


def tensor(*shape):
    return cresset.from_numpy(RNG.standard_normal(shape))


def resample_matrix(mode, n, out, align):
    """The out x n matrix of one dimension."""
    m = np.zeros((out, n))
    for o in range(out):
        if mode == "nearest":
            m[o, min(int(o * n / out), n - 1)] = 1
            continue
        if mode == "nearest-exact":
            m[o, min(int((o + 0.5) * n / out), n - 1)] = 1
            continue
        x = o * (n - 1) / (out - 1) if align and out > 1 else 0.0 if align else (o + 0.5) * n / out - 0.5
        if mode == "linear":
            x = max(x, 0)
            low = min(int(x), n - 1)
            m[o, low] += 1 - (x - low)
            m[o, min(low + 1, n - 1)] += x - low
        else:  # cubic convolution, a = -0.75
            low = int(np.floor(x))
            for k in range(low - 1, low + 3):
                d, a = abs(x - k), -0.75
                w = (a + 2) * d**3 - (a + 3) * d**2 + 1 if d <= 1 else a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
                m[o, np.clip(k, 0, n - 1)] += w
    return m


MODES = [("nearest", False), ("nearest-exact", False), ("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True)]


@pytest.mark.parametrize("mode, align", MODES)
@pytest.mark.parametrize("size", [(7, 5), (2, 3), (4, 6), (1, 1)])
def test_interpolate(mode, align, size):
    x = tensor(2, 3, 4, 6)
    kind = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    rows, columns = (resample_matrix(kind, n, o, align) for n, o in zip((4, 6), size))
    want = np.einsum("ai,bj,ncij->ncab", rows, columns, x.numpy())
    got = F.interpolate(x, size, mode=mode, align_corners=None if mode.startswith("nearest") else align)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


def test_interpolate_antialias_shrinks_by_means():
    # A triangle of radius 2 over pixels 2 wide: weights 1/8, 3/8, 3/8, 1/8 inside the image.
    x = tensor(1, 1, 1, 8)
    got = F.interpolate(x, (1, 4), mode="bilinear", antialias=True).numpy()[0, 0, 0]
    v = x.numpy()[0, 0, 0]
    np.testing.assert_allclose(got[1], v[1:5] @ [0.125, 0.375, 0.375, 0.125])
    np.testing.assert_allclose(got[0], v[:3] @ (np.array([3, 3, 1]) / 7))


def test_interpolate_scale_factor_places_samples():
    x = cresset.arange(4.0).reshape(1, 1, 4)
    by_factor = F.interpolate(x, scale_factor=1.6, mode="linear")  # positions follow the factor ...
    by_size = F.interpolate(x, scale_factor=1.6, mode="linear", recompute_scale_factor=True)  # ... or the sizes 4 -> 6
    place = np.arange(6) + 0.5
    for got, step in ((by_factor, 1 / 1.6), (by_size, 4 / 6)):
        np.testing.assert_allclose(got.numpy()[0, 0], np.clip(place * step - 0.5, 0, 3), rtol=1e-6)


def test_bytes_are_rounded():
    x = cresset.tensor([[[[0, 255], [255, 0]]]], dtype=cresset.uint8)
    got = F.interpolate(x, (1, 3), mode="bilinear")
    assert got.dtype == cresset.uint8 and got.tolist() == [[[[128, 128, 128]]]]


def test_grid_sample_reads_pixels():
    x = cresset.arange(6.0).reshape(1, 1, 2, 3)
    # With aligned corners -1, 0, 1 are the columns' centres.
    grid = cresset.tensor([[[[-1.0, -1.0], [0.0, 1.0], [1.0, 0.0], [3.0, 0.0]]]])
    assert F.grid_sample(x, grid, align_corners=True).flatten().tolist() == [0.0, 4.0, 3.5, 0.0]
    assert F.grid_sample(x, grid, padding_mode="border", align_corners=True).flatten().tolist()[3] == 3.5
    # 3 lies one width behind the last column: reflected onto the first.
    assert F.grid_sample(x, grid, padding_mode="reflection", align_corners=True).flatten().tolist()[3] == 1.5


@pytest.mark.parametrize("align", [False, True])
def test_identity_affine_grid_is_no_change(align):
    for shape in ((2, 3, 4, 5), (1, 2, 3, 4, 2)):
        n = len(shape) - 2
        theta = cresset.cat([cresset.eye(n), cresset.zeros(n, 1)], 1).double().expand(shape[0], n, n + 1)
        x = tensor(*shape)
        np.testing.assert_allclose(F.grid_sample(x, F.affine_grid(theta, shape, align), align_corners=align).numpy(), x.numpy(), atol=1e-12)


def test_unpooling_undoes_pooling():
    x = tensor(2, 3, 6, 8)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, indices, 2)
    keep = back != 0
    assert int(keep.sum()) == values.numel()
    np.testing.assert_array_equal(back[keep].numpy(), x[keep].numpy())
    assert F.max_unpool2d(values, indices, 2, output_size=(7, 9)).shape == (2, 3, 7, 9)
    with pytest.raises(ValueError, match="invalid output_size"):
        F.max_unpool2d(values, indices, 2, output_size=(9, 8))
    with pytest.raises(RuntimeError, match="Found an invalid max index"):
        F.max_unpool2d(values, indices + 48, 2)


def test_fractional_pooling_windows():
    x = cresset.arange(49.0).reshape(1, 1, 7, 7)
    # alpha = 5/2: columns (u = 0.3) begin at 0, 3, 5 and rows (u = 0.9) at 0, 2, 5.
    values, indices = F.fractional_max_pool2d(
        x, 2, output_size=3, return_indices=True, _random_samples=cresset.tensor([[[0.3, 0.9]]])
    )
    want = [[7 * (r + 1) + c + 1 for c in (0, 3, 5)] for r in (0, 2, 5)]
    assert values[0, 0].tolist() == want and indices[0, 0].tolist() == want


def test_embedding_bag_modes():
    weight, indices, offsets = tensor(6, 2), cresset.tensor([1, 2, 4, 5, 4, 3]), cresset.tensor([0, 2, 2, 5])
    w = weight.numpy()
    bags = [[1, 2], [], [4, 5, 4], [3]]
    zero = np.zeros(2)
    for mode, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        want = [f(w[b], axis=0) if b else zero for b in bags]
        np.testing.assert_allclose(F.embedding_bag(indices, weight, offsets, mode=mode).numpy(), want)
    factors = tensor(6)
    want = [sum((factors.numpy()[i] * w[indices[i]] for i in range(a, b)), zero) for a, b in ((0, 2), (2, 2), (2, 5), (5, 6))]
    np.testing.assert_allclose(F.embedding_bag(indices, weight, offsets, mode="sum", per_sample_weights=factors).numpy(), want)
    padded = F.embedding_bag(indices, weight, offsets, mode="mean", padding_idx=4)
    np.testing.assert_allclose(padded[2].numpy(), w[5])
    two = F.embedding_bag(indices.reshape(2, 3), weight, mode="sum").numpy()
    np.testing.assert_allclose(two, [w[[1, 2, 4]].sum(0), w[[5, 4, 3]].sum(0)])
    with pytest.raises(RuntimeError, match="not in the valid range"):
        F.embedding_bag(indices + 3, weight.float(), offsets)
    for wrong, said in ((indices + 3, 7), (indices - 5, -4)):
        for table, options in ((weight, {}), (weight.float(), {"mode": "max"}), (weight.float(), {"padding_idx": 0})):
            with pytest.raises(RuntimeError, match=f"Expected idx >= 0 && idx < num_embeddings but found idx to be {said}"):
                F.embedding_bag(wrong, table, offsets, **options)
    with pytest.raises(RuntimeError, match="offsets.0. has to be 0"):
        F.embedding_bag(indices, weight, offsets + 1)


def ctc_by_enumeration(probabilities, target, blank=0):
    """Minus the log of the summed probability of all paths that collapse to the target."""
    time, labels = probabilities.shape
    total = 0.0
    for path in np.ndindex(*[labels] * time):
        collapsed = [p for i, p in enumerate(path) if p != blank and (i == 0 or p != path[i - 1])]
        if collapsed == list(target):
            total += np.prod([probabilities[i, p] for i, p in enumerate(path)])
    return -np.log(total)


@pytest.mark.parametrize("target", [(1, 2), (1, 1), (2,), ()])
def test_ctc_loss_sums_paths(target):
    logits = tensor(5, 1, 3)
    log_probs = logits.log_softmax(-1)
    got = F.ctc_loss(log_probs, cresset.tensor([list(target) or [0]]), (5,), (len(target),), reduction="none")
    np.testing.assert_allclose(got.item(), ctc_by_enumeration(log_probs.exp().numpy()[:, 0], target))


def test_ctc_loss_gradient_for_logits():
    logits = tensor(4, 2, 3).requires_grad_()
    targets, lengths = cresset.tensor([[1, 2], [2, 0]]), ((4, 3), (2, 1))

    def loss(x):
        return F.ctc_loss(x.log_softmax(-1), targets, *lengths, reduction="sum")

    loss(logits).backward()
    for place in np.ndindex(4, 2, 3):
        step = np.zeros((4, 2, 3))
        step[place] = 1e-5
        step = cresset.from_numpy(step)
        slope = (loss(logits.detach() + step) - loss(logits.detach() - step)) / 2e-5
        assert abs(logits.grad[place].item() - slope.item()) < 1e-8


def test_impossible_ctc_targets():
    log_probs = tensor(2, 1, 3).log_softmax(-1).requires_grad_()
    target = cresset.tensor([[1, 1]])  # needs three steps
    assert F.ctc_loss(log_probs, target, (2,), (2,), reduction="sum").item() == float("inf")
    loss = F.ctc_loss(log_probs, target, (2,), (2,), reduction="sum", zero_infinity=True)
    loss.backward()
    assert loss.item() == 0 and bool((log_probs.grad == 0).all())
    with pytest.raises(IndexError, match="target 7 is out of range"):
        F.ctc_loss(log_probs, cresset.tensor([[7, 1]]), (2,), (2,))


def test_attention_without_visible_keys_is_zero():
    q = tensor(1, 1, 2, 4).requires_grad_()
    mask = cresset.tensor([[True, True], [False, False]])
    out = F.scaled_dot_product_attention(q, q, q, mask)
    assert out[0, 0, 1].tolist() == [0.0] * 4
    (grad,) = cresset.autograd.grad(out.sum(), q)
    assert bool(cresset.isfinite(grad).all())


def test_linear_cross_entropy_is_both():
    x, w, b, target = tensor(4, 3), tensor(5, 3), tensor(5), cresset.tensor([0, 4, 2, 1])
    want = F.cross_entropy(x @ w.T + b, target, label_smoothing=0.1)
    got = F.linear_cross_entropy(
        x, w, target, linear_bias=b, label_smoothing=0.1, options=cresset.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    )
    np.testing.assert_allclose(got.item(), want.item())
    with pytest.raises(RuntimeError, match="expected linear_bias shape"):
        F.linear_cross_entropy(x, w, target, linear_bias=b[:4])


def test_tables_without_values_take_indices_from_anywhere():
    table, indices, offsets = cresset.empty(10, 3, device="meta"), cresset.tensor([1, 2, 4, 5]), cresset.tensor([0, 2])
    for made, shape in ((F.embedding(indices, table), (4, 3)), (F.embedding(indices[None], table), (1, 4, 3)), (F.embedding_bag(indices, table, offsets), (2, 3))):
        assert made.is_meta and made.shape == shape
    with pytest.raises(RuntimeError, match="input on cpu was required; got meta."):
        cresset.embedding_bag(cresset.ones(10, 3), indices.to("meta"), offsets)
