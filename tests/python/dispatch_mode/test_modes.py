"""TorchDispatchMode: which operators arrive, with which arguments, and what happens around them."""

import pytest

import cresset as torch
from cresset.utils import _python_dispatch as dispatch
from cresset.utils._python_dispatch import BaseTorchDispatchMode, TorchDispatchMode


class Log(TorchDispatchMode):
    """Writes down the operators, their positional arguments and keyword arguments; tensors as "T"."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        show = lambda v: "T" if isinstance(v, torch.Tensor) else v  # noqa: E731
        self.calls.append((str(func), [show(a) for a in args], {k: show(v) for k, v in kwargs.items()}))
        return func(*args, **kwargs)

    @property
    def names(self):
        return [c[0].removeprefix("aten.") for c in self.calls if not c[0].startswith("aten.detach")]


def seen(call):
    with Log() as mode:
        call()
    return mode


x, m, w, b = torch.ones(3, requires_grad=True), torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)


WHERE = {"device": torch.device("cpu"), "pin_memory": False}  # functions that make tensors say it in each call


@pytest.mark.parametrize(
    "call, calls",
    [
        (lambda: x * 2, [("aten.mul.Tensor", ["T", 2], {})]),
        (lambda: x + 1.5, [("aten.add.Tensor", ["T", 1.5], {})]),
        (lambda: torch.add(x, x, alpha=3), [("aten.add.Tensor", ["T", "T"], {"alpha": 3})]),
        (lambda: torch.zeros(2, 3, dtype=torch.float64), [("aten.zeros.default", [[2, 3]], {"dtype": torch.float64, **WHERE})]),
        (lambda: torch.empty(2), [("aten.empty.memory_format", [[2]], WHERE)]),
        (lambda: torch.arange(3), [("aten.arange.default", [3], WHERE)]),
        (lambda: torch.full_like(m, 2), [("aten.full_like.default", ["T", 2], {"pin_memory": False})]),
        (lambda: m.new_zeros(2), [("aten.new_zeros.default", ["T", [2]], {"pin_memory": False})]),
        (lambda: torch.ops.aten.ones.default([2]), [("aten.ones.default", [[2]], {})]),
        (lambda: x.sum(0), [("aten.sum.dim_IntList", ["T", [0]], {})]),
        (lambda: x.sum(0, keepdim=True), [("aten.sum.dim_IntList", ["T", [0], True], {})]),
        (lambda: torch.cat([m, m], 1), [("aten.cat.default", [[m, m], 1], {})]),
        (lambda: torch.cat([m, m]), [("aten.cat.default", [[m, m]], {})]),
        (lambda: m.t(), [("aten.t.default", ["T"], {})]),
        (lambda: m[1], [("aten.select.int", ["T", 0, 1], {})]),
        (lambda: m.max(1), [("aten.max.dim", ["T", 1], {})]),
        (lambda: torch.nn.functional.linear(m, w), [("aten.t.default", ["T"], {}), ("aten.mm.default", ["T", "T"], {})]),
        (lambda: torch.nn.functional.linear(m, w, b), [("aten.t.default", ["T"], {}), ("aten.addmm.default", ["T", "T", "T"], {})]),
    ],
)  # fmt: skip
def test_calls(call, calls):
    got = seen(call).calls
    assert [c[0] for c in got] == [c[0] for c in calls]
    for (_, args, kwargs), (_, expected, expected_kwargs) in zip(got, calls):
        assert len(args) == len(expected) and kwargs == expected_kwargs
        assert all(a is e or isinstance(e, list) and isinstance(e[0], torch.Tensor) and len(a) == len(e) or a == e for a, e in zip(args, expected))


def test_backward_arrives():
    w = torch.tensor([-1.0, 2.0], requires_grad=True)
    names = seen(lambda: (w * 2).relu().sum().backward()).names
    assert names[:3] == ["mul.Tensor", "relu.default", "sum.default"]
    assert names[3:7] == ["ones_like.default", "expand.default", "threshold_backward.default", "mul.Tensor"]
    assert w.grad.tolist() == [0.0, 2.0]


def test_function_is_an_overload_and_autograd_has_been():
    class Check(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert isinstance(func, torch._C.OpOverload) and isinstance(args, tuple) and isinstance(kwargs, dict)
            result = func(*args, **kwargs)
            assert not result.requires_grad
            return result

    with Check():
        y = x * x
    assert y.requires_grad and y.grad_fn.name() == "MulBackward0"


def test_nesting_and_queries():
    outer, inner = Log(), Log()
    with outer, inner:
        assert dispatch._get_current_dispatch_mode() is inner and dispatch._get_current_dispatch_mode_stack() == [outer, inner]
        torch.ones(1)
        with dispatch._pop_mode_temporarily():
            torch.zeros(1)
        with dispatch._disable_current_modes():
            torch.rand(1)
        with dispatch.no_dispatch():
            torch.rand(1)
    assert inner.names == ["ones.default"] and outer.names == ["ones.default", "zeros.default"]
    assert dispatch._get_current_dispatch_mode() is None and not dispatch.is_in_torch_dispatch_mode()
    with outer, outer:
        torch.ones(1)
    assert outer.names[2:] == ["ones.default"] * 2


def test_inside_of_itself_it_is_off():
    class Counts(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            torch.ones(3)
            return func(*args, **kwargs)

    with Counts() as mode:
        torch.ones(1) + 1
    assert mode.calls == 2


def returns(value):
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if isinstance(value, Exception):
                raise value
            return value

    return Mode()


@pytest.mark.parametrize(
    "value, error, words",
    [
        ("text", RuntimeError, "Unable to cast"),
        (NotImplemented, TypeError, "Multiple dispatch failed for 'cresset._ops.aten.ones.default'; all __torch_dispatch__ handlers returned NotImplemented"),
        (KeyError("inside"), KeyError, "inside"),
    ],
)
def test_failures(value, error, words):
    with pytest.raises(error, match=words), returns(value):
        torch.ones(1)
    assert torch._C._len_torch_dispatch_stack() == 0
    assert torch.ones(1).item() == 1.0


def test_results_replace():
    with returns(torch.full((2,), 7.0)):
        assert torch.add(m, 1).tolist() == [7.0, 7.0]
    with BaseTorchDispatchMode():
        assert torch.add(torch.ones(1), 1).item() == 2.0


def test_refusals():
    class Bad(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return None

    with Bad(), pytest.raises(RuntimeError, match="as a classmethod is not supported"):
        torch.ones(1)
    with pytest.raises(RuntimeError, match="empty mode stack"):
        torch._C._pop_torch_dispatch_stack()


def test_modes_of_machinery_count_apart():
    from cresset.utils._python_dispatch import is_in_torch_dispatch_mode

    class Machinery(BaseTorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    def both():
        return is_in_torch_dispatch_mode(), is_in_torch_dispatch_mode(include_infra_modes=False)

    assert both() == (False, False)
    with Machinery():
        assert both() == (True, False)
        with BaseTorchDispatchMode():
            assert both() == (True, True)
            with Machinery():
                assert both() == (True, True)
        assert both() == (True, False)


def test_operators_of_python_arrive():
    from cresset.library import custom_op

    @custom_op("mode_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    mode = seen(lambda: twice(m))
    assert mode.calls[0][0] == "mode_test.twice.default"


def test_membership_and_lists_are_few_operators():
    names = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with Names():
        assert 2.0 in x and 3 not in x and torch.tensor(1.0) in x
        assert x.tolist() == [1.0, 2.0]
    one = ["aten.any.default", "aten._local_scalar_dense.default"]
    made = [n for n in names if "lift" not in n]  # of torch.tensor
    assert made == ["aten.eq.Scalar", *one, "aten.eq.Scalar", *one, "aten.eq.Tensor", *one]
