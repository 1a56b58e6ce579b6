"""MaskedTensor: what its mask does to operators, reductions, views, gradients and text."""

import copy
import io
import warnings

import cresset
import cresset.nn.functional as F
import pytest
from cresset.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
from cresset.masked.maskedtensor import binary, reductions, unary

DATA = cresset.tensor([[0.5, 1.0, 2.0, -3.0], [3.0, -4.0, 5.0, 0.25]])
MASK = cresset.tensor([[True, False, True, False], [False, True, False, True]])
LAYOUTS = ("strided", "coo", "csr")


def make(data=DATA, mask=MASK, layout="strided", **options):
    if layout != "strided":
        mask = mask.to_sparse().coalesce() if layout == "coo" else mask.to_sparse_csr()
        data = data.sparse_mask(mask)
    return masked_tensor(data, mask, **options)


def same(masked, data, mask=MASK):
    dense = masked.to_dense()
    assert cresset.equal(dense.get_mask(), mask)
    cresset.testing.assert_close(dense.to_tensor(0), data.detach().masked_fill(~mask, 0), equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [n for n in unary.UNARY_NAMES if n not in ("pow", "clamp", "clip", "bitwise_not")])
def test_operators_of_one_tensor_keep_the_mask(name, layout):
    op = getattr(cresset.ops.aten, name)
    data = DATA.abs() / 8
    same(op(make(data, layout=layout)), op(data))
    if name + "_" in unary.INPLACE_UNARY_NAMES and name not in ("signbit",):
        masked = make(data, layout=layout)
        assert getattr(cresset.ops.aten, name + "_")(masked) is masked
        same(masked, op(data))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", binary.BINARY_NAMES)
def test_operators_of_two_tensors_keep_the_mask(name, layout):
    op = getattr(cresset.ops.aten, name)
    data = DATA.to(cresset.int32).abs() + 1 if name.startswith("bitwise") else DATA
    same(op(make(data, layout=layout), make(data + 1, layout=layout)), op(data, data + 1))
    if layout == "strided":
        same(op(make(data), data + 1), op(data, data + 1))
        same(op(data, make(data + 1)), op(data, data + 1))
    with pytest.raises(ValueError, match="Input masks must match"):
        op(make(data), make(data, ~MASK))


def test_numbers_broadcasting_and_keywords():
    same(1 - make(), 1 - DATA)
    same(2 * make() + 1, 2 * DATA + 1)
    same(make() > 1, DATA > 1)
    same(make().mul(DATA[0]), DATA * DATA[0])
    same(cresset.add(make(), make(), alpha=3), DATA * 4)
    same(cresset.div(make(), DATA, rounding_mode="floor"), DATA // DATA)
    same(make().clamp(-0.5, 0.5), DATA.clamp(-0.5, 0.5))
    same(cresset.clamp(make(), max=1.0), DATA.clamp(max=1.0))
    same(make() ** 2, DATA**2)
    one = make()
    one += 1
    same(one, DATA + 1)


VIEWS = [
    lambda x: x[0], lambda x: x[:, 1:3], lambda x: x[[1, 0]], lambda x: x[:, cresset.tensor([0, 3])],
    lambda x: x.t(), lambda x: x.T, lambda x: x.view(4, 2), lambda x: x.reshape(-1), lambda x: x.flatten(), lambda x: x.permute(1, 0),
    lambda x: x.unsqueeze(1), lambda x: x.expand(3, 2, 4), lambda x: cresset.cat([x, x]), lambda x: cresset.stack([x, x], 1), lambda x: x.split(1)[1],
    lambda x: x.chunk(2, 1)[1], lambda x: x.unbind(1)[2], lambda x: x.unfold(1, 2, 2), lambda x: x.transpose(0, 1).contiguous(), lambda x: x.flip(1),
    lambda x: x.roll(1), lambda x: x.repeat(2, 1), lambda x: x.clone(), lambda x: x.detach(), lambda x: x.narrow(1, 1, 2), lambda x: x.squeeze(),
    lambda x: F.unfold(x[None, None], (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(VIEWS)))
def test_what_moves_elements_moves_the_mask(at):
    view = VIEWS[at]
    mask = view(MASK.to(DATA.dtype)) != 0
    same(view(make()), view(DATA), mask)
    leaf, plain = make(requires_grad=True), DATA.clone().requires_grad_()
    if view(leaf).requires_grad:
        view(leaf).sum().backward()
        (view(plain) * mask).sum().backward()
        same(leaf.grad, plain.grad, leaf.grad.get_mask())
        assert not ((plain.grad != 0) & ~leaf.grad.get_mask()).any()


REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "all", "var", "std", "norm")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_reductions_leave_out_what_is_masked(name, dim, layout):
    assert name in reductions.REDUCE_NAMES
    mask = cresset.tensor([[True, False, True, True], [False, False, True, True]])
    result = getattr(cresset, name)(make(mask=mask, layout=layout), **({} if dim is None else {"dim": dim}))
    slices = [DATA[mask]] if dim is None else [d[m] for d, m in zip(DATA.unbind(1 - dim), mask.unbind(1 - dim), strict=True)]
    kept = cresset.tensor([len(s) > 0 for s in slices])
    assert cresset.equal(result.get_mask().reshape(-1), kept)
    for got, values, line in zip(result.get_data().reshape(-1), slices, range(len(slices)), strict=False):
        if not len(values):
            continue
        if name.startswith("arg"):
            best = DATA.reshape(-1) if dim is None else DATA.select(1 - dim, line)
            assert best[int(got)] == (values.max() if name == "argmax" else values.min())
        else:
            cresset.testing.assert_close(got.to(cresset.float32), getattr(cresset, name)(values).to(cresset.float32), equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "var", "std", "norm"])
