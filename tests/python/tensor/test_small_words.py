"""Errors and warnings of single operators that programs match, and what is refused."""

import subprocess
import sys

import warnings

import cresset
import pytest

X = cresset.rand(2, 3, 4, 5)
I8 = cresset.ones(3, dtype=cresset.int8)
C = cresset.tensor([1j, 2 + 1j])


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
        (lambda: cresset.deg2rad(C), RuntimeError, "deg2rad is not supported for complex tensors."),
        (lambda: cresset.rad2deg(C), RuntimeError, "rad2deg is not supported for complex tensors."),
        (lambda: cresset.isposinf(C), RuntimeError, "isposinf does not support complex inputs."),
        (lambda: cresset.isneginf(C), RuntimeError, "isneginf does not support complex inputs."),
        (lambda: cresset.heaviside(C, C), RuntimeError, "heaviside is not yet implemented for complex tensors."),
        (lambda: cresset.heaviside(X, C[0]), RuntimeError, "heaviside is not yet implemented for complex tensors."),
        (lambda: cresset.signbit(C), NotImplementedError, "signbit is not implemented for complex tensors."),
        (lambda: float(C[0]), RuntimeError, "value cannot be converted to type double without overflow"),
        (lambda: int(C[0]), RuntimeError, "value cannot be converted to type int64_t without overflow"),
        (lambda: cresset.nanmean(X, dtype=cresset.int), RuntimeError, r"nanmean\(\): could not infer output dtype. Optional dtype must be either"),
        (lambda: cresset.tensor(5)[:], IndexError, r"slice\(\) cannot be applied to a 0-dim tensor."),
        (lambda: cresset.is_floating_point(3), TypeError, r"is_floating_point\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: cresset.is_complex([1]), TypeError, r"is_complex\(\): argument 'input' \(position 1\) must be Tensor, not list"),
        (lambda: cresset.is_nonzero(1), TypeError, r"is_nonzero\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: cresset.is_same_size(1, X), TypeError, r"is_same_size\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: cresset.autograd.set_detect_anomaly("on"), TypeError, r"argument 'enabled' \(position 1\) must be bool, not str"),
        (lambda: cresset.autograd.set_detect_anomaly(True, check_nan=1), TypeError, r"argument 'check_nan' \(position 2\) must be bool, not int"),
        (lambda: cresset.use_deterministic_algorithms("on"), TypeError, r"argument 'mode' \(position 1\) must be bool, not str"),
        (lambda: cresset.use_deterministic_algorithms(True, warn_only=1), TypeError, "argument 'warn_only' must be bool, not int"),
        (lambda: cresset.solve(X, X), RuntimeError, "This function was deprecated since version 1.9 and is now removed"),
        (lambda: X.eig(), RuntimeError, "linalg.eig"),
    ],
)
def test_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_anomaly_mode_stays_off_when_it_is_refused():
    for wrong in ("off", 1):
        with pytest.raises(TypeError):
            cresset.autograd.set_detect_anomaly(wrong)
    assert not cresset.is_anomaly_enabled()


def test_sums_of_numbers_as_integers():
    """NaN is nothing before the cast; it became the smallest integer."""
    x = cresset.tensor([1.0, 2.0, 3.0, 4.0, float("nan"), 6.0])
    for dtype in (cresset.int32, cresset.int64, cresset.uint8):
        assert cresset.nansum(x, dtype=dtype).item() == 16
    assert cresset.nansum(x.view(2, 3), 1, dtype=cresset.int64).tolist() == [6, 10]


def test_none_stands_for_an_empty_list_of_dimensions():
    x = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert cresset.amax(x, None).item() == x.amax(dim=None).item() == 4
    assert cresset.amin(x, dim=None, keepdim=True).tolist() == [[1]]
    with pytest.raises(TypeError, match="must be tuple of ints, not NoneType"):
        x.flip(None)


def test_real_numbers_of_complex_types():
    assert float(cresset.tensor([2 + 0j])) == 2 and int(cresset.tensor(3 + 0j)) == 3


