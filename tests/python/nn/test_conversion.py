"""cresset.__future__ and utils.swap_tensors: how conversions put new parameters into a module."""

import weakref

import pytest

import cresset as torch
from cresset import nn
from cresset.utils import swap_tensors

future = torch.__future__


@pytest.fixture(autouse=True)
def settings():
    yield
    future.set_swap_module_params_on_conversion(False)
    future.set_overwrite_module_params_on_conversion(False)


def test_objects_exchange_all_they_are():
    a, b = torch.ones(2), nn.Parameter(torch.zeros(3))
    a.note, held = "a", [a]
    swap_tensors(a, b)
    assert type(a) is nn.Parameter and type(b) is torch.Tensor and a.shape == (3,) and b.tolist() == [1, 1]
    assert b.note == "a" and not hasattr(a, "note") and held[0] is a
    assert a.detach_() is a and b.fill_(2) is b


def test_a_graph_with_the_old_leaf_refuses():
    a = nn.Parameter(torch.ones(2))
    out = (a * 2).sum()
    swap_tensors(a, nn.Parameter(torch.ones(3)))
    with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned by swap_tensors"):
        out.backward()
    (a * 3).sum().backward()
    assert a.grad.tolist() == [3, 3, 3]


def test_what_cannot_be_swapped():
    class Slots(torch.Tensor):
        __slots__ = ("extra",)

    a, b = torch.ones(2), torch.zeros(2)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref associated with it"):
        swap_tensors(a, b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        swap_tensors(b, a)
    del reference
    with pytest.raises(RuntimeError, match="different slots"):
        swap_tensors(a, torch.ones(1).as_subclass(Slots))
    views = [b[:1], b[1:]]
    with pytest.raises(RuntimeError, match="Expected use_count of t2"):
        swap_tensors(a, b)
    assert a.tolist() == [1, 1] and views[0]._base is b


@pytest.mark.parametrize("grad", [False, True])
def test_conversion_by_swapping(grad):
    future.set_swap_module_params_on_conversion(True)
    assert future.get_swap_module_params_on_conversion()
    model = nn.Linear(2, 3)
    weight = model.weight
    if grad:
        model(torch.ones(2)).sum().backward()
        gradient = weight.grad
    before = weight._cdata
    model.to(torch.float64)
    assert model.weight is weight and isinstance(weight, nn.Parameter) and weight.dtype == torch.float64 and weight._cdata != before
    if grad:
        assert weight.grad is gradient and gradient.dtype == torch.float64
    model(torch.ones(2, dtype=torch.float64)).sum().backward()
    assert weight.grad.shape == (3, 2)


def test_conversion_by_new_parameters():
    future.set_overwrite_module_params_on_conversion(True)
    assert future.get_overwrite_module_params_on_conversion()
    model = nn.Linear(2, 3)
    weight = model.weight
    model.double()
    assert model.weight is not weight and weight.dtype == torch.float32 and model.weight.dtype == torch.float64 and model.weight.requires_grad


def test_a_parameter_in_use_is_named():
    future.set_swap_module_params_on_conversion(True)
    model = nn.Linear(2, 3)
    views = [model.weight[0], model.weight[1]]
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        model.double()
    assert len(views) == 2


def test_kinds_of_devices_for_optimisers():
    from cresset.utils import _foreach_utils

    assert _foreach_utils._get_foreach_kernels_supported_devices() == ["cuda", "xpu", "mtia", torch._C._get_privateuse1_backend_name()]
    assert "cpu" in _foreach_utils._get_fused_kernels_supported_devices()
