"""Functions that few programs call by these names, beside the layers and operators that they are made of."""

import cresset
import pytest
from cresset import nn


def test_random_slopes_are_pytorchs():
    x = cresset.linspace(-2, 2, 9)
    # PyTorch 2.13 after manual_seed(0).
    slopes = [0.19700530171394348, 0.17078198492527008, 0.14593829214572906, 0.19207477569580078, 0.16450241208076477, 1, 1, 1, 1]
    noise = cresset.full((9,), 7.0)
    cresset.manual_seed(0)
    y = cresset.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.2, True)
    assert noise.tolist() == slopes and cresset.equal(y, x * noise)
    cresset.ops.aten.rrelu_with_noise(x, noise.fill_(7), 0.1, 0.2, False)
    assert noise.unique().tolist() == [7]
    for run in (cresset.rrelu, nn.functional.rrelu, lambda *a: cresset.rrelu_(a[0].clone(), *a[1:])):
        cresset.manual_seed(0)
        leaf = x.clone().requires_grad_()
        run(leaf, 0.1, 0.2, True).sum().backward()
        assert leaf.grad.tolist() == slopes
    backward = cresset.ops.aten.rrelu_with_noise_backward
    assert cresset.equal(backward(cresset.ones(9), x, noise, 0.1, 0.2, True, False), noise)
    assert cresset.allclose(backward(cresset.ones(2), cresset.tensor([-1.0, 1]), noise[:2], 0.1, 0.3, False, False), cresset.tensor([0.2, 1]))
    with pytest.raises(RuntimeError, match="Lower bound should be less than or equal to the upper bound"):
        cresset.rrelu(x, 0.5, 0.1)


def test_activations_and_dropout():
    x = cresset.linspace(-2, 2, 9)
    assert cresset.equal(cresset.rrelu(x), nn.functional.rrelu(x))
    cresset.manual_seed(0)
    y = cresset.rrelu(x, 0.1, 0.2, True)
    ratio = (y / x)[:4]
    assert ((ratio >= 0.1) & (ratio <= 0.2)).all() and cresset.equal(y[4:], x[4:])
    z = x.clone()
    assert cresset.rrelu_(z) is z and cresset.equal(z, cresset.rrelu(x)) and nn.functional.rrelu_ is cresset.rrelu_
    t = cresset.ones(2, 3, 4)
    for f in (cresset.alpha_dropout_, cresset.feature_dropout_, cresset.feature_alpha_dropout_):
        u = t.clone()
        assert f(u, 0.5, False) is u and cresset.equal(u, t)
    dropped = cresset.feature_dropout_(cresset.ones(4, 5, 6), 0.5, True)
    assert all(len(set(c.tolist())) == 1 for row in dropped for c in row)


def test_casts_by_their_older_names():
    x = cresset.tensor([1.75, -2.5], requires_grad=True)
    kinds = {"Char": cresset.int8, "Short": cresset.int16, "Int": cresset.int32, "Long": cresset.int64}
    for name, dtype in kinds.items():
        y = getattr(cresset, f"_cast_{name}")(x)
        assert y.dtype == dtype and y.tolist() == [1, -2]
    assert cresset._cast_Byte(x[:1]).tolist() == [1] and cresset._cast_Byte(x).dtype == cresset.uint8
    for name, dtype in {"Half": cresset.float16, "Float": cresset.float32, "Double": cresset.float64}.items():
        y = getattr(cresset, f"_cast_{name}")(x, non_blocking=True)
        assert y.dtype == dtype and y.tolist() == [1.75, -2.5] and cresset.autograd.grad(y.sum(), x)[0].tolist() == [1, 1]


def test_convolution_over_time():
    x, w, b = cresset.rand(7, 2, 3), cresset.rand(4, 3, 5), cresset.rand(5)
    out = cresset.conv_tbc(x, w, b, 1)
    cresset.testing.assert_close(out, nn.functional.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1))
    with pytest.raises(RuntimeError, match="Input must have 3 dims: time, batch, in_channel"):
        cresset.conv_tbc(x[0], w, b)


