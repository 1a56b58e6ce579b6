"""tensor, as_tensor, factories: values, inferred dtypes, errors."""

import subprocess
import sys

import numpy as np
import pytest

import cresset as torch


@pytest.mark.parametrize(
    "data, dtype, values",
    [
        ([1, 2.5], torch.float32, [1.0, 2.5]),
        ([True, 2], torch.int64, [1, 2]),
        ([1 + 2j, 3], torch.complex64, [1 + 2j, 3 + 0j]),
        ([True, False], torch.bool, [True, False]),
        ([[1, 2], [3, 4]], torch.int64, [[1, 2], [3, 4]]),
        (3.5, torch.float32, 3.5),
        ([], torch.float32, []),
        ([np.float32(1.5), 2], torch.float32, [1.5, 2.0]),
        (np.float64(2), torch.float64, 2.0),
        (range(3), torch.int64, [0, 1, 2]),
        ([np.arange(2), np.arange(2)], torch.int64, [[0, 1], [0, 1]]),
    ],
)
def test_inference(data, dtype, values):
    t = torch.tensor(data)
    assert t.dtype is dtype
    assert t.tolist() == values


def test_inference_of_tensors():
    t = torch.tensor([torch.tensor(1.5), torch.tensor(2)])
    assert t.dtype is torch.float32 and t.tolist() == [1.5, 2.0]
    # A tensor ends the shape where it is the first of a sequence, as PyTorch reads it; elsewhere it may stand for a row.
    assert torch.tensor([[torch.ones(1)], [2]]).tolist() == [[1.0], [2.0]]
    assert torch.tensor([[1, 2], torch.ones(2)]).tolist() == [[1.0, 2.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        torch.tensor([torch.ones(2), torch.ones(2)])
    with pytest.warns(UserWarning, match="it is recommended to use sourceTensor"):
        assert torch.tensor(torch.tensor([1, 2])).tolist() == [1, 2]


@pytest.mark.parametrize(
    "data, error, words",
    [
        (["a"], ValueError, "too many dimensions 'str'"),
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([1, [2]], TypeError, "'list' object cannot be interpreted as an integer"),
        (object(), RuntimeError, "Could not infer dtype of object"),
        (2**70, ValueError, "Overflow when unpacking long long"),
    ],
)
def test_bad_data(data, error, words):
    with pytest.raises(error, match=words):
        torch.tensor(data)


def test_dtype_is_converted():
    assert torch.tensor([1.7, -1.7], dtype=torch.int32).tolist() == [1, -1]
    assert torch.tensor([0, 3], dtype=torch.bool).tolist() == [False, True]
    assert torch.tensor([1, 2], dtype=float).dtype is torch.float64
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([300], dtype=torch.uint8)


def test_requires_grad_needs_floating_point():
    assert torch.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="nly Tensors of floating point"):
        torch.tensor([1], requires_grad=True)


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty])
def test_factories_take_sizes_in_every_form(make):
    for t in (make(2, 3), make((2, 3)), make([2, 3]), make(size=(2, 3)), make(torch.Size([2, 3]))):
        assert t.shape == (2, 3)
    t = make(2, dtype=torch.float64, requires_grad=True)
    assert t.dtype is torch.float64 and t.requires_grad and t.is_leaf


def test_factory_errors():
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.zeros(2, -3)
    with pytest.raises(TypeError, match="argument 'size' .position 1. must be tuple of ints, not str"):
        torch.zeros("a")
    with pytest.raises(TypeError, match="argument 'dtype' must be torch.dtype, not str"):
        torch.zeros(2, dtype="float")
    with pytest.raises(TypeError, match=r"^zeros\(\): argument 'size' .position 1. must be tuple of ints, but found element of type str at pos 0$"):
        torch.zeros(("a", 2))
    with pytest.raises(TypeError, match=r"^zeros\(\): argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got str\"$"):
        torch.zeros((2, "a"))
    with pytest.raises(TypeError, match=r"^view\(\): argument 'size' failed to unpack the object at pos 2"):
        torch.zeros(2).view(1, "a")
    with pytest.raises(RuntimeError, match="device type at start of device string: foo"):
        torch.rand(2, device="foo")


