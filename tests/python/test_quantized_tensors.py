"""Quantized tensors. Expected values are PyTorch 2.13's for CPU."""

import copy
import hashlib
import io

import cresset as torch
import numpy as np
import pytest

ROWS = torch.linspace(-1.3, 2.2, 12).view(3, 4)


@pytest.fixture
def one():
    return torch.quantize_per_tensor(ROWS, 0.1, 10, torch.quint8)


@pytest.fixture
def rows():
    return torch.quantize_per_channel(ROWS, torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 1, 2]), 0, torch.qint8)


def test_what_they_are(one, rows):
    assert one.int_repr().tolist() == [[0, 0, 3, 7], [10, 13, 16, 19], [22, 26, 29, 32]] and one.int_repr().dtype == torch.uint8
    assert (one.q_scale(), one.q_zero_point(), one.dtype, one.qscheme(), one.is_quantized) == (0.1, 10, torch.quint8, torch.per_tensor_affine, True)
    torch.testing.assert_close(one.dequantize()[0], torch.tensor([-1.0, -1.0, -0.7, -0.3]))
    assert type(torch.dequantize([one, one])) is tuple and torch.dequantize((one, one))[1].shape == (3, 4) and one.element_size() == 1 and one.type() == "torch.quantized.QUInt8Tensor"
    assert repr(one) == (
        "tensor([[-1.0000, -1.0000, -0.7000, -0.3000],\n        [ 0.0000,  0.3000,  0.6000,  0.9000],\n        [ 1.2000,  1.6000,  1.9000,  2.2000]], "
        "size=(3, 4), dtype=torch.quint8,\n       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10)"
    )
    assert rows.int_repr().tolist() == [[-13, -10, -7, -3], [1, 2, 4, 6], [27, 33, 40, 46]]
    assert rows.q_per_channel_scales().dtype == torch.float64 and rows.q_per_channel_zero_points().tolist() == [0, 1, 2]
    assert rows.q_per_channel_axis() == 0 and rows.qscheme() is torch.per_channel_affine and rows[1].q_scale() == pytest.approx(0.2)
    near = torch.quantize_per_channel(ROWS, torch.full((3,), 0.1), torch.full((3,), 0.5), 0, torch.quint8)
    assert near.qscheme() is torch.per_channel_affine_float_qparams and near.dequantize()[1].tolist() == pytest.approx([-0.05, 0.25, 0.65, 0.95])


def test_rounding_and_limits():
    x = torch.tensor([0.05, 0.15, 0.25, -0.05, float("nan"), float("inf")])
    assert torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).int_repr().tolist() == [0, 2, 2, 0, 127, 127]
    dynamic = [torch.quantize_per_tensor_dynamic(ROWS, d, r) for d in (torch.quint8, torch.qint8) for r in (True, False)]
    assert [(q.q_scale(), q.q_zero_point()) for q in dynamic] == [
        (0.027559055118110236, 47), (0.013725490196078431, 95), (0.027559055118110236, -17), (0.013725490196078431, -33),
    ]  # fmt: skip


def test_numbers_are_pytorchs_bit_for_bit():
    digest = hashlib.sha256()
    state = np.random.RandomState(3)
    for i in range(40):
        x = torch.from_numpy((state.standard_normal((3, 37)) * 10 ** state.uniform(-2, 2)).astype("f4"))
        for dtype in (torch.quint8, torch.qint8, torch.qint32):
            q = torch.quantize_per_tensor(x, float(state.uniform(0.001, 0.2)), 3, dtype)
            digest.update(q.int_repr().numpy().tobytes() + q.dequantize().numpy().tobytes())
        q = torch.quantize_per_channel(x, torch.from_numpy(state.uniform(0.01, 1, 3)), torch.tensor([0, 1, 2]), 0, torch.qint8)
        digest.update(q.int_repr().numpy().tobytes() + q.dequantize().numpy().tobytes())
    assert digest.hexdigest()[:16] == "0d1b10106ff5339d"


