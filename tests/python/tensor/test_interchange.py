"""NumPy, the buffer protocol and DLPack share memory both ways."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import cresset as torch


def test_from_numpy_shares():
    a = np.arange(6.0).reshape(2, 3)
    t = torch.from_numpy(a)
    a[0, 0] = 7
    t[1, 2] = 9
    assert t[0, 0].item() == 7 and a[1, 2] == 9 and t.dtype is torch.float64
    assert torch.from_numpy(a[:, ::2]).stride() == (3, 2)
    del a
    gc.collect()
    assert t.tolist() == [[7.0, 1.0, 2.0], [3.0, 4.0, 9.0]]


def test_numpy_shares():
    t = torch.arange(6.0).reshape(2, 3)
    a = t.numpy()
    t[0, 0] = 5
    a[1, 1] = -1
    assert a[0, 0] == 5 and t[1, 1].item() == -1
    assert t.t().numpy().strides == (4, 12)
    del t
    gc.collect()
    assert a.tolist() == [[5.0, 1.0, 2.0], [3.0, -1.0, 5.0]]
    assert torch.empty(0, 3).numpy().shape == (0, 3) and torch.tensor(3).numpy() == 3


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    a = np.array([0, 1, 1], dtype=dtype)
    t = torch.from_numpy(a)
    assert t.dtype is getattr(torch, dtype)
    assert t.numpy().dtype == a.dtype
    assert np.asarray(t).dtype == a.dtype and np.asarray(t).tolist() == a.tolist()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.from_numpy(np.ones(3)[::-1]), ValueError, "tensors with negative strides are not currently supported"),
        (lambda: torch.from_numpy([1]), TypeError, r"expected np.ndarray \(got list\)"),
        (lambda: torch.from_numpy(np.array(["a"])), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (lambda: torch.from_numpy(np.ones(2, dtype=">f4")), ValueError, "byte order different from the native byte order"),
        (lambda: torch.ones(2, requires_grad=True).numpy(), RuntimeError, "Can't call numpy.. on Tensor that requires grad. Use tensor.detach"),
        (lambda: np.asarray(torch.ones(2, requires_grad=True)), RuntimeError, "Can't call numpy"),
        (lambda: torch.ones(2, dtype=torch.bfloat16).numpy(), TypeError, "Got unsupported ScalarType BFloat16"),
        (lambda: torch.empty(2, device="meta").numpy(), TypeError, "can't convert meta device type tensor to numpy"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_force():
    assert torch.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_tensors_win_in_mixed_arithmetic():
    t, a = torch.ones(2), np.full(2, 2.0)
    assert isinstance(np.float64(2) * t, torch.Tensor) and (t * np.float32(2)).dtype is torch.float32
    assert (t + a).tolist() == [3.0, 3.0]
    assert np.sum(t) == 2.0


def test_buffer_protocol():
    t = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    view = memoryview(t)
    assert view.shape == (2, 3) and view.format == "i" and view.tolist() == t.tolist() and not view.readonly
    view[1, 2] = 42
    assert t[1, 2].item() == 42
    with pytest.raises(BufferError):
        memoryview(torch.ones(1, requires_grad=True))


def test_dlpack():
    t = torch.arange(4.0)
    a = np.from_dlpack(t)
    t[0] = 9
    assert a[0] == 9 and t.__dlpack_device__() == (1, 0)
    back = torch.from_dlpack(np.arange(3))
    assert back.dtype is torch.int64 and back.tolist() == [0, 1, 2]
    own = torch.from_dlpack(t)
    assert own.data_ptr() == t.data_ptr()
    capsule = t.__dlpack__()
    torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(1, requires_grad=True).__dlpack__()


def test_import_is_lean():
    """Neither NumPy nor the slow modules of Python's library are loaded; storages and the text of tensors wait for their first use."""
    code = "import sys; before = {*sys.modules}; import cresset; cresset.ones(2) + 1; print(*{*sys.modules} - before)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "cresset" in loaded
    slow = {"numpy", "inspect", "ast", "dis", "tokenize", "re", "enum", "typing", "dataclasses", "textwrap", "threading"}
    assert not slow.union({"cresset.storage", "cresset._tensor_str", "cresset._tags"}).intersection(loaded)


def test_star_import_has_lazy_names():
    names = {}
    exec("from cresset import *", names)
    for name in ("tensor", "einsum", "finfo", "Tag", "classes", "set_printoptions", "UntypedStorage", "FloatStorage", "is_storage", "pi"):
        assert names[name] is getattr(torch, name)


