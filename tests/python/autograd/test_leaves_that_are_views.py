"""Leaves made as views (arange(6.).view(2, 3).requires_grad_()) are not changed in place while gradients are recorded."""

import pytest

import cresset

WORDS = "a view of a leaf Variable that requires grad is being used in an in-place operation"


def leaf():
    return cresset.arange(6.0).view(2, 3).requires_grad_()


def assign(x):
    x[0] = 1


@pytest.mark.parametrize(
    "change",
    [lambda x: x.add_(1), lambda x: x[0].add_(1), lambda x: x.t().mul_(2), lambda x: x.view(-1).zero_(), lambda x: x.fill_diagonal_(0), assign],
)
def test_changes_are_refused(change):
    x = leaf()
    with pytest.raises(RuntimeError, match=WORDS):
        change(x)
    assert x.is_leaf and x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_changes_that_no_gradient_sees():
    x = leaf()
    with cresset.no_grad():
        x[0].zero_()
    x.detach()[1].fill_(7)
    assert x.is_leaf and x.tolist() == [[0, 0, 0], [7, 7, 7]]


def test_views_of_plain_memory_take_gradients():
    base, weights = cresset.zeros(2, 3), cresset.ones(3, requires_grad=True)
    base[0].copy_(weights)
    base[1].add_(weights * 2)
    base.sum().backward()
    assert weights.grad.tolist() == [3, 3, 3]


@pytest.mark.parametrize("write", ["view", "base", "leaf", "detached", "other view"])
def test_views_of_a_leaf_that_is_a_view_keep_their_history(write):
    # The memory changes without autograd; the way from the view to the leaf does not. (PyTorch 2.13 makes the view one of the base, and the gradient is lost.)
    base = cresset.ones(3)
    leaf = base[:].requires_grad_()
    view = leaf[:]
    with cresset.no_grad():
        {"view": view, "base": base, "leaf": leaf, "detached": view.detach(), "other view": leaf[0:]}[write].mul_(2)
    assert view.requires_grad and not view.is_leaf and view.grad_fn is not None and not base.requires_grad
    (view * view).sum().backward()
    assert leaf.grad.tolist() == [4.0, 4.0, 4.0] and base.grad is None