def test_operators(one):
    assert one[:, 1:3].int_repr().tolist() == [[0, 3], [13, 16], [26, 29]] and one.t().int_repr().shape == (4, 3) and one.view(-1).q_scale() == 0.1
    assert one.clone().equal(one) and not torch.equal(one, one.relu()) and (one == one).all() and not (one > one).any()
    assert torch.relu(one).int_repr()[0].tolist() == [10] * 4 and torch.clamp(one, 0, 1).int_repr()[2].tolist() == [20] * 4
    assert one.max().item() == pytest.approx(2.2) and one.mean().item() == pytest.approx(0.5) and one[0, 0].item() == -1
    assert torch.cat([one, one]).shape == (6, 4) and torch.stack([one, one])[1].equal(one)
    assert torch.sigmoid(one).q_scale() == 1 / 256 and torch.tanh(one).q_zero_point() == 128
    pooled = torch.nn.functional.max_pool2d(one.view(1, 1, 3, 4), 2)
    assert pooled.dequantize().flatten().tolist() == pytest.approx([0.3, 0.9])
    target = torch.quantize_per_tensor(torch.zeros(3, 4), 0.1, 10, torch.quint8)
    assert target.copy_(ROWS).equal(one) and target.fill_(1.0).int_repr().unique().tolist() == [20]
    assert copy.deepcopy(one).equal(one) and isinstance(torch.nn.Parameter(one, requires_grad=False), torch.nn.Parameter)