def test_arrays_among_operands():
    x, a = torch.tensor([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0])
    for result, expected in (
        (x == a, [True, False, True]), (a == x, [True, False, True]), (x != a, [False, True, False]), (x * a, [1.0, 6.0, 16.0]),
        (x - a, [0.0, -1.0, 0.0]), (x / a, [1.0, 2 / 3, 1.0]), (a / x, [1.0, 1.5, 1.0]), (x**a, [1.0, 8.0, 256.0]),
    ):  # fmt: skip
        assert type(result) is torch.Tensor and result.tolist() == pytest.approx(expected)
    for call in (lambda: a * x, lambda: x < a):
        with pytest.raises(TypeError):
            call()


def test_arrays_as_indices():
    x = torch.arange(12.0).reshape(3, 4)
    n = x.numpy()
    for index in (np.array([0, 2]), np.array(1), np.array([[True] * 4, [False] * 4, [True] * 4]), (slice(None), np.array([3, 1])), (np.array([0, 1]), np.array([2, 2]))):
        assert np.array_equal(x[index].numpy(), n[index])
    y = x.clone()
    y[np.array([1])] = 0
    y[np.array([[True] + [False] * 3] * 3)] = -1.0
    assert y[1].tolist() == [-1.0, 0.0, 0.0, 0.0] and y[:, 0].tolist() == [-1.0] * 3
    with pytest.raises(IndexError):
        x[np.array([3])]


def test_dlpack_says_its_version_to_those_who_ask():
    x = torch.arange(3)
    assert '"dltensor"' in repr(x.__dlpack__()) and '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))
    capsule = x.__dlpack__(max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)
    back = torch.from_dlpack(capsule)
    assert back.data_ptr() == x.data_ptr() and '"used_dltensor_versioned"' in repr(capsule)
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(TypeError, match="max_version must be a tuple of two ints or None"):
        x.__dlpack__(max_version=1)


def test_exporters_are_told_that_versions_are_known():
    x, asked = torch.arange(3), []

    class New:
        def __dlpack__(self, **options):
            asked.append(options)
            return x.__dlpack__(**options)

    class Old:
        def __dlpack__(self):
            return x.__dlpack__()

    assert torch.from_dlpack(New()).data_ptr() == torch.from_dlpack(Old()).data_ptr() == x.data_ptr()
    assert asked == [{"max_version": (1, 0)}]

    class Broken:
        def __dlpack__(self, **options):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        torch.from_dlpack(Broken())


@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="NumPy gives read-only memory to DLPack from version 2 on")
def test_read_only_memory_of_numpy_is_taken_in():
    a = np.arange(3.0)
    a.flags.writeable = False
    assert torch.from_dlpack(a).tolist() == [0, 1, 2]  # as PyTorch 2.13 does: its writes are the caller's business


def test_dlpack_by_its_module():
    from cresset.utils import dlpack

    x = torch.arange(3.0)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y[0] = 5
    assert x.tolist() == [5, 1, 2] and x.__dlpack_device__()[0] == dlpack.DLDeviceType.kDLCPU


def test_dlpack_on_a_device_and_as_a_copy():
    """PyTorch 2.13's answers."""
    x = torch.ones(2)
    assert torch.from_dlpack(x, device="cpu", copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").data_ptr() == torch.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(AssertionError, match="device and copy kwargs not supported when ext_tensor is already a DLPack capsule."):
        torch.from_dlpack(x.__dlpack__(), copy=True)
    with pytest.raises(RuntimeError, match="from_dlpack received an invalid capsule"):
        torch.from_dlpack(5)
    with pytest.raises(AssertionError, match="stream should be None on cpu."):
        x.__dlpack__(stream=3)
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        x.requires_grad_().__dlpack__()
    assert torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)).requires_grad is False


@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("wanted", [None, False, True])
def test_asarray_of_a_tensor_keeps_its_history_or_cuts_it(leaf, copy, wanted):
    given = torch.tensor([1.0, 2.0], requires_grad=True)
    given = given if leaf else given + 1
    out = torch.asarray(given, copy=copy, requires_grad=wanted)
    assert out.requires_grad is (wanted is not False)
    assert (out.grad_fn is not None) is (wanted is not False and (copy is True or not leaf))
    assert (out.data_ptr() == given.data_ptr()) is (copy is None)
    if leaf and copy is None:
        assert out is given  # its flag is changed, as by requires_grad_()


def test_asarray_of_numbers_requires_grad_only_when_asked():
    assert not torch.asarray([1.0]).requires_grad
    assert torch.asarray([1.0], requires_grad=True).requires_grad


def test_dlpack_for_a_device():
    x = torch.arange(3)
    for device in (None, (1, 0), (1, 3)):
        assert torch.from_dlpack(x.__dlpack__(dl_device=device, copy=False)).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="Unsupported device_type: 99"):
        x.__dlpack__(dl_device=(99, 0))
    with pytest.raises(TypeError, match="dl_device must be a tuple of two ints, not str"):
        x.__dlpack__(dl_device="cpu")


def test_numpy_takes_no_positional_argument():
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        torch.ones(1).numpy(True)
