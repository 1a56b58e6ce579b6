"""Errors and warnings of single operators that programs match, and what is refused."""

import warnings

import cresset
import pytest

X = cresset.rand(2, 3, 4, 5)
I8 = cresset.ones(3, dtype=cresset.int8)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: X[0, 5], IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        (lambda: X[:, :, 0, 5], IndexError, "index 5 is out of bounds for dimension 3 with size 5"),
        (lambda: X[..., 9], IndexError, "index 9 is out of bounds for dimension 1 with size 5"),
        (lambda: X[0, cresset.tensor(9)], IndexError, "index 9 is out of bounds for dimension 1 with size 3"),
        (lambda: X[0][9], IndexError, "index 9 is out of bounds for dimension 0 with size 3"),
        (lambda: cresset.addr(I8, I8, I8, beta=1.5), RuntimeError, "For integral input tensors, argument beta must not be a floating point number"),
        (lambda: cresset.addr(I8, I8, I8, alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results"),
        (lambda: cresset.addr(X[0, 0, 0], X[0, 0, 0], X[0, 0, 0], alpha=1j), RuntimeError, "argument alpha must not be a complex number"),
        (lambda: cresset.einsum("", []), ValueError, "at least one operand"),
        (lambda: cresset.einsum("a->... .", X[0, 0, 0]), RuntimeError, r"found '.' for output but an ellipsis \(...\) was already found"),
        (lambda: cresset.einsum("a->1", X[0, 0, 0]), RuntimeError, "invalid subscript given at index 3"),
        (lambda: cresset.einsum("...,...", X[0, 0], X[0, 0, :3]), RuntimeError, "dimension 0 covered by ellipsis in operand 1 has size 3 which does not broadcast"),
        (lambda: cresset.einsum(X[0, 0, 0], [52]), ValueError, r"not within the valid range \[0, 52\)"),
        (lambda: cresset.einsum("ij"), ValueError, "at least one operand"),
        (lambda: cresset.rand([]).index_put([], cresset.ones(1), True), RuntimeError, "shape mismatch"),
        (lambda: cresset.arange(4).index_put((cresset.tensor([True, False, True, False]),), cresset.ones(3)), RuntimeError, "shape mismatch"),
        (lambda: cresset.arange(4).index_put((cresset.tensor([True, False, True, False]),), cresset.ones(2)), RuntimeError, "source and destination dtypes match"),
        (lambda: X[0, 0].diff(prepend=cresset.ones(4)), RuntimeError, "diff expects prepend or append to be the same dimension as input"),
        (lambda: X[0, 0].diff(dim=0, append=cresset.ones(1, 4)), RuntimeError, r"input.size\(1\) = 5, but got tensor.size\(1\) = 4"),
        (lambda: cresset.take_along_dim(X, X.argsort(0).int(), 0), RuntimeError, "dtype of indices should be Long"),
        (lambda: cresset.linalg.lstsq(cresset.rand(1, 1, 1), cresset.rand(3, 1)), RuntimeError, r"input.size\(-2\) should match other.size\(-2\)"),
        (lambda: cresset._check_tensor_all(True), TypeError, "cond must be a tensor"),
        (lambda: cresset._check_tensor_all(X), TypeError, "cond tensor must have dtype torch.bool"),
        (lambda: cresset._check_tensor_all(X > 2, lambda: "some words"), RuntimeError, "some words"),
        (lambda: cresset.solve(X, X), RuntimeError, "This function was deprecated since version 1.9 and is now removed"),
        (lambda: X.eig(), RuntimeError, "linalg.eig"),
    ],
)
def test_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_least_squares_of_several_right_sides():
    a, b = cresset.rand(2, 3, 2), cresset.rand(3, 1)
    cresset.testing.assert_close(cresset.linalg.lstsq(a, b).solution[1], cresset.linalg.lstsq(a[1], b).solution)
    vectors = cresset.rand(2, 3)
    cresset.testing.assert_close(cresset.linalg.lstsq(a, vectors).solution[1], cresset.linalg.lstsq(a[1], vectors[1]).solution)


def test_letters_of_einsum_as_numbers():
    a, b = cresset.randn(2, 3, 4), cresset.randn(4, 5)
    cresset.testing.assert_close(cresset.einsum(a, [0, 30, 1], b, [1, 51], [51, 30, 0]), cresset.einsum("AeB,Bz->zeA", a, b))
    cresset.testing.assert_close(cresset.einsum(a, [Ellipsis, 2], b, [2, 3]), a @ b)


def test_data_of_classes_that_see_operators():
    seen = []

    class Seen(cresset.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Seen(cresset.zeros(2))
    seen.clear()
    data = x.data
    assert seen == [cresset.ops.aten.detach.default]
    before = x._version
    data.add_(1)
    assert x._version == before


def test_older_orders_warn_each_time_when_asked():
    a = cresset.ones(2, 2)
    before = cresset.is_warn_always_enabled()
    cresset.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="This overload of addmm_ is deprecated"):
                a.clone().addmm_(1, a, a)
    finally:
        cresset.set_warn_always(before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a.clone().addmm_(1, a, a)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cresset.rand(3), lambda: cresset.randn(3), lambda: cresset.randint(5, (3,)), lambda: cresset.randperm(3), lambda: cresset.rand_like(I8.float()),
        lambda: cresset.normal(0.0, 1.0, (3,)), lambda: cresset.normal(X, 1.0), lambda: cresset.normal(X, X), lambda: cresset.bernoulli(X),
    ],
)  # fmt: skip
def test_random_numbers_are_new(make):
    assert make()._version == 0
    x = make()
    x.zero_()
    assert x._version == 1


def test_the_type_of_the_base_class():
    assert I8.type(cresset.Tensor).dtype == cresset.get_default_dtype()


def test_names_of_nodes():
    x = cresset.ones(2, requires_grad=True)
    assert (x * 2).grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad" and (x * 2).grad_fn.name() == "MulBackward0"
    with pytest.raises(TypeError, match="incompatible function arguments"):
        (x * x).grad_fn._raw_saved_self.register_hooks(lambda t: t)