def test_norms_and_shuffles():
    x = cresset.rand(2, 6, 3, 3)
    assert cresset.native_norm(x).item() == pytest.approx(x.norm().item())
    assert cresset.equal(cresset.native_channel_shuffle(x, 3), cresset.channel_shuffle(x, 3))


def test_file_as_memory(tmp_path):
    path = tmp_path / "numbers"
    t = cresset.from_file(str(path), shared=True, size=4, dtype=cresset.int32)
    t.copy_(cresset.arange(4))
    assert cresset.from_file(str(path), False, 4, dtype=cresset.int32).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        cresset.from_file(str(path), False, 40)


def test_cond():
    f, g = (lambda x: x + 1), (lambda x: x - 1)
    assert cresset.cond(cresset.tensor(True), f, g, (3,)) == 4 and cresset.cond(False, f, g, (3,)) == 2
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        cresset.cond(cresset.ones(2), f, g, (3,))


def test_batch_norm_in_parts():
    """Two processes' halves give what one gives: forward, backward and running statistics."""
    x = cresset.randn(6, 3, 4, dtype=cresset.float64, requires_grad=True)
    w, b, grad = cresset.rand(3).double(), cresset.rand(3).double(), cresset.randn(6, 3, 4).double()
    mean_r, var_r = cresset.zeros(3).double(), cresset.ones(3).double()
    expected = nn.functional.batch_norm(x, mean_r, var_r, w.requires_grad_(), b.requires_grad_(), True, 0.1, 1e-5)
    gx, gw, gb = cresset.autograd.grad(expected, (x, w, b), grad)
    with cresset.no_grad():
        parts, grads = (x[:2], x[2:]), (grad[:2], grad[2:])
        stats = [cresset.batch_norm_stats(p, 1e-5) for p in parts]
        counts = cresset.tensor([8.0, 16.0]).double()
        own_mean, own_var = cresset.zeros(3).double(), cresset.ones(3).double()
        mean, invstd = cresset.batch_norm_gather_stats_with_counts(
            x, cresset.stack([s[0] for s in stats]), cresset.stack([s[1] for s in stats]), own_mean, own_var, 0.1, 1e-5, counts
        )  # fmt: skip
        out = cresset.cat([cresset.batch_norm_elemt(p, w, b, mean, invstd, 1e-5) for p in parts])
        cresset.testing.assert_close(out, expected)
        cresset.testing.assert_close((own_mean, own_var), (mean_r, var_r))
        sums = [cresset.batch_norm_backward_reduce(g, p, mean, invstd, w, True, True, True) for g, p in zip(grads, parts)]
        dy, dy_xmu, dw, db = (sum(column) for column in zip(*sums))
        cresset.testing.assert_close((dw, db), (gw, gb))
        back = [cresset.batch_norm_backward_elemt(g, p, mean, invstd, w, dy, dy_xmu, counts) for g, p in zip(grads, parts)]
        cresset.testing.assert_close(cresset.cat(back), gx)


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg(largest):
    cresset.manual_seed(0)
    a = cresset.randn(2, 20, 20, dtype=cresset.float64)
    a = a @ a.mT + cresset.diag(cresset.arange(20.0)).double()
    b = cresset.eye(20).double() * 2
    values, vectors = cresset.lobpcg(a, 3, b, largest=largest)
    exact = cresset.linalg.eigvalsh(a / 2)
    exact = exact.flip(-1)[:, :3] if largest else exact[:, :3]
    cresset.testing.assert_close(values.sort(-1).values, exact.sort(-1).values, rtol=1e-6, atol=1e-6)
    cresset.testing.assert_close(a @ vectors, (b @ vectors) * values.unsqueeze(1), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="not applicable when the number of A rows"):
        cresset.lobpcg(a[0, :5, :5], 2)
    with pytest.raises(AssertionError, match=r"A must be square, got shape .*\[4, 3\]"):
        cresset.lobpcg(cresset.ones(4, 3))