def test_gradients_of_reductions(name):
    data = DATA.clone()
    data[0, 1] = float("nan")  # left out: it must not spread
    leaf, plain = make(data, requires_grad=True), data[MASK].clone().requires_grad_()
    getattr(cresset, name)(leaf).backward()
    getattr(cresset, name)(plain).backward()
    assert is_masked_tensor(leaf.grad)
    cresset.testing.assert_close(leaf.grad.get_data()[MASK], plain.grad)


def test_softmax_and_its_gradient():
    leaf, plain = make(requires_grad=True), DATA.masked_fill(~MASK, -float("inf")).requires_grad_()
    (leaf.softmax(1) * DATA).sum().backward()
    (plain.softmax(1) * DATA).sum().backward()
    same(leaf.softmax(1), plain.softmax(1))
    same(leaf.grad, plain.grad)


def test_where_takes_the_mask_of_each_side():
    a, b = make(requires_grad=True), make(mask=~MASK, requires_grad=True)
    chosen = cresset.where(MASK, a.exp(), b)
    same(chosen, cresset.where(MASK, DATA.exp(), DATA), cresset.ones_like(MASK))
    chosen.sum().backward()
    same(a.grad, DATA.exp())
    same(b.grad, cresset.ones_like(DATA), ~MASK)


def test_the_two_ways_to_make_one():
    data = DATA.clone().requires_grad_()
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        copied = masked_tensor(data, MASK, requires_grad=True)
    copied.mean().backward()
    assert data.grad is None
    same(copied.grad, cresset.full_like(DATA, 0.25))
    as_masked_tensor(data, MASK).mean().backward()
    same(data.grad, cresset.full_like(DATA, 0.25))
    source = DATA.clone()
    masked_tensor(source, MASK).add_(1)
    as_masked_tensor(source, MASK).add_(1)
    assert cresset.equal(source, DATA)


def test_sparse_layouts_come_back():
    for to, back in (("to_sparse", "coo"), ("to_sparse_csr", "csr")):
        leaf = make(requires_grad=True)
        sparse = getattr(leaf, to)()
        assert getattr(sparse, f"is_sparse_{back}")() and not leaf.is_sparse_coo() and not leaf.is_sparse_csr()
        (sparse.to_dense() * DATA).sum().backward()
        same(leaf.grad, DATA)
        leaf = make(layout=back, requires_grad=True)
        (leaf.to_dense() * DATA).sum().backward()
        assert leaf.grad.layout is leaf.layout
        same(leaf.grad, DATA)
    for value in (True, False):
        mask = cresset.tensor(value).to_sparse()
        assert masked_tensor(cresset.tensor(2.0).sparse_mask(mask), mask).to_dense().get_mask().item() is value