REFUSED = [
    (lambda q: torch.quantize_per_tensor(ROWS, 0.1, 300, torch.quint8), RuntimeError, "zero_point 300 is above upper bound"),
    (lambda q: torch.quantize_per_tensor(ROWS.int(), 0.1, 0, torch.quint8), RuntimeError, "Quantize only works on Float Tensor, got Int"),
    (lambda q: torch.quantize_per_tensor(ROWS, 0.1, 0, torch.float32), RuntimeError, "ScalarType Float is not supported in new_qtensor."),
    (lambda q: torch.quantize_per_channel(ROWS, torch.ones(1), torch.zeros(1), 0, torch.qint8), RuntimeError, "length of scales must equal to channel, expected 3 got, 1"),
    (lambda q: q + q, NotImplementedError, "Could not run 'aten::add.Tensor' with arguments from the 'QuantizedCPU' backend"),
    (lambda q: q.float(), RuntimeError, "Creation of quantized tensor requires quantized dtype like torch.quint8"),
    (lambda q: q.numpy(), TypeError, "Got unsupported ScalarType QUInt8"),
    (lambda q: q.q_per_channel_scales(), RuntimeError, "kPerChannelAffine"),
    (lambda q: q.requires_grad_(), RuntimeError, "only Tensors of floating point dtype can require gradients"),
    (lambda q: q.is_signed(), RuntimeError, "isSignedType not supported for quantized types"),
    (lambda q: ROWS.q_scale(), NotImplementedError, "Could not run 'aten::q_scale' with arguments from the 'CPU' backend"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refused(one, call, error, words):
    with pytest.raises(error, match=words):
        call(one)


def test_files(one, rows):
    for zipped in (True, False):
        file = io.BytesIO()
        torch.save([one, rows, one.t()], file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        a, b, c = torch.load(file)
        assert a.equal(one) and b.equal(rows) and c.equal(one.t()) and a.untyped_storage().data_ptr() == c.untyped_storage().data_ptr()


def test_pools_and_normalisation():
    q = torch.quantize_per_tensor(torch.arange(32.0).view(2, 2, 2, 4) - 9, 0.5, 20, torch.quint8)
    assert torch.quantized_max_pool2d(q, 2).dequantize().flatten().tolist() == [-4, -2, 4, 6, 12, 14, 20, 22]
    assert torch.quantized_max_pool1d(q[0], 2, 2).dequantize().flatten().tolist() == [-8, -6, -4, -2, 0, 2, 4, 6]
    assert torch.quantized_max_pool3d(q.unsqueeze(0), (1, 2, 2)).dequantize().flatten().tolist() == [-4, -2, 4, 6, 12, 14, 20, 22]
    args = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.5]), torch.tensor([1.0, 2.0]), torch.tensor([4.0, 9.0]), 1e-5, 0.25, 8
    made = torch.quantized_batch_norm(q, *args)
    assert made.q_scale() == 0.25 and made.dequantize()[0, 1].flatten().tolist() == [-1.5, -0.75, -0.25, 0.5, 1.25, 1.75, 2.5, 3.25]
    with pytest.raises(NotImplementedError, match="Could not run 'aten::quantized_batch_norm' with arguments from the 'CPU' backend"):
        torch.quantized_batch_norm(torch.ones(1, 2, 2), *args)


def test_pads_and_masks(one):
    pad = torch.nn.functional.pad
    assert pad(one, (1, 0), value=0.5).int_repr()[0].tolist() == [15, 0, 0, 3, 7] and pad(one, (1, 0)).q_zero_point() == 10
    assert pad(one.view(1, 3, 4), (1, 0), mode="reflect").int_repr()[0, 1].tolist() == [13, 10, 13, 16, 19]
    mask = torch.tensor([True, False, False, True])
    assert one.masked_fill(mask, 0.5).int_repr()[1].tolist() == [15, 13, 16, 15] and one.int_repr()[1].tolist() == [10, 13, 16, 19]
    assert torch._choose_qparams_per_tensor(torch.tensor([-1.0, 2.0]), True) == (0.023622047244094488, 42)
    assert torch._choose_qparams_per_tensor(torch.tensor([-1.0, 2.0])) == (0.011764705882352941, 85)


def test_dimensions_of_one_come_and_go(rows):
    wide = rows.unsqueeze(0)
    assert (wide.shape, wide.q_per_channel_axis(), rows.unsqueeze(-1).q_per_channel_axis()) == ((1, 3, 4), 1, 0)
    assert wide.squeeze().q_per_channel_axis() == 0 and wide.squeeze(0).equal(rows)
    one_row = torch.quantize_per_channel(ROWS[:1], torch.ones(1), torch.zeros(1).long(), 0, torch.qint8)
    with pytest.raises(RuntimeError, match="Squeeze is only possible on non-axis dimension for Per-Channel"):
        one_row.squeeze()
    assert {torch.ones(2, dtype=d).dequantize().dtype for d in (torch.float64, torch.float16, torch.int32)} == {torch.float32}


def test_fixed_ranges_and_writes_in_place():
    values, F = torch.tensor([-1.0, 0.3, 2.0]), torch.nn.functional
    wide = torch.quantize_per_tensor(values, 0.1, 1, torch.qint32)
    assert torch.sigmoid(wide).q_scale() == 2.0**-32 and torch.sigmoid(wide).int_repr().tolist() == [1155094656, 2147483647, 2147483647]
    assert torch.tanh(wide).int_repr().tolist() == [-1635511040, 625589056, 2070233472]
    q = torch.quantize_per_tensor(values, 0.1, 10, torch.quint8)
    for write, whole, scale in (
        (lambda t: t.relu_(), [10, 13, 30], 0.1), (lambda t: F.hardtanh_(t, -0.2, 0.5), [8, 13, 15], 0.1),
        (lambda t: F.hardsigmoid(t, inplace=True), [85, 141, 213], 1 / 256), (F.leaky_relu_, [10, 13, 30], 0.1),
    ):  # fmt: skip
        target = q.clone()
        assert write(target) is target and target.int_repr().tolist() == whole and target.q_scale() == scale


def test_numbers_between_two_steps():
    # PyTorch 2.13: the zero point is added before the rounding, so an odd one turns the halves.
    x, dtypes = torch.tensor([[0.5, 1.5], [2.5, -0.5]]), (torch.quint8, torch.qint8, torch.qint32)
    for zero_point, expected in ((3, [[4, 4], [6, 2]]), (4, [[4, 6], [6, 4]])):
        for dtype in dtypes:
            assert torch.quantize_per_tensor(x, 1.0, zero_point, dtype).int_repr().tolist() == expected
            assert torch.quantize_per_channel(x, torch.ones(2), torch.full((2,), zero_point), 0, dtype).int_repr().tolist() == expected
    assert torch.quantize_per_channel(x, torch.ones(2), torch.tensor([3.5, 4.5]), 0, torch.quint8).int_repr().tolist() == [[4, 5], [7, 4]]


def test_the_older_constructor_is_refused():
    q = torch.quantize_per_tensor(ROWS, 0.1, 0, torch.quint8)
    for call in (lambda: q.new(2), lambda: q.new(device="cpu"), lambda: q.new(torch.Size([2, 3])), lambda: q.new([6]), lambda: q.new(ROWS)):
        with pytest.raises(RuntimeError, match="expected key in DispatchKeySet.* but got: QuantizedCPU"):
            call()


def test_parts_of_tensors_with_several_scales():
    """Rows of a tensor with a scale for each row have that scale; parts keep the scales of their channels (values of PyTorch 2.13)."""
    rows = torch.quantize_per_channel(torch.arange(6.0).view(2, 3), torch.tensor([0.5, 1.0]), torch.tensor([0, 1]), 0, torch.qint8)
    columns = torch.quantize_per_channel(torch.arange(6.0).view(2, 3), torch.tensor([0.5, 1.0, 2.0]), torch.tensor([0, 1, 2]), 1, torch.qint8)
    for part, scale, values in ((rows[1:], 1.0, [[3, 4, 5]]), (rows.unbind()[0], 0.5, [0, 1, 2]), (rows.split(1)[1], 1.0, [[3, 4, 5]]), (columns[:, 2], 2.0, [2, 4])):
        assert part.qscheme() == torch.per_tensor_affine and part.q_scale() == scale and part.dequantize().tolist() == values
    for part, scales, axis, values in (
        (columns[:, 1:], [1.0, 2.0], 1, [[1, 2], [4, 4]]),
        (rows[:, 1:], [0.5, 1.0], 0, [[1, 2], [4, 5]]),
        (columns[1], [0.5, 1.0, 2.0], 0, [3, 4, 4]),
        (rows.view(2, 3, 1), [0.5, 1.0], 0, [[[0], [1], [2]], [[3], [4], [5]]]),
        (rows.chunk(3, 1)[2], [0.5, 1.0], 0, [[2], [5]]),
        (rows[::1], [0.5, 1.0], 0, [[0, 1, 2], [3, 4, 5]]),
    ):
        assert part.q_per_channel_scales().tolist() == scales and part.q_per_channel_axis() == axis and part.dequantize().tolist() == values
    for call in (lambda: rows.view(3, 2), lambda: columns.flatten(), lambda: columns.view(1, 3, 2)):
        with pytest.raises(RuntimeError, match="length of scales must equal to channel, expected"):
            call()
    with pytest.raises(RuntimeError, match="Setting strides is possible only on uniformly quantized tensor"):
        rows.t()


def test_elements_are_written_by_indices():
    q = torch.quantize_per_tensor(torch.arange(6.0).view(2, 3), 0.5, 10, torch.quint8)
    pair, mask = (torch.tensor([0, 1]), torch.tensor([1, 2])), q.int_repr() > 12

    def written(index, value):
        x = q.clone()
        x[index] = value
        return x.int_repr().tolist()

    # The numbers are PyTorch 2.13's.
    assert written(pair, torch.tensor(2.5)) == written(pair, 2.5) == [[10, 15, 14], [16, 18, 15]]
    assert written(pair, torch.tensor([7.0, 1000.0])) == [[10, 24, 14], [16, 18, 255]]
    assert written(mask, torch.tensor(3.0)) == written(mask, 3) == [[10, 12, 16], [16, 16, 16]]
    assert written(torch.tensor([0]), -1) == [[8, 8, 8], [16, 18, 20]]
    assert q.index_put(pair, torch.tensor([1.0, 2.0])).int_repr().tolist() == [[10, 12, 14], [16, 18, 14]]
    rows = torch.quantize_per_channel(torch.ones(2, 2), torch.tensor([0.1, 0.2]), torch.tensor([0, 0]), 0, torch.qint8)
    for act, words in (
        (lambda: q.index_put(pair, torch.tensor([1.0, 2.0]), accumulate=True), "only supported for accumulate=False"),
        (lambda: rows.index_put((torch.tensor([0]),), torch.tensor([1.0])), "only supported for per tensor quantized tensors"),
        (lambda: q.index_put(pair, q[0, :2]), "should not be quantized"),
        (lambda: torch.ops.quantized.matmul(rows, rows, 0.1, 0), "Only per-tensor quantization is supported in Matmul."),
        (lambda: torch.ops.quantized.add(rows, rows, 0.1, 0), "Only per tensor quantization is supported in Add."),
    ):
        with pytest.raises(RuntimeError, match=words):
            act()


def test_deviations_and_storages():
    q = torch.quantize_per_tensor(torch.arange(6.0).view(2, 3), 0.5, 2, torch.quint8)
    assert q.std().dequantize() == 2.0 and q.std(1).dequantize().tolist() == [1.0, 1.0] and q.std(0, unbiased=False).dequantize().tolist() == [1.5] * 3
    assert torch.std(q, dim=0, correction=2).int_repr().tolist() == [255] * 3
    assert q.storage().tolist() == [2, 4, 6, 8, 10, 12] and q.storage()[0] == 2 and q.storage().dtype is torch.quint8


def test_what_is_no_number():
    nan, inf = float("nan"), float("inf")
    assert torch.quantize_per_tensor(torch.tensor([nan, 1.0, inf, -inf]), 0.1, 3, torch.qint32).int_repr().tolist() == [-(2**31), 13, 2**31 - 1, -(2**31)]
    for dtype, odd in ((torch.quint8, 0), (torch.qint8, 0), (torch.qint32, -(2**31))):
        rows = torch.quantize_per_channel(torch.tensor([[nan, 1.0]]), torch.tensor([0.1]), torch.tensor([0]), 0, dtype)
        assert rows.int_repr().tolist() == [[odd, 10]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q: torch.isclose(q, q), "isclose is not supported for quantized inputs."),
        (lambda q: torch.allclose(q, torch.ones(3, 4)), "QUInt8 did not match Float"),
        (lambda q: torch.quantize_per_channel(ROWS, torch.ones(4), torch.zeros(4).long(), -1, torch.qint8), "Got: -1Expected: [0, 2)"),
        (lambda q: torch.quantize_per_channel(ROWS, torch.ones(4), torch.zeros(4).long(), 2, torch.qint8), "Got: 2Expected: [0, 2)"),
    ],
)
def test_what_is_refused_of_quantized_tensors(one, call, words):
    with pytest.raises(RuntimeError) as raised:
        call(one)
    assert words in str(raised.value)


