"""Corners that the samples of the table do not show; expected values are PyTorch's."""

import functools
import math

import cresset
import numpy as np
import pytest


def test_diff_of_order_zero_is_the_input():
    x, row = cresset.arange(6.0).view(2, 3), cresset.ones(1, 3)
    assert cresset.diff(x, 0, 0, prepend=row, append=row).equal(x)


def test_prelu_of_a_number():
    x = cresset.tensor(-2.0, requires_grad=True)
    y = cresset.nn.functional.prelu(x, cresset.tensor([0.25]))
    y.backward()
    assert y.shape == () and y.item() == -0.5 and x.grad.item() == 0.25


def test_lerp_with_a_complex_weight():
    x = cresset.zeros(1, dtype=cresset.complex64, requires_grad=True)
    end = cresset.ones(1, dtype=cresset.complex64, requires_grad=True)
    y = cresset.lerp(x, end, 0.5j)
    cresset.view_as_real(y).sum().backward()
    assert y.item() == 0.5j
    assert x.grad.item() == (1 + 1j) * (1 + 0.5j) and end.grad.item() == (1 + 1j) * -0.5j


# The calls below differed from PyTorch once; recorded from it: (call, result).
RECORDED = [
    (
        lambda: cresset.addr(cresset.tensor([[True, False]]), cresset.tensor([True]), cresset.tensor([False, True]), beta=3, alpha=2),
        [[True, True]],
    ),
    (
        lambda: cresset.linspace(8, -1, 22, dtype=cresset.int64),
        [8, 7, 7, 6, 6, 5, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 0, 0, 0, 0, -1],
    ),
    (lambda: cresset.linspace(-16.5, 10.9, 7, dtype=cresset.int16), [-16, -11, -7, -2, 1, 5, 10]),
    (lambda: cresset.logspace(0, 4.3, 7, dtype=cresset.int64), [1, 4, 21, 100, 464, 2154, 10000]),
    (lambda: cresset.linalg.vander(cresset.tensor(2.0), N=3), [[1.0, 2.0, 4.0]]),
    (lambda: cresset.linalg.vander(cresset.tensor([2.0]), N=3), [[1.0, 2.0, 4.0]]),
    (
        lambda: cresset.tensordot(cresset.ones(1, 2, dtype=cresset.int8), cresset.full((2, 1), 100, dtype=cresset.int8), 1),
        [[-56]],
    ),
    (lambda: cresset.tensor([2, 4]).__rdiv__(3), [1.5, 0.75]),
    (lambda: cresset.tensor([2, 4]).__div__(4), [0.5, 1.0]),
    (lambda: cresset.einsum("ij,j->i", cresset.ones(2, 3), cresset.ones(3)), [3.0, 3.0]),
    (lambda: cresset.ones(0).view(0, 2**62, 4).shape, [0, 2**62, 4]),
    (lambda: cresset.ones(*[1] * 64).squeeze(63).dim() + cresset.zeros(1), [63.0]),
]


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_recorded_result(number):
    call, result = RECORDED[number]
    got = call()
    assert (got.tolist() if isinstance(got, cresset.Tensor) else list(got)) == result


def test_pivots_are_checked_before_anything_is_written():
    out = cresset.zeros(3, 2)
    with pytest.raises(RuntimeError, match="Pivots given to ldl_solve must all satisfy"):
        cresset.linalg.ldl_solve(cresset.eye(3), cresset.tensor([1, 2, 9], dtype=cresset.int32), cresset.ones(3, 2), out=out)
    assert out.tolist() == [[0, 0]] * 3