def test_full_infers_dtype():
    assert torch.full((2,), 7).dtype is torch.int64
    assert torch.full((2,), 1.5).dtype is torch.float32
    assert torch.full((2,), True).dtype is torch.bool


def test_default_dtype():
    assert torch.get_default_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.5).dtype is torch.float64
        assert torch.tensor(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_dtype(torch.int32)


def test_old_constructor():
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor().shape == (0,)
    t = torch.ones(2)
    assert torch.Tensor(t).data_ptr() == t.data_ptr()


def test_seeds_give_the_known_stream():
    torch.manual_seed(0)
    assert torch.rand(3).tolist() == pytest.approx([0.49625658, 0.76822180, 0.08847743], abs=1e-7)
    g = torch.Generator().manual_seed(0)
    assert torch.rand(1, generator=g).item() == pytest.approx(0.49625658, abs=1e-7)
    assert g.initial_seed() == 0
    state = g.get_state()
    first = torch.rand(4, generator=g)
    g.set_state(state)
    assert torch.rand(4, generator=g).tolist() == first.tolist()


def test_frombuffer():
    buffer = bytearray(b"abcd")
    t = torch.frombuffer(buffer, dtype=torch.uint8)
    buffer[0] = 0
    assert t.tolist() == [0, 98, 99, 100]
    assert torch.frombuffer(buffer, dtype=torch.int16, count=1, offset=2).tolist() == [int.from_bytes(b"cd", "little")]
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        torch.frombuffer(buffer, dtype=torch.int16, offset=1)


def test_linspace_and_logspace_between_tensors():
    one, four = torch.tensor(1), torch.tensor(4.0)
    assert torch.linspace(one, four, 4).tolist() == [1.0, 2.0, 3.0, 4.0] == torch.linspace(one, 4, 4).tolist()
    assert torch.logspace(0, torch.tensor(2), 3, base=2).tolist() == [1.0, 2.0, 4.0]
    for function in (torch.linspace, torch.logspace):
        with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
            function(0, 3, -1)
        with pytest.raises(RuntimeError, match=r"only supports 0-dimensional start and end tensors, but got start with 1 dimension\(s\)"):
            function(torch.tensor([1, 2]), 3, 5)


def test_isclose_refuses_negative_tolerances():
    x = torch.tensor(1.0)
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero, but got -0.4"):
        torch.isclose(x, x, rtol=-0.4)
    with pytest.raises(RuntimeError, match="atol must be greater than or equal to zero, but got -0.4"):
        torch.allclose(x, x, atol=-0.4)


def test_pinned_memory_needs_an_accelerator():
    script = (
        "import cresset\n"
        "x = cresset.ones(2)\n"
        "assert not x.is_pinned() and not cresset.empty(2, pin_memory=False).is_pinned()\n"
        "assert cresset.zeros(2, device='meta', pin_memory=True).is_meta\n"
        "for make in (lambda: cresset.empty(2, pin_memory=True), lambda: cresset.arange(3, pin_memory=True),\n"
        "             lambda: x.new_empty(2, pin_memory=True), lambda: cresset.tensor([1.0], pin_memory=True), lambda: x.pin_memory(),\n"
        "             lambda: x.pin_memory('cpu')):\n"
        "    try:\n        make()\n    except RuntimeError as e:\n        print(e)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    words = "pin_memory=True requires an accelerator backend; no pinned memory allocator is available on this system."
    last = ["Cannot access accelerator device when none is available.", "CPU device type not an accelerator."]
    assert run.stdout.splitlines() == [*[words] * 4, *last]
    with pytest.raises(TypeError, match="argument 'pin_memory' must be bool, not int"):
        torch.tensor(1, pin_memory=3)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x, n: x.resize_(n), TypeError, r"argument 'size' failed to unpack the object at pos 1 with error \"Overflow when unpacking long long\""),
        (lambda x, n: x.view((1, n)), TypeError, "argument 'size' failed to unpack the object at pos 2"),
        (lambda x, n: x.sum(n), ValueError, "Overflow when unpacking long long"),
        (lambda x, n: x + n, OverflowError, "int too"),
        (lambda x, n: x.fill_(n), OverflowError, "int too"),
        (lambda x, n: x[n], ValueError, "Overflow when unpacking long long"),
    ],
)
def test_integers_of_more_than_64_bits(call, error, words):
    x = torch.ones(3)
    with pytest.raises(error, match=words):
        call(x, 2**70)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_the_operator_of_inversion_is_for_whole_numbers(dtype):
    with pytest.raises(TypeError, match=r"^~ \(operator.invert\) is only implemented on integer and Boolean-type tensors$"):
        ~torch.ones(1, dtype=dtype)