def test_resize():
    q = torch.quantize_per_tensor(torch.arange(6.0), 0.5, 3, torch.quint8)
    assert q.resize_(2, 2) is q and q.shape == (2, 2) and q.dequantize().tolist() == [[0, 1], [2, 3]]
    assert q.resize_(3, 4).shape == q.int_repr().shape == (3, 4) and q.dequantize().flatten()[:4].tolist() == [0, 1, 2, 3]
    channels = torch.quantize_per_channel(torch.ones(2, 2), torch.tensor([0.1, 0.2]), torch.tensor([0, 0]), 0, torch.qint8)
    with pytest.raises(RuntimeError, match="Can only resize quantized tensors with per-tensor schemes!"):
        channels.resize_(1, 2)


def test_copies_of_views_and_views_written_anew():
    numbers = torch.tensor([[0, 1, -2], [3, 0, 9]])
    q = torch.quantize_per_tensor(numbers.float(), 0.5, 3, torch.qint8)
    for got, want in [
        (torch.permute_copy(q, [1, 0]), numbers.T),
        (torch.narrow_copy(q, 1, 0, 2), numbers[:, :2]),
        (torch.unsafe_split(q, 2, 1)[1], numbers[:, 2:]),
        (torch.rot90(q, 3, [0, 1]), torch.rot90(numbers, 3, [0, 1])),
        (torch.select_scatter(q, q[0], 0, 1), numbers[[0, 0]]),
        (torch.full_like(q, 2), torch.full((2, 3), 2)),
        (torch.ops.aten.copy(q, torch.ones(2, 3)), torch.ones(2, 3)),
    ]:
        assert got.is_quantized and got.dequantize().tolist() == want.tolist()
    assert q.dequantize().tolist() == numbers.tolist()
    assert torch.nn.functional.gelu(q).dequantize().tolist() == [[0, 1, 0], [3, 0, 9]]