def test_methods_of_older_times():
    x = cresset.tensor([[1.0, 2.0]])
    for name in ("eig", "symeig", "lstsq", "solve"):
        with pytest.raises(RuntimeError, match="deprecated since version 1.9 and is now removed"):
            getattr(x, name)()
    assert x[0, 1].__long__() == 2 and x[0, 0].__nonzero__() and not hasattr(x, "__cuda_array_interface__")
    assert cresset.equal(x._addmm_activation(cresset.ones(1, 1), cresset.ones(1, 2)), x + 1)
    assert not cresset.tensor([True, False])._is_all_true() and cresset.tensor([True, False])._is_any_true()


def test_hashes_of_tensors():
    # PyTorch 2.13's numbers.
    x = cresset.arange(6).view(2, 3)
    assert cresset.hash_tensor(x).item() == 1 and x.hash_tensor(0).tolist() == [3, 5, 7] and cresset.hash_tensor(x, 1, keepdim=True).tolist() == [[3], [2]]
    assert cresset.hash_tensor(cresset.tensor([1.5, 2.0], dtype=cresset.float16)).item() == 9221120237041090560
    assert cresset.hash_tensor(cresset.tensor([-1], dtype=cresset.int8)).item() == 2**64 - 1 and cresset.hash_tensor(x, dim=(0, 1)).item() == 1
    assert cresset.hash_tensor(cresset.tensor([-0.0, 0.0])).item() == 2**63 and cresset.hash_tensor(cresset.zeros(0, 2), dim=0).tolist() == [0, 0]
    assert cresset.hash_tensor(cresset.tensor([2**64 - 1, 1], dtype=cresset.uint64)).item() == 2**64 - 2
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode: 1"):
        cresset.hash_tensor(x, mode=1)
    with pytest.raises(RuntimeError, match="Expected reduction dim to be specified"):
        cresset.hash_tensor(cresset.empty(0))
    with pytest.raises(NotImplementedError, match="\"xor_sum_cpu\" not implemented for 'ComplexFloat'"):
        cresset.hash_tensor(cresset.tensor([1j]))


def test_a_convolution_with_its_arguments_in_another_order():
    x, w = cresset.randn(1, 2, 4, 4), cresset.randn(2, 2, 3, 3)
    assert cresset.equal(cresset.mkldnn_convolution(x, w, None, (1, 1), (2, 2), (1, 1), 1), nn.functional.conv2d(x, w, None, 2, 1))


def test_overlap_of_elements():
    overlap = cresset._debug_has_internal_overlap
    x = cresset.ones(3, 4)
    assert [overlap(t) for t in (x, x.t(), x[:, :0], x[:1].expand(4, 4), x.as_strided((2, 1, 3), (1, 0, 2)), x[:, ::2], x.as_strided((3, 3), (1, 1)))] == [0, 0, 0, 1, 0, 2, 2]


def test_batch_norm_that_gives_its_running_statistics():
    x, mean, var = cresset.arange(24.0).reshape(4, 3, 2) ** 1.5, cresset.ones(3), cresset.full((3,), 2.0)
    for training in (True, False):
        kept = mean.clone(), var.clone()
        found = cresset.ops.aten._native_batch_norm_legit_functional(x, None, None, mean, var, training, 0.1, 1e-5)
        expected = cresset.native_batch_norm(x, None, None, *kept, training, 0.1, 1e-5)
        for value, wanted in zip(found, (*expected, *kept)):
            assert cresset.allclose(value, wanted)
        assert mean.tolist() == [1, 1, 1] and var.tolist() == [2, 2, 2]


