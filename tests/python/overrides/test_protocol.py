"""Order, refusals, subclasses and modes of __torch_function__."""

import copy
import pickle

import numpy as np
import pytest

import cresset as torch
from cresset.overrides import BaseTorchFunctionMode, TorchFunctionMode, _get_current_function_mode, resolve_name


class A(torch.Tensor):
    pass


class Made(A):
    def new_empty(self, shape):
        return type(self)(*shape)


class B(A):
    pass


class Other(torch.Tensor):
    pass


def recorder(bases, answer=NotImplemented):
    """A class that writes its name down and gives an answer."""

    class Recorder(*bases):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Recorder.calls.append([t.__name__ for t in types])
            return answer

    return Recorder


def test_order_of_asking():
    asked = []

    def make(name, *bases):
        def ask(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented

        return type(name, bases, {"__torch_function__": classmethod(ask)})

    Base, Stranger = make("Base", object), make("Stranger", object)
    Derived = make("Derived", Base)
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.cat' on types that implement __torch_function__: \[Stranger, Derived, Base\]"):
        torch.cat([Stranger(), Base(), Base(), Derived(), torch.ones(1)])
    assert asked == ["Stranger", "Derived", "Base"]


def test_first_answer_is_the_result():
    refuses, answers, unasked = recorder((object,)), recorder((object,), "answer"), recorder((object,), "no")
    assert torch.where(torch.ones(1), refuses(), answers()) == "answer"
    assert torch.add(answers(), unasked()) == "answer" and unasked.calls == []
    assert answers.calls == [["Recorder", "Recorder"]] * 2


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.ones(2) + d, lambda d: d + torch.ones(2), lambda d: torch.ones(2) - d, lambda d: torch.ones(2)[d], lambda d: torch.ones(2) @ d,
        lambda d: torch.ones(2).add(d), lambda d: torch.stack([torch.ones(2), d]), lambda d: torch.nn.functional.linear(torch.ones(2), d),
        lambda d: torch.special.erf(d), lambda d: torch.broadcast_tensors(torch.ones(1), d), lambda d: torch.ones(2) == d,
        lambda d: torch.nn.init.constant_(d, 0.0), lambda d: torch.ones(2).copy_(d), lambda d: torch.nn.functional.cross_entropy(torch.ones(2), d),
        lambda d: torch.add(torch.ones(1), 1, out=d), lambda d: torch.ops.aten.add(torch.ones(1), d), lambda d: torch.ops.aten.add.Tensor(torch.ones(1), d),
    ],
)  # fmt: skip
def test_any_position(call):
    class Duck:
        def __add__(self, other):
            return torch.add(self, other)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            assert Duck in types and set(types) <= {Duck, torch.Tensor}  # functions in Python tell of Tensor too, as PyTorch's do
            return -1

    assert call(Duck()) == -1


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda: torch.add(A([0]), A([1])), A), (lambda: torch.add(A([0]), torch.tensor([1])), A), (lambda: torch.add(B([0]), A([1])), B),
        (lambda: torch.add(A([0]), B([1])), B), (lambda: A([1.0])[0], A), (lambda: 1 - A([1.0]), A), (lambda: A([1.0]).max(0)[0], A),
        (lambda: A([1.0]).split(1)[0], A), (lambda: torch.stack([A([1.0])])[0], A), (lambda: next(iter(A([1.0]))), A), (lambda: A([1.0]).shape, torch.Size),
        (lambda: A([1.0]).tolist(), list), (lambda: A([1.0]).add_(1), A), (lambda: torch.ones(1).as_subclass(A), A), (lambda: copy.deepcopy(Made([1.0])), Made),
        (lambda: pickle.loads(pickle.dumps(A([1.0]))), A), (lambda: A([1.0]).data, A), (lambda: A([1.0]).detach(), A), (lambda: A([1.0]).numpy(), np.ndarray),
        (lambda: np.asarray(A([1.0])), np.ndarray), (lambda: torch.Tensor._make_subclass(A, torch.ones(1), True), A), (lambda: torch.nn.Parameter(A([1.0])), A),
    ],
)  # fmt: skip
def test_results_keep_the_lowest_class(call, kind):
    assert type(call()) is kind


def test_unrelated_classes_have_no_common_one():
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.add' on types that implement __torch_function__: \[A, Other\]"):
        torch.add(A([0]), Other([1]))


def test_parameters_of_subclasses_in_modules():
    layer = torch.nn.Linear(2, 2)
    layer.weight = torch.nn.Parameter(Made(layer.weight.detach()))
    assert isinstance(layer.weight, torch.nn.Parameter) and type(layer.weight) is Made and type(layer(torch.ones(1, 2))) is Made
    assert type(copy.deepcopy(layer).weight) is Made
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.shape == (2, 2)


