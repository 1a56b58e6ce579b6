"""Deterministic mode fills new memory, and utils.deterministic says whether."""

import subprocess
import sys

import cresset as torch
import pytest


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def is_mark(t):
    return bool(t.isnan().all()) if t.is_floating_point() or t.is_complex() else bool((t == (True if t.dtype == torch.bool else torch.iinfo(t.dtype).max)).all())


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES)
def test_new_memory(deterministic, dtype):
    made = [
        torch.empty(10, 9, dtype=dtype), torch.empty(10, 9, out=torch.zeros(1, dtype=dtype)), torch.empty_like(torch.zeros(10, 9, dtype=dtype)),
        torch.empty_strided((10, 9), (1, 5), dtype=dtype), torch.empty_permuted((2, 3, 5), (1, 0, 2), dtype=dtype), torch.zeros(3, dtype=dtype).new_empty(4),
        torch.empty(2, 3, 4, 4, dtype=dtype, memory_format=torch.channels_last),
    ]  # fmt: skip
    for t in made:
        assert is_mark(t)
    assert torch.empty(3)._version == 0 and torch.zeros(3).sum() == 0 and (torch.ones(2, 2) @ torch.ones(2, 2)).sum() == 8
    t = torch.zeros(4, dtype=dtype).resize_(7)
    assert is_mark(t[4:]) and not t[:4].any()
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        torch.empty(3)  # not filled, and nobody can say with what
        assert not torch._C._get_deterministic_fill_uninitialized_memory()
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


def test_the_switch():
    assert torch.utils.deterministic.fill_uninitialized_memory is True
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        torch.utils.deterministic.fill_uninitialized_memory = 1


def test_no_warning_without_other_devices():
    program = "import warnings; warnings.simplefilter('error'); import cresset; cresset.use_deterministic_algorithms(True)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