REFUSED = [
    (TypeError, "data must be a Tensor", lambda: masked_tensor(0, MASK)),
    (TypeError, "data must be a Tensor", lambda: masked_tensor(make(), MASK)),
    (TypeError, "mask must be a Tensor", lambda: masked_tensor(DATA, 0)),
    (TypeError, "data and mask must have the same layout", lambda: masked_tensor(DATA, MASK.to_sparse())),
    (TypeError, "data layout of .*sparse_csc is not supported", lambda: masked_tensor(DATA.to_sparse_csc(), MASK.to_sparse_csc())),
    (TypeError, "mask must have dtype bool", lambda: masked_tensor(DATA, MASK.int())),
    (TypeError, "complex64 is not supported in MaskedTensor", lambda: masked_tensor(DATA.to(cresset.complex64), MASK)),
    (ValueError, r"data.dim\(\) must equal mask.dim\(\)", lambda: masked_tensor(DATA, MASK[0])),
    (ValueError, r"data.size\(\) must equal mask.size\(\)", lambda: masked_tensor(DATA, MASK.t())),
    (ValueError, "both sparse COO tensors but do not have the same indices", lambda: masked_tensor(DATA.to_sparse(), (~MASK).to_sparse())),
    (ValueError, "do not share either crow or col indices", lambda: masked_tensor(DATA.to_sparse_csr(), (~MASK).to_sparse_csr())),
    (RuntimeError, "Only Tensors of floating point", lambda: masked_tensor(MASK, MASK, requires_grad=True)),
    (TypeError, "aten.max.default", lambda: make().max()),
    (TypeError, "aten.mm.default", lambda: cresset.mm(make(), DATA.t())),
    (TypeError, "additional Tensor arguments", lambda: cresset.clamp(make(), min=DATA)),
    (TypeError, "cannot be written into a plain tensor", lambda: DATA.clone().copy_(make())),
    (TypeError, "cannot be written into a plain tensor", lambda: DATA.clone().add_(make())),
    (ValueError, "do not have is_contiguous", lambda: make().to_sparse().is_contiguous()),
    (ValueError, "expected a boolean tensor", lambda: make()._is_any_true()),
    (ValueError, "expected a mask tensor", lambda: make()[0, 1].item()),
]


@pytest.mark.parametrize("at", range(len(REFUSED)))
def test_refusals(at):
    error, words, call = REFUSED[at]
    with pytest.raises(error, match=words):
        call()


def test_text():
    a = masked_tensor(cresset.tensor([[0.0, 1.0], [-2.5, 3.0]]), cresset.tensor([[True, False], [True, True]]))
    assert repr(a) == str(a) == "MaskedTensor(\n  [\n    [  0.0000,       --],\n    [ -2.5000,   3.0000]\n  ]\n)"
    assert repr(a[0]) == "MaskedTensor(\n  [  0.0000,       --]\n)"
    assert repr(a[1, 0]) == "MaskedTensor( -2.5000, True)" and repr(a[0, 1]) == "MaskedTensor(--, False)"
    assert repr(a.int()[0]) == "MaskedTensor(\n  [0,       --]\n)" and repr((a > 0)[0]) == "MaskedTensor(\n  [False,       --]\n)"
    assert repr(a.to_sparse()) == repr(a)


def test_copies_and_what_reads_one():
    a = make(requires_grad=True)
    for b in (copy.deepcopy(a), cresset.load(_saved(a), weights_only=False)):
        assert is_masked_tensor(b) and b.requires_grad and b.get_mask() is not MASK
        same(b, DATA)
    assert cresset.equal(make().to_tensor(9.0), DATA.masked_fill(~MASK, 9.0))
    assert make()[0, 0].item() == 0.5 and float(make()[1, 1]) == -4
    cresset.testing.assert_close(cresset.masked.sum(make()), DATA[MASK].sum())
    assert isinstance(make(), MaskedTensor) and make().double().dtype is cresset.float64
    with warnings.catch_warnings(), cresset.autograd.detect_anomaly(check_nan=True):
        warnings.simplefilter("ignore")
        leaf = make(requires_grad=True)
        leaf.sum().backward()
        same(leaf.grad, cresset.ones_like(DATA))


def _saved(value):
    file = io.BytesIO()
    cresset.save(value, file)
    file.seek(0)
    return file


def test_what_is_asked_of_each_element():
    t = masked_tensor(cresset.tensor([-1.0, float("nan"), float("inf"), 2.0]), cresset.tensor([True, True, True, False]))
    assert str(cresset.isfinite(t)).split() == ["MaskedTensor(", "[True,", "False,", "False,", "--]", ")"]
    assert str(cresset.isreal(t)).split() == ["MaskedTensor(", "[True,", "True,", "True,", "--]", ")"]
