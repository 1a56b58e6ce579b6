"""Operators that change the geometry of a tensor itself, on views of something that was computed: the gradient is that of the view."""

import cresset
import pytest
from cresset.autograd import forward_ad

CHANGES = {
    "transpose_": (lambda x: x.transpose_(0, 1), lambda x: x.transpose(0, 1)),
    "t_": (lambda x: x.t_(), lambda x: x.t()),
    "swapaxes_": (lambda x: x.swapaxes_(0, -1), lambda x: x.swapaxes(0, -1)),
    "swapdims_": (lambda x: x.swapdims_(1, 0), lambda x: x.swapdims(1, 0)),
    "unsqueeze_": (lambda x: x.unsqueeze_(1), lambda x: x.unsqueeze(1)),
    "squeeze_": (lambda x: x.unsqueeze_(0).squeeze_(), lambda x: x),
    "squeeze_.dim": (lambda x: x.unsqueeze_(0).squeeze_(0), lambda x: x),
    "squeeze_.dims": (lambda x: x.unsqueeze_(0).squeeze_([0]), lambda x: x),
    "as_strided_": (lambda x: x.as_strided_((2,), (1,)), lambda x: x.as_strided((2,), (1,))),
    "twice": (lambda x: x.t_().unsqueeze_(0).transpose_(0, 2), lambda x: x.t().unsqueeze(0).transpose(0, 2)),
}
VIEWS = {
    "no view": lambda t: t.view(2, 2).clone(),
    "view": lambda t: t.view(2, 2),
    "narrowed": lambda t: t.view(2, 2)[:, :],
    "transposed": lambda t: t.view(2, 2).t(),
    "strided": lambda t: t.as_strided((2, 2), (1, 2), 0),
}


def gradients(change, view, after, dtype):
    leaf = cresset.arange(1.0, 5.0).to(dtype).requires_grad_()
    base = leaf * 2
    y = after(change(view(base)))
    weight = cresset.arange(1.0, y.numel() + 1).reshape(y.shape).to(dtype)
    (first,) = cresset.autograd.grad((y * y * weight).sum().abs(), leaf, create_graph=True)
    (second,) = cresset.autograd.grad((first * first).sum().abs(), leaf)
    return y.detach(), first.detach(), second


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.complex128], ids=str)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", CHANGES)
def test_gradient(name, view, dtype):
    inplace, functional = CHANGES[name]
    for after in (lambda y: y, lambda y: y.exp_() if y.dtype == cresset.float64 else y.mul_(2)):
        have = gradients(inplace, VIEWS[view], after, dtype)
        want = gradients(functional, VIEWS[view], lambda y, after=after: after(y.clone()), dtype)
        for h, w in zip(have, want):
            assert h.shape == w.shape and cresset.allclose(h, w)


def test_the_base_keeps_its_place():
    leaf = cresset.arange(4.0, requires_grad=True)
    base = leaf.clone()
    view = base.view(2, 2)
    view.transpose_(0, 1)
    weight = cresset.tensor([1.0, 10.0, 100.0, 1000.0])
    assert cresset.autograd.grad((base * weight).sum(), leaf)[0].tolist() == weight.tolist()


def test_a_change_of_the_base_reaches_the_changed_view():
    leaf = cresset.arange(4.0, requires_grad=True)
    base = leaf.clone()
    view = base.view(2, 2).transpose_(0, 1)
    base.mul_(3)
    weight = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert cresset.autograd.grad((view * weight).sum(), leaf)[0].tolist() == [3.0, 9.0, 6.0, 12.0]


SEEDS = {  # the same values, laid out in other ways: 8 to 16 in rows of three
    "rows": lambda base: base[7:16].clone().view(3, 3), "with an offset": lambda base: base[7:16].view(3, 3),
    "columns": lambda base: base[7:16].view(3, 3).t().contiguous().t(),
}  # fmt: skip


@pytest.mark.parametrize("layout", SEEDS)
def test_gradients_of_as_strided_scatter_whatever_the_layout_of_the_seed(layout):
    seed = SEEDS[layout](cresset.arange(1.0, 41))
    x, part = cresset.zeros(3, 3, requires_grad=True), cresset.zeros(2, 2, requires_grad=True)
    of_x, of_part = cresset.autograd.grad(cresset.as_strided_scatter(x, part, (2, 2), (1, 2), 1), (x, part), seed)
    assert of_x.tolist() == [[8, 0, 0], [0, 0, 13], [14, 15, 16]] and of_part.tolist() == [[9, 11], [10, 12]]


def test_gradients_of_as_strided_scatter_follow_the_layout_of_self():
    seed, part = cresset.arange(1.0, 10).view(3, 3), cresset.zeros(2, 2, requires_grad=True)
    columns = cresset.zeros(3, 3).t().requires_grad_()
    of_x, of_part = cresset.autograd.grad(cresset.as_strided_scatter(columns, part, (2, 2), (1, 2), 1), (columns, part), seed)
    assert of_x.tolist() == [[1, 0, 3], [0, 0, 6], [0, 8, 9]] and of_part.tolist() == [[4, 2], [7, 5]]
    shifted = cresset.zeros(20)[4:13].view(3, 3).requires_grad_()
    of_x, of_part = cresset.autograd.grad(cresset.as_strided_scatter(shifted, part, (2, 2), (1, 2)), (shifted, part), seed)
    assert of_x.tolist() == [[0, 0, 0], [0, 5, 6], [7, 8, 9]] and of_part.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("layout", SEEDS)
def test_tangents_of_as_strided_whatever_their_layout(layout):
    seed = SEEDS[layout](cresset.arange(1.0, 41))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(cresset.zeros(3, 3), seed)
        part = cresset.as_strided_scatter(dual, cresset.zeros(2, 2), (2, 2), (1, 2), 1)
        assert forward_ad.unpack_dual(part).tangent.tolist() == [[8, 0, 0], [0, 0, 13], [14, 15, 16]]
        for view in (dual.as_strided((2, 2), (1, 2), 1), cresset.as_strided_copy(dual, (2, 2), (1, 2), 1)):
            assert forward_ad.unpack_dual(view).tangent.tolist() == [[9, 11], [10, 12]]


def test_second_derivative_of_as_strided_of_expanded_columns():
    x = cresset.tensor([[2.0, 9.0, 3.0]])[:, ::2].expand(3, 2).requires_grad_()
    (first,) = cresset.autograd.grad((x.as_strided((2,), (2,), 0) ** 3).sum(), x, create_graph=True)
    (second,) = cresset.autograd.grad(first.sum(), x)
    assert cresset.allclose(first, cresset.tensor([4.0, 9.0]).expand(3, 2)) and cresset.allclose(second, cresset.tensor([4.0, 6.0]).expand(3, 2))