F, HALF, ONE = cresset.nn.functional, cresset.tensor([0.5]), cresset.ones(1)
# (call, class, words)
REFUSED = [
    (lambda: cresset.nn.functional.softshrink(cresset.ones(1), -0.5), RuntimeError, r"lambda must be in range \[0, 3.40282e\+38\]"),
    (lambda: cresset.nn.functional.softshrink(cresset.ones(1).half(), 7e4), RuntimeError, r"lambda must be in range \[0, 65504\]"),
    (lambda: cresset.cumsum(cresset.tensor([True]), 0, dtype=cresset.bool), NotImplementedError, "cumsum_out_cpu"),
    (lambda: cresset.cumprod(cresset.tensor([True]), 0, dtype=cresset.bool), NotImplementedError, "cumprod_out_cpu"),
    (lambda: cresset.ones(*[1] * 65), RuntimeError, "only tensors with up to 64 dims are supported; 65 were asked for"),
    (lambda: cresset.ones(*[1] * 64).unsqueeze(0), RuntimeError, "only tensors with up to 64 dims are supported; 65 were asked for"),
    (lambda: cresset.ones(1).expand([1] * 65), RuntimeError, "only tensors with up to 64 dims are supported; 65 were asked for"),
    (lambda: cresset.ones(1).as_strided([1] * 65, [1] * 65), RuntimeError, "only tensors with up to 64 dims are supported; 65 were"),
    (lambda: cresset.ones(1).resize_([1] * 65), RuntimeError, "only tensors with up to 64 dims are supported; 65 were asked for"),
    (lambda: cresset.from_numpy(np.ones([1] * 32)).view([1] * 65), RuntimeError, "only tensors with up to 64 dims are supported"),
    (lambda: cresset.empty(2**62, 4, 0), RuntimeError, r"Storage size calculation overflowed with sizes=\[4611686018427387904, 4, 0\]"),
    (lambda: cresset.ops.aten.col2im(cresset.ones(6, 2), [0, 4], [4, 2**62], [2, 1], [1, 0], [2, 2]), RuntimeError,
     "Given kernel_width = 4611686018427387904 and kernel_height = 4 the product of kernel_width and kernel_height overflowed."),
    (lambda: cresset.nn.functional.unfold(cresset.ones(1, 1, 4, 4), 2, dilation=2**40), RuntimeError, "dilation should be at most 2147483647"),
    (lambda: cresset.nn.functional.avg_pool2d(cresset.ones(1, 1, 4, 4), 2**40), RuntimeError, "value cannot be converted to type int without"),
    (lambda: cresset.nn.functional.max_pool2d(cresset.ones(1, 1, 4, 4), 2, dilation=2**40), RuntimeError, "value cannot be converted to type int"),
    (lambda: cresset.ops.aten.col2im(cresset.ones(6, 2), [2**63 - 1, 4], [2, 1], [2, 1], [1, 0], [2, 2]), RuntimeError, "overflowed"),
    (lambda: cresset.ones(1).expand(2**32, 2**32), RuntimeError, "numel: integer multiplication overflow"),
    (lambda: cresset.conv1d(cresset.ones(1, 1, 3), cresset.ones(1, 1, 2), padding=2**62), RuntimeError,
     "Given padding=4611686018427387904 at dimension 0 , expected padding to be at most 4611686018427387903"),
    (lambda: (lambda x: cresset.sub(cresset.ones(2, 2), x, out=x))(cresset.ones(2)), RuntimeError, r"doesn't match the broadcast shape \[2, 2\]"),
    (lambda: (lambda x: cresset.add(x, cresset.ones(2, 2), out=x[:]))(cresset.ones(2)), RuntimeError, r"with shape \[2\] doesn't match"),
    (lambda: cresset.eye(2**32, out=cresset.empty(0)), RuntimeError, "numel: integer multiplication overflow"),
    (lambda: cresset.empty(0).resize_(2**32, 2**32), RuntimeError, "numel: integer multiplication overflow"),
    (lambda: cresset.arange(0, 64, 0.5, dtype=cresset.int64), ValueError, "step must be nonzero"),
    (lambda: cresset.arange(0, 1e40, 1, dtype=cresset.int64), RuntimeError, "value cannot be converted to type int64_t"),
    (lambda: cresset.native_layer_norm(cresset.ones(2, 4).double(), [4], cresset.ones(4), None, 1e-5), RuntimeError, "share same datatype"),
    (lambda: cresset.native_layer_norm(cresset.ones(2, 4).half(), [4], cresset.ones(4).bfloat16(), None, 1e-5), RuntimeError, "scalar type of Float"),
    (lambda: F.binary_cross_entropy(HALF, ONE, weight=cresset.ones(2)), RuntimeError, r"shape \[1\] doesn't match the broadcast shape \[2\]"),
    (lambda: F.binary_cross_entropy_with_logits(HALF, ONE, weight=cresset.ones(2, 1)), RuntimeError, r"doesn't match the broadcast shape \[2, 1\]"),
    (lambda: F.binary_cross_entropy_with_logits(HALF, ONE, pos_weight=cresset.ones(2)), RuntimeError, r"doesn't match the broadcast shape \[2\]"),
    (lambda: cresset.nn.BatchNorm1d(3)(cresset.ones(2, 3).long()), NotImplementedError, "\"batch_norm\" not implemented for 'Long'"),
    (lambda: cresset.meshgrid(cresset.arange(2), cresset.ones(2, 2)), RuntimeError, "meshgrid expects all tensors to have the same dtype"),
    (lambda: F.unfold(cresset.ones(2, 3), 2), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
    (lambda: cresset.take_along_dim(cresset.ones(12), cresset.tensor([90])), RuntimeError, "index 90 is out of bounds for dimension 0 with size 12"),
    (lambda: cresset.ones(2).to_sparse().__dlpack__(), BufferError, "Can't export tensors with layout other than torch.strided"),
    (lambda: cresset.ones(2, device="meta").__dlpack__(), BufferError, "Cannot pack tensors on meta"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        call()


def test_strides_of_rearranged_results():
    x = cresset.ones(3, 4, 5)
    assert cresset.rot90(x[0], 1).stride() == (1, 5) and cresset.rot90(x, -1).shape == (4, 3, 5)
    values = cresset.arange(60).view(3, 4, 5)
    assert cresset.unique(values, dim=1).stride() == (5, 15, 1) and cresset.unique(values, dim=2).stride() == (4, 1, 12)
    assert cresset.unique(values, dim=2).equal(values)


def test_statistics_of_half_normalisations():
    """Mean and deviation have the input's type, or float with float parameters; the result has the input's."""
    for half in (cresset.float16, cresset.bfloat16):
        x = cresset.arange(24).view(2, 4, 3).to(half)
        for weight, statistics in (
            (None, half),
            (cresset.ones(4, dtype=half), half),
            (cresset.ones(4), cresset.float32),
        ):
            row = x.transpose(1, 2)
            for results in (
                cresset.native_batch_norm(x, weight, weight, None, None, True, 0.1, 1e-5),
                cresset.native_layer_norm(row, [4], weight, weight, 1e-5),
                cresset.native_group_norm(x, weight, weight, 2, 4, 3, 2, 1e-5),
            ):
                assert [t.dtype for t in results] == [half, statistics, statistics]


def test_batch_norm_with_and_without_update():
    x, mean, var = cresset.arange(6.0).view(3, 2), cresset.zeros(2), cresset.ones(2)
    y, saved, inverse, reserve = cresset.ops.aten._batch_norm_with_update(x, None, None, mean, var, 0.5, 0.0)
    assert saved.tolist() == [2.0, 3.0] and mean.tolist() == [1.0, 1.5] and var.tolist() == [2.5, 2.5]
    assert cresset.allclose(inverse, cresset.full((2,), 8 / 3).rsqrt()) and reserve.dtype == cresset.uint8 and reserve.shape == (0,)
    assert cresset.allclose(y, (x - saved) * inverse)
    y, saved, inverse, reserve = cresset.ops.aten._batch_norm_no_update(x, None, None, mean, var, 0.5, 0.0)
    assert cresset.allclose(y, (x - mean) / 2.5**0.5) and saved.shape == inverse.shape == reserve.shape == (0,)
    assert mean.tolist() == [1.0, 1.5]


def test_rms_norm_of_complex_numbers():
    x = cresset.tensor([1 + 2j, 3 - 1j, 0.5j], dtype=cresset.complex128)
    numbers = np.array([1 + 2j, 3 - 1j, 0.5j])
    want = numbers / np.sqrt((numbers * numbers).mean() + np.finfo(np.float64).eps)
    assert np.allclose(cresset.rms_norm(x, [3]).numpy(), want)
    assert cresset.rms_norm(cresset.ones(3).half(), [3], cresset.ones(3)).dtype == cresset.float16


def fixed_point(line, taps):
    """PyTorch's arithmetic for bytes: integer weights below 2^15, the sum rounded and clamped. taps: (places, weights) by output."""
    largest, bits = max(max(w) for _, w in taps), 0
    while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 2**15:
        bits += 1
    whole = [[int(np.copysign(np.floor(abs(w) * 2**bits + 0.5), w)) for w in weights] for _, weights in taps]
    sums = [sum(int(line[i]) * w for i, w in zip(places, weights)) for (places, _), weights in zip(taps, whole)]
    return [min(max((s + (1 << bits >> 1)) >> bits, 0), 255) for s in sums]


def test_bytes_are_resized_in_fixed_point():
    line = np.array([3, 250, 7, 130, 255, 0, 91], dtype=np.uint8)
    at = [max((i + 0.5) * 7 / 5 - 0.5, 0) for i in range(5)]
    taps = [([int(p), min(int(p) + 1, 6)], [1 - p % 1, p % 1]) for p in at]
    image = cresset.from_numpy(line.copy()).view(1, 1, 1, 7)
    resized = cresset.nn.functional.interpolate(image, size=(1, 5), mode="bilinear", align_corners=False)
    assert resized.flatten().tolist() == fixed_point(line, taps)


def test_expanded_out_is_refused_before_a_resize():
    x, index, out = cresset.ones(3, 6), cresset.tensor([0, 1]), cresset.zeros(1).expand(2, 6)
    for call in (
        lambda: cresset.index_select(x, 1, index, out=out),
        lambda: cresset.take(x, index, out=out),
        lambda: cresset.add(x, 1, out=out),
    ):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            call()
    assert out.shape == (2, 6)


def test_float_power_of_numbers_and_in_place():
    x = cresset.tensor([1.0, 2.0])
    assert cresset.float_power(2, x).tolist() == [2.0, 4.0] and cresset.float_power(2, x).dtype == cresset.float64
    assert cresset.float_power(x, 2j).dtype == cresset.complex128
    y = x.double()
    assert y.float_power_(2) is y and y.tolist() == [1.0, 4.0]
    assert y.float_power_(cresset.tensor([1, 2])).tolist() == [1.0, 16.0]
    assert cresset.float_power(x, 3, out=y) is y and y.tolist() == [1.0, 8.0]
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float"):
        x.float_power_(2)
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype Float but the operation's result requires dtype Double"):
        cresset.float_power(x, 3, out=cresset.empty(2))


def test_out_of_a_gradient_that_was_not_asked_for():
    x, kept = cresset.ones(2, 3), cresset.ones(1)
    mean, rstd = cresset.ones(2, 1), cresset.ones(2, 1)
    outs = [cresset.zeros(0), kept, cresset.zeros(0)]
    cresset.ops.aten.native_layer_norm_backward.out(x, x, [3], mean, rstd, None, None, [True, False, True], out0=outs[0], out1=outs[1], out2=outs[2])
    assert outs[0].shape == (2, 3) and kept.tolist() == [1.0] and outs[2].tolist() == [2.0, 2.0, 2.0]


def test_gradient_of_grid_sample_that_was_not_asked_for_is_none():
    x, grid = cresset.rand(1, 2, 3, 4), cresset.rand(1, 2, 2, 2)
    call = functools.partial(cresset.ops.aten.grid_sampler_2d_backward, cresset.ones(1, 2, 2, 2), x, grid, 0, 1, True)
    none, part = call([False, True])
    assert none is None and cresset.equal(part, call([True, True])[1])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 0)])