def test_hardtanh_has_limits_where_none_are_given():
    q = torch.quantize_per_tensor(torch.tensor([-3.0, 0.5, 9.0]), 0.5, 10, torch.quint8)
    assert torch.nn.functional.hardtanh(q).dequantize().tolist() == [-1, 0.5, 1]
    assert torch.nn.functional.hardtanh_(q, 0, 1).dequantize().tolist() == [0, 0.5, 1] == q.dequantize().tolist()


def test_a_tensor_becomes_a_view_of_itself():
    q = torch.quantize_per_tensor(torch.arange(6.0).view(2, 3), 0.5, 3, torch.quint8)
    row = q[0]
    assert q.t_() is q and q.shape == (3, 2) and q.stride() == (1, 3) and not q.is_contiguous()
    row.fill_(9.0)
    assert q.dequantize().tolist() == [[9, 3], [9, 4], [9, 5]] and q.int_repr().tolist() == [[21, 9], [21, 11], [21, 13]]
    assert q.unsqueeze_(0).shape == (1, 3, 2) and q.squeeze_().shape == (3, 2) and q.swapaxes_(0, 1).shape == q.transpose_(0, 0).shape == (2, 3)
    assert q.as_strided_((2,), (1,)).dequantize().tolist() == [9, 9] and q.q_scale() == 0.5
    channels = torch.quantize_per_channel(torch.ones(2, 3), torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, torch.qint8)
    assert channels.unsqueeze_(0).q_per_channel_axis() == 1 and channels.dequantize().tolist() == [[[1, 1, 1], [1, 1, 1]]]
    with pytest.raises(RuntimeError, match="only on uniformly quantized tensor"):
        channels.transpose_(0, 1)