def test_a_slice_of_everything_is_a_view_that_was_sliced():
    x = cresset.ones(2, 3, requires_grad=True)
    assert [type(x[i].grad_fn).__name__ for i in (slice(None), slice(0, 2), slice(None, 9), ...)] == ["SliceBackward0"] * 3 + ["AliasBackward0"]
    y = cresset.zeros(3)
    y[:] = 2
    y[:].add_(1)
    assert y.tolist() == [3, 3, 3]


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
            with pytest.warns(UserWarning, match="A window was not provided"):
                cresset.stft(cresset.ones(8), 4, return_complex=True)
            with pytest.warns(UserWarning, match=r"^var\(\): degrees of freedom is <= 0"):
                cresset.var(cresset.ones(1))
            with pytest.warns(UserWarning, match=r"^std_mean\(\): degrees of freedom is <= 0"):
                cresset.std_mean(cresset.ones(1))
            with pytest.warns(UserWarning, match="torch.cross without specifying the dim arg is deprecated"):
                cresset.cross(cresset.ones(3, 3), cresset.ones(3, 3))
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


def test_limits_are_shown_in_six_digits():
    assert repr(cresset.iinfo(cresset.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    assert repr(cresset.iinfo(cresset.uint64)) == "iinfo(min=0, max=1.84467e+19, dtype=uint64)"
    assert repr(cresset.iinfo(cresset.int16)) == "iinfo(min=-32768, max=32767, dtype=int16)"


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    "a, b, rank, values",
    [
        ((1, 3, 3), (2, 3, 3), (1,), (1, 3)),
        ((2, 1, 4, 3), (1, 5, 4, 2), (2, 1), (2, 1, 3)),
        ((2, 3, 3), (1, 3, 3), (2,), (2, 3)),
        ((1, 3, 3), (0, 3, 3), (1,), (1, 3)),
    ],
)
def test_least_squares_tell_the_ranks_of_the_matrices_as_they_were_given(a, b, rank, values, device):
    found = cresset.linalg.lstsq(cresset.rand(a, device=device), cresset.rand(b, device=device), driver="gelsd")
    assert (tuple(found.rank.shape), tuple(found.singular_values.shape)) == (rank, values)


def test_least_squares_tell_the_rank_of_each_matrix():
    a = cresset.rand(2, 1, 4, 3)
    a[1, :, :, 0] = 0
    assert cresset.linalg.lstsq(a, cresset.rand(1, 5, 4, 2)).rank.tolist() == [[3], [2]]


@pytest.mark.parametrize("kind, text", [("cuda", "CUDA"), ("cuda:1", "CUDA"), ("xpu", "XPU")])
def test_tensors_on_devices_that_are_not_built_in(kind, text):
    x = cresset.ones(2)
    for call in (
        lambda: cresset.zeros(2, device=kind), lambda: x.to(kind), lambda: x.to(kind, cresset.float64), lambda: x.to(device=kind),
        lambda: cresset.zeros_like(x, device=kind), lambda: cresset.tensor([1.0], device=kind), lambda: cresset.nn.Linear(2, 2).to(kind),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=f"Torch not compiled with {text} enabled"):
            call()
    with pytest.raises(AssertionError), cresset.device(kind):
        cresset.ones(2)


@pytest.mark.parametrize("kind", ["mps", "hpu"])
def test_tensors_on_devices_that_only_a_backend_gives(kind):
    for call in (lambda: cresset.zeros(2, device=kind), lambda: cresset.ones(2).to(kind)):
        with pytest.raises(NotImplementedError, match=f"No backend is mounted as '{kind}'") as caught:
            call()
        assert "cresset doctor" in caught.value.__notes__[0]


def test_imaginary_parts_are_not_dropped_without_a_word():
    """PyTorch says it once in a process."""
    program = """
import warnings, cresset
warnings.simplefilter("always")
x = cresset.tensor([1 + 2j])
for convert in (x.bool, x.real.double, x.float, x.int):
    with warnings.catch_warnings(record=True) as said:
        convert()
    print([str(w.message) for w in said])
"""
    lines = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["[]", "[]", "['Casting complex values to real discards the imaginary part']", "[]"]


@pytest.mark.parametrize("sizes", [(), (2,), (0,)])
def test_lists_of_meta_tensors(sizes):
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        cresset.ones(sizes, device="meta").tolist()
