"""Autocast by names of devices: each has a switch and a dtype of its own, whether a tensor can be there or not."""

import cresset
import pytest

HALF, BRAIN = ["cuda", "mps", "xpu", "mtia", "ipu", "privateuseone"], ["hpu", "maia", "xla", "cpu"]


def test_every_name_has_places_of_its_own():
    names = HALF + BRAIN
    assert [cresset.get_autocast_dtype(n) for n in names] == [cresset.float16] * len(HALF) + [cresset.bfloat16] * len(BRAIN)
    try:
        for changed in HALF[1:5] + ["hpu"]:
            before = cresset.get_autocast_dtype(changed)
            cresset.set_autocast_enabled(changed, True)
            cresset.set_autocast_dtype(changed, cresset.float64)
            assert [n for n in names if cresset.is_autocast_enabled(n)] == [changed]
            assert [n for n in names if cresset.get_autocast_dtype(n) is cresset.float64] == [changed]
            assert (cresset.ones(2, 2) @ cresset.ones(2, 2)).dtype is cresset.float32
            cresset.set_autocast_enabled(changed, False)
            cresset.set_autocast_dtype(changed, before)
    finally:
        for n in names:
            cresset.set_autocast_enabled(n, False)


@pytest.mark.parametrize("name", ["vulkan", "hip", "lazy", "ve", "fpga", "metal", "mkldnn", "opengl", "opencl", "ideep"])
def test_names_without_autocast(name):
    for call in (cresset.is_autocast_enabled, cresset.get_autocast_dtype, lambda n: cresset.set_autocast_enabled(n, True), lambda n: cresset.set_autocast_dtype(n, cresset.half)):
        with pytest.raises(RuntimeError, match="unknown device type for autocast in get_autocast_dispatch_key_from_device_type|Expected one of"):
            call(name)