def test_to_the_tensors_own_dtype():
    q = torch.quantize_per_tensor(torch.ones(2), 0.5, 3, torch.quint8)
    assert q.to(torch.quint8) is q and q.to("cpu", torch.quint8) is q and q.to() is q
    copied = q.to(dtype=torch.quint8, copy=True)
    assert copied is not q and copied.q_zero_point() == 3 and copied.dequantize().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q: q.index_select(0, torch.tensor([0])), "Only per_tensor quantized quantized tensors are supported by index_select"),
        (lambda q: q.topk(1), "Top-K is only supported on per-tensor quantization"),
        (lambda q: torch.cat([q, q]), "Only per-tensor quantization is supported in 'cat'!"),
        (lambda q: q.max(), "Max operator for quantized tensors only works for per tensor quantized tensors."),
        (lambda q: torch.nn.functional.pad(q, (1, 1)), "Only per-tensor padding is supported"),
        (lambda q: q.sigmoid(), "kPerTensorAffine"),
        (lambda q: q.tanh(), "kPerTensorAffine"),
        (lambda q: q.copy_(torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 1, torch.qint8)), "Quantized Copy only works with same qscheme"),
    ],
)
def test_what_one_scale_is_for(call, words):
    q = torch.quantize_per_channel(torch.ones(2, 3), torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, torch.qint8)
    with pytest.raises(RuntimeError) as raised:
        call(q)
    assert words in str(raised.value)
