"""Plug-ins in C that were built with the headers of earlier table versions load and run; others are refused in one sentence.

Run by tests/extensions/test_backends.py, which compiles tests/golden/plugins/golden.c for golden1 to golden6 and toonew.
"""

import ctypes

import cresset
import pytest

each_version = pytest.mark.parametrize("device", ["golden1", "golden2", "golden3", "golden4", "golden5", "golden6"])


@each_version
def test_runs(device):
    x = cresset.tensor([1.0, -2.0, 3.0])
    d = x.to(device)
    assert (-d).tolist() == [-1.0, 2.0, -3.0]
    assert (-d.long()).tolist() == [-1, 2, -3], "what the kernel leaves to the CPU"
    assert (-d[::2]).tolist() == [-1.0, -3.0]
    leaf = d.clone().requires_grad_()
    (-leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [-2.0, 4.0, -6.0]
    assert cresset.accelerator.report(device)["table_version"] == int(device[-1])
    with pytest.raises(RuntimeError, match=f"{device}:0: aten::neg failed with code 101: the golden device does not negate seven"):
        -(d + 6)


def test_entries_of_a_later_version():
    library = ctypes.CDLL(cresset.accelerator.report("golden2" if cresset.device("golden2") else "")["library"])
    before = library.golden_cache_emptied()
    cresset.golden2.empty_cache()
    cresset.golden1.empty_cache()  # does not have it
    assert library.golden_cache_emptied() == before + 1


def test_reserved_bytes():
    held = cresset.ones(5, device="golden2")
    assert cresset.golden2.memory_reserved() == cresset.golden2.memory_allocated() == held.nbytes, "without a cache of its own"
    assert cresset.device("golden3") and (cresset.golden3.memory_reserved(), cresset.golden3.max_memory_reserved()) == (64, 96)
    cresset.golden3.reset_peak_memory_stats()
    assert cresset.accelerator.memory_stats("golden3")["reserved_bytes.all.peak"] == 64


def test_fills():
    """With an entry of its own from version 4; before, copies of one element."""
    x = cresset.full((7,), 2.5, device="golden4")
    library = ctypes.CDLL(cresset.accelerator.report("golden4")["library"])
    assert x.tolist() == [2.5] * 7 and library.golden_fills() > 0
    for device in ("golden1", "golden3"):
        assert cresset.full((7,), 2.5, device=device).tolist() == [2.5] * 7
        strided = cresset.zeros(3, 4, device=device)
        strided[:, 1:3] = 1.5
        assert strided.tolist() == [[0.0, 1.5, 1.5, 0.0]] * 3


def test_dlpack_type_of_the_vendor():
    x = cresset.arange(6.0, device="golden5").reshape(2, 3)
    assert x.__dlpack_device__() == (17, 0) and cresset.ones(1, device="golden4").__dlpack_device__()[0] == 12
    back = cresset.from_dlpack(x)
    assert back.device == x.device and back.data_ptr() == x.data_ptr() and back.tolist() == x.tolist()


def test_a_version_that_does_not_fit_is_one_sentence():
    with pytest.raises(RuntimeError) as info:
        cresset.device("toonew")
    assert (
        "backend 'toonew' needs version 99 of the backend table, and this library has version 6; install a newer Cresset or an older plug-in."
        in str(info.value)
    )  # fmt: skip