@pytest.mark.parametrize("four", [torch.tensor(4), torch.tensor([4]), torch.tensor([[4]], dtype=torch.int8)], ids=str)
def test_sizes_are_tensors_of_one_element(four):
    # What PyTorch 2.13 gives: lists of ints, and ints that may be symbolic, take such tensors of any dimensions.
    x = torch.arange(8.0)
    assert torch.zeros([four, 2]).shape == torch.zeros(four, 2).shape == x.view(four, 2).shape == x.reshape([four, -1]).shape == (4, 2)
    assert x[:1].expand(four).shape == (4,) and torch.ones(2).repeat(four, four).shape == (4, 8)
    assert x.roll(four).tolist() == [4, 5, 6, 7, 0, 1, 2, 3] and x.select(0, four) == 4 and x.topk(four)[0].tolist() == [7, 6, 5, 4]
    assert torch.eye(four).shape == (4, 4) and len(x.split(four)) == len(x.split([four, four])) == 2
    image = torch.ones(1, 1, 8, 8)
    assert torch.nn.functional.interpolate(image, size=[four, four], mode="bilinear").shape == (1, 1, 4, 4)
    assert torch.nn.functional.conv2d(image, torch.ones(1, 1, 2, 2), stride=[four, four]).shape == (1, 1, 2, 2)


def test_tensors_that_are_no_sizes():
    x, several = torch.arange(8), torch.tensor([3])
    assert [part.tolist() for part in x.tensor_split(several)] == [[0, 1, 2], [3, 4, 5, 6, 7]]  # one index, not three sections
    for wrong in (torch.tensor([4.0]), torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64)):
        with pytest.raises(TypeError, match="must be tuple of ints, but found element of type Tensor at pos 0"):
            torch.zeros([wrong, 2])
    with pytest.raises(TypeError, match="must be int, not Tensor"):
        x.unsqueeze(several - 3)  # a dimension is no size


@pytest.mark.parametrize("new", [torch.Tensor, torch.FloatTensor, torch.ones(1).new], ids=["Tensor", "FloatTensor", "new"])
def test_sizes_of_the_old_constructor(new):
    three = torch.tensor([3])
    assert new(2, 3).shape == new(2, three).shape == (2, 3) and new(three, 2).shape == (3, 2) and new(2, True).shape == (2, 1)
    assert new([2, 3]).tolist() == [2, 3] and new(three.float()).tolist() == [3]
    for wrong, kind in (((3,), "tuple"), ("a", "str"), (2.5, "float"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"argument 'size' failed to unpack the object at pos 2 with error .type must be tuple of ints,but got {kind}"):
            new(2, wrong)
    for first in ([1], torch.ones(2), True, torch.Size((2,))):  # these are not sizes, and no argument is left aside
        with pytest.raises(TypeError, match="new.. received an invalid combination of arguments.* got 2 arguments"):
            new(first, 2)