def test_rows_that_are_pruned():
    w = cresset.arange(12.0).reshape(4, 3)
    mask = cresset.tensor([True, False, True, False])
    for function in (cresset._rowwise_prune, cresset.ops.aten._rowwise_prune):
        rows, numbers = function(w, mask, cresset.int32)
        assert rows.tolist() == [[0, 1, 2], [6, 7, 8]] and numbers.tolist() == [0, -1, 1, -1] and numbers.dtype is cresset.int32
    assert cresset._rowwise_prune(w, ~(mask | ~mask), cresset.int64)[0].shape == (0, 3)
    for call, words in (
        (lambda: cresset._rowwise_prune(w, mask[:3], cresset.int64), "Number of elements in 'mask' should be equivalent to the number of rows in 'weights'."),
        (lambda: cresset._rowwise_prune(w, mask.long(), cresset.int64), "expected scalar type Bool but found Long"),
        (lambda: cresset._rowwise_prune(w, mask, cresset.int16), "compressed_indices_dtype should be either int[(]int32[)] or long[(]int64[)]."),
        (lambda: cresset._rowwise_prune(w[0], mask, cresset.int64), "'weights' should have 2 dimensions."),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_parts_of_a_projection():
    x, bias = cresset.arange(24.0).reshape(1, 2, 12), cresset.arange(12.0)
    q, k, v = cresset._transform_bias_rescale_qkv(x, bias, 2)
    root = 2**0.5
    assert cresset.allclose(q * root, cresset.tensor([[[[0.0, 2.0], [12.0, 14.0]], [[4.0, 6.0], [16.0, 18.0]]]]))
    assert k.tolist() == [[[[8, 10], [20, 22]], [[12, 14], [24, 26]]]] and v.tolist() == [[[[16, 18], [28, 30]], [[20, 22], [32, 34]]]]
    assert [t.stride() for t in (q, k, v)] == [(8, 4, 2, 1)] * 3
    with pytest.raises(RuntimeError, match="a number of heads that divides 4 was required; got 3."):
        cresset._transform_bias_rescale_qkv(x, bias, 3)
    with pytest.raises(RuntimeError, match="a bias of size 3 D were required"):
        cresset._transform_bias_rescale_qkv(x, bias[:6], 2)


def test_operators_of_graphs(capsys):
    aten, x = cresset.ops.aten, cresset.arange(6.0)
    copy = aten._reshape_alias_copy(x, [3, 2], [1, 3])
    assert copy.tolist() == [[0, 3], [1, 4], [2, 5]] and copy.stride() == (2, 1)
    of_each = cresset.vmap(lambda y: aten._reshape_alias_copy(y, [3, 2], [1, 3]))(cresset.stack([x, x + 6]))
    assert of_each[0].tolist() == copy.tolist() and of_each[1].tolist() == (copy + 6).tolist()
    view = cresset.vmap(lambda y: aten._reshape_alias(y, [4], [1]), 1)(cresset.arange(8.0).view(2, 2, 2))
    assert view.tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert aten._print("one") is None and aten._print("two") is None
    assert capsys.readouterr().out == "one\ntwo\n"
    assert sorted(aten.quantized_lstm.overloads()) == ["data", "input"] == sorted(aten.quantized_gru.overloads())


def test_operators_by_name():
    # Values of PyTorch 2.13.
    aten, x = cresset.ops.aten, cresset.arange(12.0).view(3, 4) - 5
    for name, dtype in (("Byte", cresset.uint8), ("Half", cresset.float16), ("Long", cresset.int64)):
        assert getattr(aten, f"_cast_{name}")(x.abs()).dtype is dtype
    zeros = aten._efficientzerotensor([2, 3], dtype=cresset.float64)
    assert zeros.dtype is cresset.float64 and zeros.tolist() == [[0.0] * 3] * 2
    for name in ("alpha_dropout_", "feature_alpha_dropout_", "feature_dropout_"):
        y = x.clone()
        assert getattr(aten, name)(y, 0.5, False) is y and cresset.equal(y, x) and y._version == 0
        assert getattr(aten, name)(y.requires_grad_(), 0.5, False).is_leaf
    assert aten.native_norm(x.to_sparse()).item() == pytest.approx(12.0830460)
    mean, var = aten.batch_norm_update_stats(x, cresset.zeros(4), cresset.ones(4), 0.1)
    assert mean.tolist() == [-1, 0, 1, 2] and var.tolist() == pytest.approx([32 / 3] * 4)
    assert aten._debug_has_internal_overlap(x.expand(2, 3, 4)) == 1 and aten.is_signed(x) and not aten.is_conj(x)
    assert aten.sym_constrain_range(3, min=1, max=5) is None
    with pytest.raises(RuntimeError, match="Invalid value range for 7 between"):
        aten.sym_constrain_range(7, min=1, max=5)
    images = cresset.arange(16.0).view(1, 1, 4, 4)
    assert aten.mkldnn_convolution(images, cresset.ones(1, 1, 2, 2), None, [0, 0], [1, 1], [1, 1], 1).flatten().tolist()[:4] == [10, 14, 18, 26]
    quantized = cresset.quantize_per_tensor(images, 0.5, 0, cresset.quint8)
    assert aten.quantized_max_pool2d(quantized, [2, 2]).dequantize().flatten().tolist() == [5, 7, 13, 15]


@pytest.mark.parametrize("transposed", [False, True])
def test_second_gradients_of_a_convolution_by_name(transposed):
    options = ([2], [1], [1], transposed, [0], 2)
    x, w = (cresset.linspace(-1, 1, n).sin().double().view(s).requires_grad_() for n, s in ((48, (2, 4, 6)), (24, (4, 2, 3))))
    y = cresset.convolution(x, w, None, *options)
    gO = y.detach().cos().requires_grad_()
    inner = cresset.autograd.grad(y, (x, w), gO, create_graph=True)
    given = [g.detach().exp() for g in inner]
    wanted = cresset.autograd.grad(inner, (gO, x, w), given)
    double_backward = cresset.ops.aten._convolution_double_backward
    found = double_backward(*given, None, gO, w, x, *options, [True] * 3)
    for a, b in zip(found, wanted):
        cresset.testing.assert_close(a, b)
    assert double_backward(None, None, cresset.ones(4), gO, w, x, *options, [True] * 3)[1:] == (None, None)


def test_tangents_of_glu_take_as_many_places_as_its_result():
    # Values of PyTorch 2.13.
    aten, x = cresset.ops.aten, cresset.ones(2, 3)
    assert aten.glu_jvp(cresset.ones(2, 1), x, cresset.ones(2, 4), 1).tolist() == [[1], [1]]
    with pytest.raises(RuntimeError, match=r"start \(2\) \+ length \(2\) exceeds dimension size"):
        aten.glu_jvp(cresset.ones(2, 2), x, cresset.ones(2, 4), 1)
    with pytest.raises(IndexError):
        aten.glu_jvp(cresset.ones(2, 2), cresset.ones(2, 1), cresset.ones(2, 1), 1)
    four, one = cresset.ones(1, 4), cresset.ones(1, 1)
    assert aten.glu_backward_jvp(four, one, four, one, four, 1).tolist() == [pytest.approx([1.0, 0.3412709])]


def test_types_of_addr_are_joined_in_the_order_of_its_arguments():
    # As PyTorch 2.13: int32 and uint64 alone have no common type.
    numbers = {t: cresset.ones(2, dtype=t) for t in (cresset.int32, cresset.uint64, cresset.float64)}
    a, b, c = numbers.values()
    assert cresset.addr(c.expand(2, 2), a, b, beta=2).dtype is cresset.addr(a.expand(2, 2), c, b).dtype is cresset.float64
    with pytest.raises(RuntimeError, match="attempted to promote Int and UInt64"):
        cresset.addr(a.expand(2, 2), b, c)


def test_tangent_of_addcdiv_at_zero():
    # As in PyTorch 2.13 the infinite terms meet.
    values, changes = cresset.func.jvp(lambda a, b: cresset.addcdiv(cresset.ones(2), a, b), (cresset.tensor([2.0, 3.0]), cresset.tensor([0.0, 2.0])),
                                       (cresset.tensor([1.0, 1.0]), cresset.tensor([1.0, 0.5])))
    assert values.tolist() == [float("inf"), 2.5] and changes[0].isnan() and changes[1] == 0.125
