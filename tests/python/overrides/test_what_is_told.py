"""What modes and overriding types are told of: functions written in Python by keyword, as PyTorch 2.13's."""

import pytest

import cresset as torch
from cresset.overrides import TorchFunctionMode


class Told(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((torch.overrides.resolve_name(func) or func.__name__, len(args), sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


def told(call):
    with Told() as mode:
        call()
    return mode.calls


def test_grad_modes_are_functions_to_modes():
    def blocks():
        with torch.no_grad(), torch.enable_grad():
            pass
        torch.set_grad_enabled(True)

    assert told(blocks) == [("_set_grad_enabled", 1, [])] * 5
    assert torch.is_grad_enabled()


def test_backward_by_keyword():
    y = torch.ones(2, requires_grad=True).sum()
    by_keyword = ["create_graph", "gradient", "inputs", "retain_graph"]
    assert told(lambda: y.backward(None, True)) == [("torch.Tensor.backward", 1, by_keyword)]
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        told(lambda: y.backward(nope=1))


def test_initial_values_by_keyword():
    x = torch.ones(2, 2)
    assert told(lambda: torch.nn.init.uniform_(x, 1, b=2)) == [("torch.nn.init.uniform_", 0, ["a", "b", "generator", "tensor"])]
    assert bool((x >= 1).all())
    calls = told(lambda: torch.nn.Linear(2, 2))
    assert [c for c in calls if c[0] == "torch.nn.init.kaiming_uniform_"] == [
        ("torch.nn.init.kaiming_uniform_", 0, ["a", "generator", "mode", "nonlinearity", "tensor"])
    ]
    assert not any("is_floating_point" in c[0] for c in calls)


def test_of_two_names_the_last():
    x = torch.ones(1, 1, 1)
    assert told(lambda: torch.conv1d(x, x))[0][0] == "torch.nn.functional.conv1d"


def test_functions_in_python_tell_of_tensor():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return types

    assert torch.nn.functional.cross_entropy(Duck(), torch.ones(1)) == (Duck, torch.Tensor)
    assert torch.add(Duck(), torch.ones(1)) == (Duck,)  # an operator