def test_where_of_one_argument_gives_positions(shape):
    mask = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
    found = cresset.where(cresset.from_numpy(mask))
    assert type(found) is tuple and len(found) == max(1, mask.ndim)
    for ours, theirs in zip(found, np.atleast_1d(mask).nonzero()):
        assert ours.tolist() == theirs.tolist()


def test_gradient_of_atan2_at_the_origin_is_zero():
    y, x = (cresset.tensor([0.0, -0.0, 1e-30, 3.0], requires_grad=True) for _ in range(2))
    by_y, by_x = cresset.autograd.grad(cresset.atan2(y, x).sum(), [y, x])
    assert by_y.tolist() == pytest.approx([0, 0, 0, 1 / 6]) and by_x.tolist() == pytest.approx([0, 0, 0, -1 / 6])


@pytest.mark.parametrize("margin", [{}, {"margin": 0}, {"margin": 2}])
def test_margins_are_floats(margin):
    x, y = cresset.tensor([1, 2]), cresset.tensor([3, 1])
    loss = cresset.nn.functional.margin_ranking_loss(x, y, cresset.tensor([1, 1]), **margin)
    assert loss.dtype == cresset.float32 and loss.item() == (1.0 if margin.get("margin", 0) == 0 else 2.5)


def test_view_copy_needs_no_strides_of_a_view():
    assert cresset.view_copy(cresset.arange(6).reshape(2, 3).t(), (6,)).tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(RuntimeError, match="invalid for input of size 6"):
        cresset.view_copy(cresset.ones(6), (4,))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_linspace_between_batched_tensors():
    start, end = cresset.tensor([1.0, 2.0]), cresset.tensor([4.0, 8.0])
    vmap, line, powers = cresset.vmap, cresset.linspace, cresset.logspace
    assert vmap(lambda a, b: line(a, b, 4))(start, end).tolist() == [[1, 2, 3, 4], [2, 4, 6, 8]]
    assert vmap(lambda a: line(a, 3, 2))(start).tolist() == [[1, 3], [2, 3]]
    assert vmap(lambda b: line(0, b, 2))(end).tolist() == [[0, 4], [0, 8]]
    assert vmap(lambda a, b: powers(a, b, 2, 2.0))(start, end).tolist() == [[2, 16], [4, 256]]
    assert vmap(lambda a: powers(a, 3, 2, 2.0))(start).tolist() == [[2, 8], [4, 8]]
    assert vmap(lambda b: powers(0, b, 2, 2.0))(end).tolist() == [[1, 16], [1, 256]]


def test_einsum_multiplies_integers_of_two_types():
    a, b = cresset.ones(1, 2, 3, dtype=cresset.uint8), cresset.ones(3, dtype=cresset.uint8)
    product = cresset.einsum("...ik, ...j -> ij", a, b)  # the sum over k is int64
    assert product.dtype == cresset.int64 and product.tolist() == [[3] * 3] * 2
    mask = cresset.tensor([True, False])
    assert cresset.einsum("i,j->ij", mask, mask).tolist() == [[True, False], [False, False]]


def test_targets_of_binary_cross_entropy_are_expanded():
    x, target = cresset.full((2, 3), 0.25, requires_grad=True), cresset.tensor(1.0, requires_grad=True)
    loss = cresset.ops.aten.binary_cross_entropy(x, target)
    assert loss.item() == pytest.approx(math.log(4))
    of_x, of_target = cresset.autograd.grad(loss, (x, target))
    assert of_x.tolist() == [[pytest.approx(-4 / 6)] * 3] * 2 and of_target.item() == pytest.approx(math.log(3))


