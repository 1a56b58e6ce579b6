"""Losses of classes and distances, and _trilinear, against values and errors that PyTorch gave."""

import cresset
import pytest

X = [[0.5, -1.25, 2.0, 0.25], [1.5, 0.75, -0.5, 1.0], [-2.0, 0.5, 0.5, -0.5]]
WEIGHT = [0.5, 2.0, 1.0, 0.25]
# p, margin, weight, reduction, loss, gradient of its sum
MULTI = [
    (1, 1, None, 1, [0.145833], [0, 0, 0, 0, -0.166667, 0.083333, 0, 0.083333, 0, -0.083333, 0.083333, 0]),
    (2, 0.5, WEIGHT, 2, [0.125], [0, 0, 0, 0, 0, 0, 0, 0, 0, -0.5, 0.5, 0]),
    (1, 1.5, WEIGHT, 0, [0, 0.21875, 1], [0, 0, 0, 0, -0.25, 0.125, 0, 0.125, 0, -1, 0.5, 0.5]),
    (2, 1, None, 0, [0, 0.078125, 0.25], [0, 0, 0, 0, -0.375, 0.125, 0, 0.25, 0, -0.5, 0.5, 0]),
]
LABELS = [[2, 0, -1, 1], [3, 3, -1, 0], [-1, 2, 1, 0]]
IS_TARGET = [[1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
LABEL_LOSSES = [0.1875, 1.125, 0.0]
LABEL_GRADS = [-0.25, 0, 0, 0.25, 0.5, 0.5, 0, -1, 0, 0, 0, 0]


def scores():
    return cresset.tensor(X, dtype=cresset.float64, requires_grad=True)


def close(t, numbers):
    assert t.flatten().tolist() == pytest.approx(numbers, abs=1e-6)


@pytest.mark.parametrize("p, margin, weight, reduction, loss, grads", MULTI)
def test_multi_margin_loss(p, margin, weight, reduction, loss, grads):
    x, target = scores(), cresset.tensor([2, 0, 1])
    weight = weight and cresset.tensor(weight, dtype=cresset.float64)
    y = cresset.ops.aten.multi_margin_loss(x, target, p, margin, weight, reduction)
    close(y, loss)
    close(cresset.autograd.grad(y.sum(), x)[0], grads)
    ones = cresset.ones_like(y).detach()
    close(cresset.ops.aten.multi_margin_loss_backward(ones, x, target, p, margin, weight, reduction), grads)


@pytest.mark.parametrize("reduction, factor", [(0, 1), (1, 1 / 3), (2, 1)])
def test_multilabel_margin_loss(reduction, factor):
    x, target = scores(), cresset.tensor(LABELS)
    y, is_target = cresset.ops.aten.multilabel_margin_loss_forward(x, target, reduction)
    close(y, LABEL_LOSSES if reduction == 0 else [factor * sum(LABEL_LOSSES)])
    assert is_target.tolist() == IS_TARGET
    grads = [factor * g for g in LABEL_GRADS]
    close(cresset.autograd.grad(y.sum(), x)[0], grads)
    close(cresset.ops.aten.multilabel_margin_loss_backward(cresset.ones_like(y).detach(), x, target, reduction, is_target), grads)
    assert cresset.equal(cresset.ops.aten.multilabel_margin_loss(x, target, reduction), y)


def test_gradient_at_the_margin():
    """A class exactly at the margin gets no gradient."""
    x = cresset.tensor([[1.0, 0.0]], requires_grad=True)
    y = cresset.nn.functional.multi_margin_loss(x, cresset.tensor([0]))
    assert cresset.autograd.grad(y, x)[0].tolist() == [[0, 0]]
    z = cresset.nn.functional.multilabel_margin_loss(x, cresset.tensor([[0, -1]]))
    assert cresset.autograd.grad(z, x)[0].tolist() == [[0, 0]]


def test_nll_loss2d():
    x = (cresset.arange(24.0).view(2, 3, 2, 2) / 8).requires_grad_()
    target = cresset.tensor([[[0, 1], [2, 0]], [[1, 1], [0, 2]]])
    y, total = cresset.ops.aten.nll_loss2d_forward(x, target, None, 1, 0)
    close(y, [-(5 + 10 + 16 + 17 + 23) / 8 / 5])
    assert total.item() == 5
    want = cresset.autograd.grad(y, x)[0]
    assert cresset.equal(cresset.ops.aten.nll_loss2d_backward(cresset.tensor(1.0), x, target, None, 1, 0, total), want)
    with pytest.raises(RuntimeError, match=r"only batches of spatial targets supported \(3D tensors\) but got targets of dimension: 2"):
        cresset.ops.aten.nll_loss2d_forward(x, target[0], None, 1, -100)


def test_trilinear():
    i1, i2, i3 = cresset.arange(6.0).view(3, 2), cresset.arange(12.0).view(3, 4) - 5, cresset.arange(40.0).view(5, 2, 4) / 8
    y = cresset._trilinear(i1, i2, i3, [1, 3], [1, 2], [0], [2, 3])
    assert y.tolist() == [[-9, -23, -37, -51, -65], [8, 18, 28, 38, 48], [81, 243, 405, 567, 729]]
    with pytest.raises(RuntimeError, match=r"unroll_dim must be in \[0,3\]"):
        cresset._trilinear(i1, i2, i3, [1, 3], [1, 2], [0], [2, 3], 4)


@pytest.mark.parametrize("call, words", [
    (lambda x, f: f.multi_margin_loss(x, cresset.tensor([0, 1])), r"target tensor should be 1-D with size equal to the number of input samples"),
    (lambda x, f: f.multi_margin_loss(x, cresset.tensor([0, 1, 4])), "target out of range"),
    (lambda x, f: f.multi_margin_loss(x, cresset.tensor([0, 1, 2]), weight=cresset.ones(3)), "inconsistent weight size, expected 4 but got"),
    (lambda x, f: f.multi_margin_loss(x, cresset.tensor([0, 1, 2.0])), "expected scalar type Long but found Float"),
    (lambda x, f: f.multi_margin_loss(x.long(), cresset.tensor([0, 1, 2])), "not implemented for 'Long'"),
    (lambda x, f: f.multilabel_margin_loss(x, cresset.tensor([0, 1, -1, 2])), r"inconsistent target size: \[4\] for input of size: \[3, 4\]"),
    (lambda x, f: f.multilabel_margin_loss(x, cresset.tensor([[0, 4, -1, 2]] * 3)), "argument #2 'target' is out of range"),
])  # fmt: skip
def test_errors(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(cresset.tensor(X), cresset.nn.functional)


@pytest.mark.parametrize("sizes, target, error, words", [
    ((), (), ValueError, r"Expected 1 or more dimensions \(got 0\)"),
    ((), (1,), ValueError, r"Expected 1 or more dimensions \(got 0\)"),
    ((3,), (2,), ValueError, "For 1D input, 1D target must have size 1, but got target size: 2"),
    ((3,), (2, 2), RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    ((2, 3), (), ValueError, r"Expected input batch_size \(2\) to match target batch_size \(0\)"),
    ((2, 3), (2, 2), RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    ((2, 3, 4), (2, 2), RuntimeError, r"Expected target size \[2, 4\], got \[2, 2\]"),
    ((1, 2, 3, 2), (2, 2), ValueError, r"Expected input batch_size \(1\) to match target batch_size \(2\)"),
    ((1, 2, 3, 2), (1,), RuntimeError, r"only batches of spatial targets supported \(3D tensors\) but got targets of dimension: 1"),
    ((2, 3, 4, 5, 6), (2, 4, 5), RuntimeError, r"Expected target size \[2, 4, 5, 6\], got \[2, 4, 5\]"),
])  # fmt: skip
def test_sizes_of_targets(sizes, target, error, words):
    with pytest.raises(error, match=words):
        cresset.nn.functional.nll_loss(cresset.ones(sizes), cresset.zeros(target, dtype=cresset.int64))


def test_one_sample_has_a_total_of_weights():  # of PyTorch 2.13, also where the loss is not reduced
    assert cresset.ops.aten.nll_loss_forward(cresset.tensor([0.5]), cresset.tensor([0]), None, 0, 1)[1].item() == 1


def test_a_huber_loss_is_not_rounded():
    with pytest.raises(RuntimeError, match="result type Double can't be cast to the desired output type Long"):
        cresset.nn.functional.huber_loss(cresset.arange(3), cresset.tensor([0.5, 1, 2], dtype=cresset.float64), reduction="sum")
