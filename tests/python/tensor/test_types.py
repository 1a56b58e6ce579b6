"""dtype, device, Size, memory formats, finfo; the time and memory of the import."""

import subprocess
import sys

import pytest

import cresset as torch


def test_dtype():
    assert torch.float is torch.float32 and torch.long is torch.int64 and torch.half is torch.float16 and torch.double is torch.float64
    assert repr(torch.float32) == "cresset.float32" and torch.float32.is_floating_point and not torch.int8.is_floating_point
    assert torch.complex64.is_complex and torch.complex64.to_real() is torch.float32 and torch.float64.to_complex() is torch.complex128
    assert [t.itemsize for t in (torch.bool, torch.bfloat16, torch.float32, torch.complex128)] == [1, 2, 4, 16]
    assert not torch.uint8.is_signed and torch.int8.is_signed
    with pytest.raises(TypeError):
        torch.dtype()


def test_promotion():
    assert torch.promote_types(torch.int32, torch.float16) is torch.float16
    assert torch.promote_types(torch.float16, torch.bfloat16) is torch.float32
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16
    assert torch.can_cast(torch.int32, torch.float32) and not torch.can_cast(torch.float32, torch.int32)
    assert torch.result_type(torch.ones(1, dtype=torch.int32), 1.5) is torch.float32
    assert torch.result_type(torch.ones(1, dtype=torch.int32), torch.tensor(1, dtype=torch.int64)) is torch.int32


def test_limits():
    f = torch.finfo(torch.float32)
    assert (f.bits, f.eps, f.max, f.min, f.tiny) == (32, 2**-23, 3.4028234663852886e38, -3.4028234663852886e38, 2**-126)
    assert torch.finfo(torch.float16).max == 65504.0 and torch.finfo(torch.bfloat16).eps == 2**-7
    assert torch.finfo(torch.complex128).eps == 2**-52 and torch.finfo().dtype == "float32"
    i = torch.iinfo(torch.int8)
    assert (i.bits, i.min, i.max) == (8, -128, 127) and torch.iinfo(torch.uint8).min == 0
    assert repr(i) == "iinfo(min=-128, max=127, dtype=int8)"
    with pytest.raises(TypeError, match="requires a floating point input type. Use torch.iinfo"):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError, match="requires an integer input type. Use torch.finfo"):
        torch.iinfo(torch.float32)


def test_device():
    assert torch.device("cpu:1") == torch.device("cpu", 1) != torch.device("cpu")
    assert repr(torch.device("cpu:1")) == "device(type='cpu', index=1)" and str(torch.device("meta")) == "meta"
    assert torch.device("cpu").type == "cpu" and torch.device("cpu").index is None and len({torch.device("cpu"), torch.device("cpu")}) == 1
    for bad in ("cpu:x", "cpu:-1", "", "nowhere"):
        with pytest.raises(RuntimeError):
            torch.device(bad)
    with pytest.raises(RuntimeError, match="must not include an index because index was passed explicitly"):
        torch.device("cpu:0", 1)
    with pytest.raises(TypeError):
        torch.device(1.5)


def test_size():
    s = torch.Size([2, 3])
    assert s == (2, 3) and isinstance(s, tuple) and s.numel() == 6 and repr(s) == "cresset.Size([2, 3])"
    assert type(s[1:]) is torch.Size and type(s + (4,)) is torch.Size and type(s * 2) is torch.Size and s[0] == 2
    with pytest.raises(TypeError, match="takes an iterable of 'int'"):
        torch.Size([1.5])
    a, b = torch.ones(2, 3).shape
    assert (a, b) == (2, 3) and torch.Size([]).numel() == 1


def test_generator():
    g = torch.Generator().manual_seed(-1)
    assert g.initial_seed() == 2**64 - 1 and g.device == torch.device("cpu")
    with pytest.raises(ValueError, match="^Overflow when unpacking long long$"):
        g.manual_seed(2**64)
    with pytest.raises(TypeError, match="expected a torch.ByteTensor"):
        g.set_state(torch.ones(3))
    with pytest.raises(RuntimeError):
        torch.Generator("meta")


def test_memory_formats():
    x = torch.ones(1, 2, 3, 4)
    y = x.to(memory_format=torch.channels_last)
    assert y.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous(memory_format=torch.channels_last)
    assert y.stride() == (24, 1, 8, 2)
    with pytest.raises(TypeError, match="must be torch.memory_format"):
        x.is_contiguous(memory_format=1)


def test_attributes():
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert (x.ndim, x.dim(), x.numel(), x.nelement(), x.itemsize, x.element_size(), x.nbytes) == (2, 2, 6, 6, 8, 8, 48)
    assert x.shape == x.size() == (2, 3) and x.size(-1) == 3 and x.stride() == (3, 1) and x.stride(0) == 3
    assert x[1].storage_offset() == 3 and x[1].data_ptr() == x.data_ptr() + 24
    assert x.is_cpu and not x.is_meta and x.get_device() == -1 and x.layout is torch.strided and x.type() == "torch.DoubleTensor"
    assert x.T.shape == x.mT.shape == x.H.shape == (3, 2)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"):
        x.size(5)


def test_threads_setting():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)


def test_out_of_memory():
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    with pytest.raises(torch.OutOfMemoryError, match="you tried to allocate"):
        torch.empty(1 << 60, dtype=torch.uint8)


def test_names_of_the_package():
    with pytest.raises(AttributeError, match="module 'cresset' has no attribute 'nothing'"):
        torch.nothing
    assert torch.is_tensor(torch.ones(1)) and not torch.is_tensor(1)
    assert torch.broadcast_shapes((2, 1), (3,)) == (2, 3)
    with pytest.raises(RuntimeError, match="expected shape should be broadcastable to"):
        torch.broadcast_shapes((2,), (3,))
    assert torch.special.expit(torch.zeros(1)).item() == 0.5


def test_memory_of_the_import():
    code = (
        "import resource; a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; import cresset; cresset.ones(1) + 1;"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a)"
    )
    used = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert used < 30 * 1024, f"import takes {used / 1024:.1f} MB"


def test_limits_of_what_pythons_types_stand_for():
    assert torch.finfo(float) == torch.finfo(torch.float64) and torch.finfo(complex).eps == 2**-52 and torch.iinfo(int).max == 2**63 - 1
    refused = {
        (torch.finfo, int): "requires a floating point input type", (torch.iinfo, float): "requires an integer input type",
        (torch.iinfo, bool): "torch.bool is not supported by torch.iinfo", (torch.finfo, str): r"finfo\(\): argument 'type' \(position 1\) must be torch.dtype, not type",
    }  # fmt: skip
    for (limits, kind), words in refused.items():
        with pytest.raises(TypeError, match=words):
            limits(kind)
    assert torch.nn.Linear(1, 1).to(float).weight.dtype == torch.nn.Linear(1, 1).to("cpu", float).weight.dtype == torch.float64