def test_plain_method_warns():
    class Old:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return -1

    class OldTensor(torch.Tensor):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return -1

    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for old in (Old(), OldTensor()):
            with pytest.warns(UserWarning, match="as a plain method is deprecated"):  # from C++, once unless set_warn_always()
                assert torch.add(old, 1) == -1
            with pytest.warns(DeprecationWarning, match="as a plain method is deprecated"):  # from a function of Python
                assert torch.nn.functional.dropout(old) == -1
    finally:
        torch.set_warn_always(before)


def test_disabling():
    seen = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = Seen([1.0])
    with torch._C.DisableTorchFunctionSubclass(), Log() as mode:
        assert type(x + 1) is torch.Tensor and seen == [] and mode.names == ["torch.Tensor.add"]
    with Log() as mode, torch._C.DisableTorchFunction():
        torch.ones(1)
        assert mode.names == []
    assert type(x + 1) is Seen and seen

    class Off(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert type(Off([1.0]) + 1) is torch.Tensor


class Log(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_modes_nest_and_are_off_in_themselves():
    with Log() as outer, Log() as inner:
        assert _get_current_function_mode() is inner
        torch.zeros(1).add(torch.tensor([1.0])).shape
    assert inner.names == outer.names == ["torch.zeros", "torch.tensor", "torch.Tensor.add", "torch.Tensor.shape.__get__"]
    assert _get_current_function_mode() is None
    with (twice := Log()), twice:
        torch.rand(1)
    assert twice.names == ["torch.rand"] * 2
    with BaseTorchFunctionMode():
        assert torch.ones(1).item() == 1.0


def test_modes_run_before_subclasses():
    order = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append("subclass")
            return super().__torch_function__(func, types, args, kwargs)

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append("mode")
            return func(*args, **(kwargs or {}))

    x = Sub([1.0])
    with Mode():
        x.sum()
    assert order == ["mode", "subclass"]


def test_modes_that_fail():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("inside")

    class Refuses(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(KeyError), Fails():
        torch.ones(1)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.ones'; .*\n\n  - mode object .*Refuses"), Refuses():
        torch.ones(1)
    assert torch._C._len_torch_function_stack() == 0
    with pytest.raises(RuntimeError, match="as a classmethod is not supported"):

        class Bad(TorchFunctionMode):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return None


FACTORIES = [
    lambda: torch.ones(2), lambda: torch.zeros(2), lambda: torch.empty(2), lambda: torch.full((2,), 1.0), lambda: torch.arange(2), lambda: torch.eye(2),
    lambda: torch.linspace(0, 1, 2), lambda: torch.rand(2), lambda: torch.randn(2), lambda: torch.tensor([1.0]), lambda: torch.as_tensor([1.0]),
    lambda: torch.nn.Linear(1, 2).weight, lambda: torch.asarray([1.0]),
]  # fmt: skip


@pytest.mark.parametrize("make", FACTORIES)
def test_device_as_a_context(make):
    with torch.device("meta"):
        assert make().is_meta and torch.zeros(1, device="cpu").device.type == "cpu"
        assert torch.get_default_device() == torch.device("meta")
    assert make().device.type == "cpu"
    try:
        torch.set_default_device("meta")
        assert make().is_meta
    finally:
        torch.set_default_device(None)
    assert make().device.type == "cpu" and torch._C._len_torch_function_stack() == 0


def test_device_as_a_decorator():
    @torch.device("meta")
    def make(n):
        return torch.ones(n)

    assert make(2).is_meta and torch.ones(1).device.type == "cpu"


def test_states_of_the_protocol():
    state = torch._C._TorchFunctionState
    assert [s.name for s in state] == ["ENABLED", "SUBCLASSES_DISABLED", "ALL_DISABLED"] and torch._C._get_torch_function_state() is state.ENABLED
    with torch._C.DisableTorchFunctionSubclass():
        assert torch._C._get_torch_function_state() is state.SUBCLASSES_DISABLED
    before = torch._C._get_torch_function_state()
    torch._C._set_torch_function_state(state.ALL_DISABLED)
    try:
        assert torch._C._is_torch_function_all_disabled() and not torch._C._is_torch_function_enabled()
        assert torch._C._get_torch_function_state() is state.ALL_DISABLED
    finally:
        torch._C._set_torch_function_state(before)
    assert torch._C._is_torch_function_enabled()
    with pytest.raises(TypeError, match="a _TorchFunctionState was required; got int."):
        torch._C._set_torch_function_state(1)


def test_block_in_which_types_override_again():
    class Own(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Own)
    for off in (torch._C.DisableTorchFunction, torch._C.DisableTorchFunctionSubclass):
        with off():
            before = torch._C._get_torch_function_state()
            with torch.overrides._enable_torch_function():
                assert type(x + 1) is Own
            assert torch._C._get_torch_function_state() is before and type(x + 1) is torch.Tensor
