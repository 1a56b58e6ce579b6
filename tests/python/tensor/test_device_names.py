"""Device objects of kinds that PyTorch names and nobody has mounted."""

import copy
import pickle

import cresset
import pytest

KINDS = ["mps", "xpu", "hpu", "xla", "vulkan", "mtia", "ipu", "maia", "ve", "lazy", "fpga", "hip", "cuda"]


@pytest.mark.parametrize("kind", KINDS)
def test_objects(kind):
    device = cresset.device(kind, 1)
    assert (device.type, device.index, str(device)) == (kind, 1, f"{kind}:1") and device == cresset.device(f"{kind}:1") != cresset.device(kind)
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device and hash(device) == hash(cresset.device(f"{kind}:1"))
    assert cresset.device("cpu") != cresset.device(kind)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "maia"])
@pytest.mark.parametrize("call", [lambda d: cresset.ones(2, device=d), lambda d: cresset.ones(2).to(d), lambda d: cresset.Generator(d), lambda d: cresset.nn.Linear(1, 1).to(d)])
def test_nothing_can_be_there(kind, call):
    with pytest.raises((NotImplementedError, RuntimeError, AssertionError)):
        call(cresset.device(kind))


def test_other_names_stay_errors():
    for name in ("metal", "gpu", "mps:x"):
        with pytest.raises(RuntimeError):
            cresset.device(name)