def test_targets_of_binary_cross_entropy_may_lack_dimensions_of_size_one():
    p = cresset.tensor([[0.2], [0.7]], dtype=cresset.float64, requires_grad=True)
    target = cresset.tensor([1.0, 0.0], dtype=cresset.float64)
    losses = cresset.ops.aten.binary_cross_entropy(p, target, None, 0)
    assert losses.shape == (2, 1) and losses.flatten().tolist() == pytest.approx([-math.log(0.2), -math.log(0.3)])
    losses.sum().backward()
    assert p.grad.flatten().tolist() == pytest.approx([-1 / 0.2, 1 / 0.3])
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 0"):
        cresset.ops.aten.binary_cross_entropy(p, cresset.ones(3, dtype=cresset.float64), None, 0)
    with pytest.raises(ValueError, match=r"Using a target size \(\[2, 2\]\) that is different to the input size \(\[2, 1\]\)"):
        cresset.ops.aten.binary_cross_entropy(p, cresset.ones(2, 2, dtype=cresset.float64), None, 0)
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        cresset.ops.aten.binary_cross_entropy(p, cresset.ones(2, 1), None, 0)
    with pytest.raises(ValueError, match="Using a target size"):
        cresset.nn.functional.binary_cross_entropy(p, target)


@pytest.mark.parametrize("m, k, n", [(65, 65, 65), (200, 900, 3), (3, 900, 200), (128, 33, 128), (300, 257, 70)])
def test_large_products(m, k, n):
    """Those of floats go through another library than small ones and doubles; expected is NumPy's in double precision."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    expected = a.astype(np.float64) @ b
    for x in (cresset.from_numpy(a), cresset.from_numpy(np.asfortranarray(a))):
        for y in (cresset.from_numpy(b), cresset.from_numpy(np.asfortranarray(b))):
            np.testing.assert_allclose((x @ y).numpy(), expected, atol=1e-4 * k**0.5)
            np.testing.assert_allclose(cresset.addmm(cresset.from_numpy(c), x, y, beta=2, alpha=-1).numpy(), 2 * c - expected, atol=1e-4 * k**0.5)
            unread = cresset.full((m, n), float("nan"))
            np.testing.assert_allclose(cresset.addmm(unread, x, y, beta=0).numpy(), expected, atol=1e-4 * k**0.5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize("shape", [(3, 300, 515), (1003, 77), (257, 1024)])
def test_large_transposed_copies(shape, dtype):
    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    assert np.array_equal(cresset.from_numpy(x).transpose(-1, -2).contiguous().numpy(), x.swapaxes(-1, -2))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("values", ["distinct", "falling", "few", "nan"])
@pytest.mark.parametrize("n, k", [(1000, 10), (5000, 3), (100_000, 15)])
def test_few_of_many(n, k, values, largest):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 20, n).astype("f4") if values == "few" else rng.permutation(n).astype("f4")
    if values == "falling":
        x = np.sort(x)[::-1].copy()
    if values == "nan":
        x[rng.permutation(n)[: k // 2]] = np.nan
    expected = np.sort(x)  # NaN is the largest, as in topk
    got, at = cresset.from_numpy(x).topk(k, largest=largest)
    np.testing.assert_array_equal(got.numpy(), expected[::-1][:k] if largest else expected[:k])
    np.testing.assert_array_equal(x[at.numpy()], got.numpy())
    assert len(set(at.tolist())) == k


@pytest.mark.parametrize("groups", [1, 2])
def test_pointwise_convolutions_of_large_planes(groups):
    """1x1 kernels over planes as they lie, and over channels_last ones, which take another way; expected is NumPy's einsum."""
    rng = np.random.default_rng(1)
    x, w, b, g = (rng.standard_normal(s).astype("f4") for s in ((2, 6, 13, 17), (8, 6 // groups, 1, 1), (8,), (2, 8, 13, 17)))
    xg, wg, gg = x.reshape(2, groups, -1, 13, 17), w.reshape(groups, 8 // groups, -1), g.reshape(2, groups, -1, 13, 17)
    y = np.einsum("goc,ngchw->ngohw", wg, xg).reshape(g.shape) + b[:, None, None]
    gx, gw = np.einsum("goc,ngohw->ngchw", wg, gg).reshape(x.shape), np.einsum("ngohw,ngchw->goc", gg, xg).reshape(w.shape)
    for format in (cresset.contiguous_format, cresset.channels_last):
        tx = cresset.from_numpy(x).contiguous(memory_format=format).requires_grad_()
        tw, tb = (cresset.from_numpy(v.copy()).requires_grad_() for v in (w, b))
        out = cresset.nn.functional.conv2d(tx, tw, tb, groups=groups)
        out.backward(cresset.from_numpy(g))
        for got, expected in ((out.detach(), y), (tx.grad, gx), (tw.grad, gw), (tb.grad, g.sum((0, 2, 3)))):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["prod", "sum"])
def test_folds_of_integers_of_every_length(name, dtype):
    """Vectors of one to many blocks, whole and with a rest: no block may be lost. NumPy wraps as int64 does, too."""
    rng = np.random.default_rng(0)
    for n in [*range(1, 150), 257, 1000]:
        values = rng.choice([1, 2, 3, 5, 7], (3, n)) * (1 if dtype.startswith("u") else rng.choice([-1, 1], (3, n)))
        rows = cresset.from_numpy(values.astype(dtype))
        want = getattr(np, name)(values.astype(np.int64), axis=1)
        np.testing.assert_array_equal(getattr(cresset, name)(rows, 1).numpy(), want)
        np.testing.assert_array_equal(getattr(cresset, name)(rows.t().contiguous(), 0).numpy(), want)
        assert getattr(rows[0], name)().item() == want[0]


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_a_mask_without_dimensions(dtype):
    """One that is false selects nothing; reading with it needs a dimension that is not there."""
    no, yes = (cresset.tensor(v, dtype=getattr(cresset, dtype)) for v in (0, 1))
    three = cresset.tensor(3.0)
    for accumulate in (False, True):
        assert cresset.zeros(2, 2).index_put_((no,), three, accumulate=accumulate).tolist() == [[0.0, 0.0]] * 2
        assert cresset.zeros(2, 2).index_put((yes,), three, accumulate=accumulate).tolist() == [[3.0, 3.0]] * 2
        assert cresset.zeros(2).index_put((no, cresset.tensor([0, 1])), three, accumulate=accumulate).tolist() == [0.0, 0.0]
    with pytest.raises(IndexError, match=r"index: a mask with dimensions was required; got one without that is false. Index with mask.reshape\(1\)"):
        cresset.ops.aten.index(cresset.zeros(2, 2), [no])


def test_small_errors_of_creation():
    with pytest.raises(ValueError, match=r"^object does not implement Python buffer protocol\.$"):
        cresset.frombuffer([1, 2], dtype=cresset.int32)
    before = cresset.get_default_dtype()
    try:
        cresset.set_default_dtype(cresset.float16)
        assert cresset.full((2,), 1j).dtype == cresset.complex64 and cresset.full((2,), 1.0).dtype == cresset.float16
    finally:
        cresset.set_default_dtype(before)
    with pytest.raises(RuntimeError, match="Pivots given to lu_solve must all be greater or equal to 1"):
        cresset.linalg.lu_solve(cresset.eye(2), cresset.zeros(2, dtype=cresset.int32), cresset.ones(2, 1))
    with pytest.raises(RuntimeError, match=r"vmap: a mask with dimensions was required; got one without. Use torch.where instead."):
        cresset.vmap(lambda v: v.index_put((cresset.tensor(True),), cresset.tensor(3.0)))(cresset.zeros(2, 2))


def test_names_of_mapped_files(tmp_path):
    path = str(tmp_path / "elements")
    with open(path, "wb") as f:
        f.write(bytes(8))
    assert cresset.from_file(path, shared=True, size=2).untyped_storage().filename == path
    assert cresset.from_file(path, shared=False, size=2).untyped_storage().filename is None


def test_indices_along_a_dimension_wrap_around():
    x = cresset.arange(12.0).view(3, 4)
    for index, column in ((9, 1), (-1, 3), (-9, 3)):
        assert cresset.take_along_dim(x, cresset.tensor([[index]]), dim=1).tolist() == x[:, column : column + 1].tolist()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        cresset.take_along_dim(x[:, :0], cresset.tensor([[1]]), dim=1)


def test_a_mask_with_values_says_the_size_of_a_result_without():
    x, mask = cresset.ones(3, 4, device="meta"), cresset.tensor([True, False, True])
    assert x[mask].shape == (2, 4) and x.t()[:, mask].shape == (4, 2) and x[mask].is_meta
    with pytest.raises(NotImplementedError, match="depends on a mask's values, which a meta tensor does not have"):
        x[mask.to("meta")]


def test_denormals_are_flushed_where_that_is_asked_for():
    small = cresset.tensor([1e-40]).expand(1 << 17).contiguous()
    assert cresset.set_flush_denormal(True)
    try:
        flushed = [(small * 1).count_nonzero().item(), (small.double() * 1e-280).count_nonzero().item(), cresset.tensor([1e-40]).count_nonzero().item()]
    finally:
        cresset.set_flush_denormal(False)
    assert flushed == [0, 0, 0]  # of helping threads too
    assert (small * 1).count_nonzero() == len(small) and small[0].item() == 9.99994610111476e-41


@pytest.mark.parametrize("dtype", [cresset.uint16, cresset.uint32, cresset.uint64])
def test_membership_among_unsigned_numbers(dtype):
    most = 2 ** (8 * dtype.itemsize) - 1
    x, among = cresset.tensor([0, most, most - 1, 1 << 15], dtype=dtype), cresset.tensor([most, 5, 1 << 15], dtype=dtype)
    assert cresset.isin(x, among).tolist() == [False, True, False, True] and cresset.isin(x, among, invert=True).tolist() == [True, False, True, False]


def test_random_slopes_without_memory_and_with_unfit_noise():
    aten, x = cresset.ops.aten, cresset.ones(2, 3, device="meta")
    assert F.rrelu(x, training=True).is_meta and cresset.rrelu_(x.clone(), 0.0, 1.0, True).shape == (2, 3)
    noise = cresset.full((2,), 7.0)
    for call, error, words in [
        (lambda: aten.rrelu_with_noise(cresset.ones(3), noise), RuntimeError, r"noise tensor shape must match self tensor shape. Got self.shape = \[3\] noise"),
        (lambda: aten.rrelu_with_noise_(cresset.ones(2, dtype=cresset.int64), noise, training=True), NotImplementedError, "not implemented for 'Long'"),
        (lambda: aten.rrelu_with_noise(cresset.ones(2).double(), noise, training=True), RuntimeError, "expected scalar type Double but found Float"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert noise.tolist() == [7, 7]


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
def test_volumes_whose_strides_are_those_of_images_with_channels_last(dtype):
    """One sample (C, D, H, W): its second dimension is no channel. The kernel once wrote outside of its memory."""
    x = cresset.arange(600, dtype=dtype).as_strided((2, 3, 4, 4), (48, 1, 12, 3))
    for pool in (F.max_pool3d, F.avg_pool3d):
        strided, plain = (t.detach().requires_grad_() for t in (x, x.contiguous()))
        for _ in range(4):
            have, want = pool(strided, 2), pool(plain, 2)
            assert have.equal(want)
        have.square().sum().backward()
        want.square().sum().backward()
        assert strided.grad.equal(plain.grad)
    values, places = F.max_pool3d(x, 2, return_indices=True)
    assert values.flatten()[:4].tolist() == [16, 22, 40, 46] and places.equal(F.max_pool3d(x.contiguous(), 2, return_indices=True)[1])


def test_unsigned_targets_and_small_integers():
    aten, target = cresset.ops.aten, cresset.tensor([1, 2], dtype=cresset.uint8)
    cresset.testing.assert_close(F.soft_margin_loss(cresset.tensor([1.0, 2.0]), target, reduction="none"), cresset.tensor([0.3133, 0.0181]), rtol=0, atol=1e-4)
    assert aten.soft_margin_loss_backward(cresset.ones(1), cresset.zeros(1), target[:1], 0).item() == -0.5
    assert aten.soft_margin_loss_backward(target, target * 0, target, 0).tolist() == [-0.5, -2.0]
    assert aten.soft_margin_loss_backward(cresset.tensor(1.0).double(), cresset.ones(2).half(), cresset.ones(2).double(), 1).dtype == cresset.float16
    assert cresset.cov(cresset.tensor([255], dtype=cresset.uint8), fweights=cresset.tensor([3])).item() == 0


def test_slope_of_acosh_at_both_sides_of_its_cut():
    z = cresset.tensor([complex(-3.0, -0.0), complex(-3.0, 0.0)], requires_grad=True)
    (slope,) = cresset.autograd.grad(cresset.acosh(z).real.sum(), z)
    assert slope.real.tolist() == pytest.approx([-(8**-0.5)] * 2)  # of arcosh(3 - x) in the real numbers


def test_slopes_that_were_drawn_give_the_gradient():
    aten, noise = cresset.ops.aten, cresset.tensor([0.25, 1.0])
    got = aten.rrelu_with_noise_backward(cresset.ones(2), cresset.tensor([-1.0, 2.0]), noise, 0.3, 0.1, True, False)
    assert got.tolist() == [0.25, 1.0]
    cresset.testing.assert_close(aten.rrelu_with_noise(cresset.tensor([1.0, -1.0]), noise, 0.5, 0.1), cresset.tensor([1.0, -0.3]))
    with pytest.raises(RuntimeError, match="Lower bound should be less than or equal to the upper bound$"):
        F.rrelu(cresset.ones(2), 1, 0)


def test_running_sums_of_complex_exponents_far_apart():
    x = cresset.tensor([[-4658 - 1j], [3148 - 1j]], dtype=cresset.complex64, requires_grad=True)
    (grad,) = cresset.autograd.grad(cresset.logcumsumexp(x, 0).real.sum(), x)
    assert grad.tolist() == [[1], [1]]
    x = cresset.tensor([[1 - 1j, 2], [3 - 1j, -0.4 + 0.2j]], dtype=cresset.complex128, requires_grad=True)
    weights = cresset.tensor([[0.2, 0.3j], [1.2, -0.3 + 0.4j]])
    (grad,) = cresset.autograd.grad((cresset.logcumsumexp(x, 0) * weights).real.sum(), x)
    want = cresset.tensor([[0.3430, -0.2694 - 0.6718j], [1.0570, -0.0306 - 0.0282j]], dtype=cresset.complex128)
    cresset.testing.assert_close(grad, want, rtol=0, atol=1e-4)
    assert cresset.autograd.gradcheck(lambda x: cresset.logcumsumexp(x, 0), (x,), check_forward_ad=True)
    assert cresset.autograd.gradgradcheck(lambda x: cresset.logcumsumexp(x, 0), (x,))


def test_dropped_gradients_have_the_type_of_the_product():
    dropped = cresset.ops.aten.native_dropout_backward
    assert dropped(cresset.ones(2, 3), cresset.ones(2, 3).double(), 1e-5).dtype == cresset.float64
    cresset.testing.assert_close(dropped(cresset.tensor([4, 1], dtype=cresset.int32), cresset.tensor([-1.17, 0.56]), 1.0), cresset.tensor([-4.68, 0.56]))
    assert dropped(cresset.ones(2).bool(), cresset.ones(2, 2).bool(), 2.0).dtype == cresset.float32


def test_norms_of_half_types_are_rounded_once():
    value, norms = cresset.ops.aten._weight_norm_interface(cresset.tensor([[178.0, 5600, 8832, 7616]]).bfloat16(), cresset.tensor([[0.5352]]).bfloat16())
    assert value.dtype == cresset.bfloat16 and value.tolist() == [[0.007354736328125, 0.2314453125, 0.365234375, 0.314453125]]
    assert norms.dtype == cresset.float32 and norms.item() == pytest.approx(12938.29, abs=0.01)


def test_one_step_has_the_exponent_that_was_given():
    assert cresset.logspace(2.5, 1, 1, dtype=cresset.int32).tolist() == [316]
    assert cresset.logspace(2.5, 1, 2, dtype=cresset.int32).tolist() == [100, 10]


def test_flags_in_smooth_l1_loss():
    aten, flags, ones = cresset.ops.aten, cresset.tensor([True, False]), cresset.ones(2)
    assert aten.smooth_l1_loss(flags, ones, 0, 1.0).tolist() == [0, 0.5]
    assert aten.smooth_l1_loss_backward(ones, ones, flags, 0, 1.0).tolist() == [0, 1]
    with pytest.raises(NotImplementedError, match="\"smooth_l1_cpu\" not implemented for 'Bool'"):
        aten.smooth_l1_loss(flags, flags, 0, 1.0)


def test_one_gradient_of_a_mean_over_images():
    aten, o = cresset.ops.aten, cresset.ones
    with pytest.raises(RuntimeError, match=r"Expected a single element grad_output tensor, but got: \[1, 1, 1\]"):
        aten.nll_loss2d_backward(o(1, 1, 1), o(1, 3, 1, 1), cresset.tensor([[[0]]]), o(3), 2, -100, o(()))
    assert aten.nll_loss2d_backward(o(1), o(1, 3, 1, 1), cresset.tensor([[[0]]]), o(3), 2, -100, o(())).flatten().tolist() == [-1, 0, 0]


@pytest.mark.parametrize("padding, places", [((1, 5), "8 x 0"), ((1, 6), "8 x -2")])
def test_transposed_convolutions_without_places(padding, places):
    words = rf"Given input size per channel: \(4 x 4\). Calculated output size per channel: \({places}\). Output size is too small"
    with pytest.raises(RuntimeError, match=words):
        cresset.conv_transpose2d(cresset.ones(1, 2, 4, 4), cresset.ones(2, 3, 3, 3), stride=2, padding=padding, output_padding=1)


def test_numbers_at_zero_and_infinity():
    inf = math.inf
    signs = cresset.sgn(cresset.tensor([complex(inf, 0), complex(0, inf), complex(-inf, 1), 3 + 4j, 0j]))
    assert signs[:3].isnan().all() and signs[3].item() == pytest.approx(0.6 + 0.8j) and signs[4].item() == 0
    for z in (complex(-0.0, 0.0), complex(-0.0, -0.0), complex(0.0, -0.0)):
        got = cresset.log1p(cresset.tensor(z)).item()
        assert [math.copysign(1, v) for v in (got.real, got.imag)] == [math.copysign(1, v) for v in (z.real, z.imag)] and got == 0
    assert not cresset.lgamma(cresset.tensor([1.0, 2.0])).signbit().any()
    assert cresset.tensor([1 + 2j]).to(cresset.complex32).conj().tolist() == [1 - 2j]


@pytest.mark.parametrize(
    "call, sizes, own, dim",
    [
        (lambda o: cresset.addmm(o(2, 2), o(2, 3), o(3, 3)), "[2, 3]", "[2, 2]", 1),
        (lambda o: cresset.addr(o(2, 2), o(2), o(3)), "[2, 3]", "[2, 2]", 1),
        (lambda o: cresset.baddbmm(o(2, 2), o(4, 2, 3), o(4, 3, 3)), "[4, 2, 3]", "[2, 2]", 2),
        (lambda o: cresset.addbmm(o(2, 2), o(4, 2, 3), o(4, 3, 3)), "[2, 3]", "[2, 2]", 1),
    ],
)
def test_what_does_not_expand_to_a_product(call, sizes, own, dim):
    with pytest.raises(RuntimeError) as found:
        call(cresset.ones)
    words = f"The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension {dim}.  Target sizes: {sizes}.  Tensor sizes: {own}"
    assert str(found.value) == words
    with pytest.raises(RuntimeError, match="linalg.matrix_norm: Order bad not supported"):
        cresset.linalg.matrix_norm(cresset.ones(3), "bad")


def test_blocks_take_the_type_of_those_with_dimensions():
    ones, zero = cresset.ones, cresset.ones((), dtype=cresset.float64)
    assert cresset.block_diag(ones(2, 3, dtype=cresset.complex64), zero).dtype == cresset.complex64
    assert cresset.block_diag(ones(2), zero).dtype == cresset.float32
    assert cresset.block_diag(ones(2), ones(2, dtype=cresset.float64)).dtype == cresset.float64


def test_rows_to_renorm_count_from_the_end():
    table = cresset.tensor([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]])
    cresset.ops.aten.embedding_renorm_(table, cresset.tensor([-2, 2]), 5.0, 2.0)
    np.testing.assert_allclose(table.numpy(), [[3, 4], [3, 4], [0.3, 0.4]], rtol=1e-5)
    with pytest.raises(IndexError, match=r"select\(\): index -4 out of range for tensor of size \[3, 2\] at dimension 0"):
        cresset.ops.aten.embedding_renorm_(table, cresset.tensor([-4]), 5.0, 2.0)


def test_vmap_of_a_new_dimension_counted_from_the_end():
    x = cresset.ones(4, 2, 3)
    for dim, sizes in ((-1, (4, 2, 3, 1)), (-3, (4, 1, 2, 3)), (0, (4, 1, 2, 3))):
        assert cresset.vmap(lambda t, dim=dim: cresset.unsqueeze_copy(t, dim))(x).shape == sizes


@pytest.mark.parametrize("n", [65535, 65536, 100_003, 300_000])
@pytest.mark.parametrize("step", [1, 2])
def test_long_dot_products(n, step):
    draws = np.random.default_rng(n).standard_normal((2, n * step))
    a, b = (cresset.tensor(d)[::step] for d in draws)
    exact = float(np.dot(draws[0][::step], draws[1][::step]))
    assert cresset.dot(a, b).item() == pytest.approx(exact, rel=1e-10, abs=1e-9)
    assert cresset.dot(a.float(), b.float()).item() == pytest.approx(exact, rel=1e-3, abs=1e-2)


def test_output_sizes_of_fractional_pools():
    for n, op in ((2, cresset.ops.aten.fractional_max_pool2d_backward), (3, cresset.ops.aten.fractional_max_pool3d_backward)):
        x, g, at = cresset.ones(1, 1, *[4] * n), cresset.ones(1, 1, *[2] * n), cresset.zeros(1, 1, *[2] * n, dtype=cresset.int64)
        assert op(g, x, [2] * 5, [2] * n, at).flatten().tolist() == [2.0**n] + [0.0] * (4**n - 1)  # the windows' sizes are not asked for
        with pytest.raises(RuntimeError, match=rf"fractional_max_pool{n}d_backward\(\): output_size must have {n} elements; got \[2, 2, 2, 2\]"):
            op(g, x, [2] * n, [2] * 4, at)


def test_a_mask_sets_where_it_holds():
    x = cresset.arange(6.0).view(2, 3)
    x[x > 2] = cresset.tensor([7.0])
    assert x.tolist() == [[0, 1, 2], [7, 7, 7]] and x._version == 1
    x.index_put_((x > 2,), cresset.ones(1, 1))  # of any shape, where one element fills
    assert x.tolist() == [[0, 1, 2], [1, 1, 1]]


def test_rates_that_are_no_numbers():
    for rate in (math.nan, -1.0):
        with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
            cresset.poisson(cresset.tensor([1.0, rate]))


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2)])
def test_slopes_are_a_number_or_a_vector(sizes):
    with pytest.raises(RuntimeError, match=r"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2"):
        cresset.prelu(cresset.ones(3, 4), cresset.ones(sizes))


@pytest.mark.parametrize("ends, dtype, want", [
    ((0.0, -8.000001, -4.0), "int64", [0, -4, -8]), ((2.58,), "int32", [0, 1, 2]), ((1.9, 7.9, 1.9), "int32", [1, 2, 3, 4]),
])  # fmt: skip
def test_ranges_of_integers_between_fractions(ends, dtype, want):
    """Values of PyTorch 2.13: ends of int64 are rounded before elements are counted."""
    dtype = getattr(cresset, dtype)
    assert cresset.arange(*ends, dtype=dtype).tolist() == want
    out = cresset.empty(0, dtype=dtype)
    assert cresset.arange(*ends, out=out).tolist() == want and out.shape == (len(want),)


@pytest.mark.parametrize("dtype, number", [
    (cresset.uint8, cresset.tensor(300)), (cresset.int8, cresset.tensor(200, dtype=cresset.uint8)), (cresset.int64, cresset.tensor(math.nan)),
    (cresset.float16, cresset.tensor(70000.0)), (cresset.bfloat16, cresset.tensor(2j)),
])  # fmt: skip
def test_masks_are_filled_with_numbers_that_the_type_has(dtype, number):
    x, mask = cresset.ones(2, dtype=dtype), cresset.tensor([True, False])
    for call in (
        lambda: x.masked_fill(mask, number),
        lambda: x.masked_fill_(mask, number),
        lambda: cresset.vmap(lambda row: row.masked_fill(mask, number))(x[None]),
    ):
        with pytest.raises(RuntimeError, match=r"value cannot be converted to type \S+ without overflow"):
            call()
    assert cresset.ones(2).to(cresset.int16).masked_fill(mask, cresset.tensor(1.5)).tolist() == [1, 1]
    assert cresset.ones(2, dtype=cresset.bool).masked_fill(mask, cresset.tensor(300)).all()


@pytest.mark.parametrize("name", ["dropout_", "feature_dropout_", "alpha_dropout_", "feature_alpha_dropout_"])
def test_a_leaf_from_which_nothing_is_dropped_is_not_changed(name):
    leaf = cresset.ones(2, 2, requires_grad=True)
    for p, train in [(0.0, True), (0.5, False)] if name != "dropout_" else []:
        assert getattr(cresset, name)(leaf, p, train) is leaf and leaf._version == 0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(cresset, name)(leaf, 0.5, True)


def test_one_tensor_is_flattened_as_a_view():
    x = cresset.arange(4.0).view(2, 2)
    flat = cresset.ops.aten.flatten_dense_tensors([x])
    assert flat.shape == (4,) and flat.data_ptr() == x.data_ptr()
    assert cresset.ops.aten.flatten_dense_tensors([x.t()]).tolist() == [0, 2, 1, 3]
    back = cresset._C._nn.unflatten_dense_tensors(flat, tensors=[x])
    assert back[0].equal(x)


def test_a_bias_does_not_enlarge_the_result_of_linear():
    weight = cresset.ones(2, 4)
    for bias in (cresset.ones(1, 2), cresset.ones(2)):
        assert cresset.nn.functional.linear(cresset.ones(4), weight, bias).tolist() == [5, 5]
    for x, bias in [(cresset.ones(4), cresset.ones(3, 2)), (cresset.ones(1, 1, 4), cresset.ones(5, 1, 2))]:
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            cresset.nn.functional.linear(x, weight, bias)


def test_the_memory_around_a_tangent_is_zero():
    base = cresset.arange(40.0)
    x, change = base.as_strided((3, 4), (12, 3), 3), cresset.arange(1.0, 13).view(3, 4)
    for view in (cresset.as_strided, cresset.as_strided_copy):
        values, tangent = cresset.func.jvp(lambda t: view(t, [2, 2], [1, 10], 1), (x,), (change,))  # noqa: B023
        assert values.tolist() == [[1, 11], [2, 12]] and tangent.tolist() == [[0, 0], [0, 4]]
        assert cresset.func.jvp(lambda t: view(t, [2], [33], 6), (x,), (change,))[1].tolist() == [2, 0]  # noqa: B023


def test_layer_norm_s_gradient_checks_sizes_under_vmap():
    x, rows = cresset.ones(2, 3), cresset.ones(2, 1)
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[2\]"):
        cresset.vmap(lambda t, r: cresset.ops.aten.native_layer_norm_backward(t, t, [2], r, r, None, None, [True, False, False])[:1])(x, rows)


@pytest.mark.parametrize("sizes", [(2, 4, 0), (0, 4, 3), (1, 0, 3)])
def test_types_of_norms_are_checked_where_there_is_nothing_to_do(sizes):
    with pytest.raises(NotImplementedError, match="\"GroupNormKernelImpl\" not implemented for 'Int'"):
        cresset.group_norm(cresset.ones(sizes, dtype=cresset.int32), 2)
    with pytest.raises(NotImplementedError, match="\"LayerNormKernelImpl\" not implemented for 'Int'"):
        cresset.layer_norm(cresset.ones(sizes, dtype=cresset.int32), sizes[1:])
    x = cresset.ones(sizes, requires_grad=True)
    y = cresset.nn.functional.group_norm(x, 1)
    y.sum().backward()
    assert y.shape == sizes == x.grad.shape


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_steps_that_are_no_numbers():
    """Words of PyTorch 2.13."""
    nan, inf = math.nan, math.inf
    for call in (cresset.range, cresset.ops.aten.range, cresset.arange):
        for ends, words in [((3, 0, nan), "step must be nonzero"), ((3, -0.5, inf), "inconsistent with step sign")]:
            with pytest.raises(RuntimeError, match=words):
                call(*ends)
        with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
            call(0, 3, inf, dtype=cresset.int32)


def test_integrals_of_half_numbers_are_scaled_before_they_are_added():
    y = cresset.full((4,), 20000.0, dtype=cresset.float16)
    assert cresset.cumulative_trapezoid(y, dx=0.5).tolist() == [10000, 20000, 30000]


def test_steps_that_lead_away():
    for end, step in ((-3, math.inf), (3, -math.inf), (1e-320, -1e300)):
        with pytest.raises(RuntimeError, match="upper bound and lower bound inconsistent with step sign"):
            cresset.ops.aten.range.step(0, end, step)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        cresset.ops.aten.range.step(0, 0, math.nan)


def test_a_power_of_complex_zero_does_not_change_with_its_exponent():
    # As PyTorch 2.13, whose derivative of a tensor of zeros says the same.
    x = cresset.tensor([1.0 + 1j, 2.0], requires_grad=True)
    for base in (0.0, 0j):
        power = cresset.pow(base, x)
        assert power.tolist() == [0, 0] and cresset.autograd.grad(power.abs().sum(), x)[0].tolist() == [0, 0]
    assert cresset.func.jvp(lambda e: cresset.pow(1j, e), (x.detach(),), (cresset.ones_like(x),))[1][1].item() == pytest.approx(-1j * math.pi / 2, abs=1e-6)


def test_grids_of_less_than_no_images():
    with pytest.raises(RuntimeError, match=r"negative dimension -1: \[-1, 2, 2, 2\]"):
        cresset.ops.aten.affine_grid_generator(cresset.ones(1, 2, 3), [-1, 1, 2, 2], True)


def test_drawn_slopes_have_no_derivative():
    # As PyTorch 2.13.
    backward = lambda g, noise: cresset.ops.aten.rrelu_with_noise_backward(g, g, noise, 0.1, 0.3, True, False)  # noqa: E731
    values, changes = cresset.func.jvp(backward, (cresset.ones(2), cresset.tensor([0.5, 1.0])), (cresset.ones(2), cresset.ones(2)))
    assert values.tolist() == changes.tolist() == [0.5, 1.0]


def test_the_gradient_of_a_complex_element_seen_several_times():
    # As PyTorch 2.13: the input's places share the gradient of what they have in common.
    x = cresset.ones(1, dtype=cresset.complex64).expand(2).requires_grad_()
    seen = x.as_strided((1,), (1,))
    assert cresset.autograd.grad(seen, x, cresset.tensor([2 + 4j]))[0].tolist() == [1 + 2j, 1 + 2j]


def test_sizes_of_pools_and_convolutions_are_checked_on_every_way():
    with pytest.raises(RuntimeError, match="adaptive_avg_pool2d: output_size must be 2"):
        cresset.ops.aten.adaptive_avg_pool2d(cresset.ones(1, 1, 5, 5), [1, 1, 1])
    with pytest.raises(RuntimeError, match=r"expected weight to be at least 1 at dimension 0, but got weight of size \[0, 3, 3\] instead"):
        cresset.nn.functional.conv_transpose1d(cresset.ones(1, 0, 5), cresset.ones(0, 3, 3))
