"""Binary operators whose tensor operand knows nothing of the other one: the other's reflected method has its turn, as in PyTorch."""

import operator

import pytest

import cresset as torch

NAMES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


class Plain(torch.Tensor):
    pass


def refuse(cls, func, types, args=(), kwargs=None):
    return NotImplemented


def raise_type_error(cls, func, types, args=(), kwargs=None):
    raise TypeError("mine")


PROTOCOLS = {
    "none": {},
    "refuses": {"__torch_function__": classmethod(refuse)},
    "raises TypeError": {"__torch_function__": classmethod(raise_type_error)},
    "disabled": {"__torch_function__": torch._C._disabled_torch_function_impl},
    "is like a float": {"__float__": lambda self: 2.5},
    "is like an int": {"__index__": lambda self: 2},
    "is a sequence": {"__len__": lambda self: 2, "__getitem__": lambda self, i: [1, 2][i]},
}


def unit(protocol, **methods):
    return type("Unit", (), PROTOCOLS[protocol] | methods)()


def reflected(name):
    return f"__r{name.strip('_')}__"


@pytest.fixture(params=("float", "int", "subclass"))
def base(request):
    return {"float": torch.ones(2), "int": torch.ones(2, dtype=torch.int64), "subclass": torch.ones(2).as_subclass(Plain)}[request.param]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", NAMES)
def test_the_reflected_method_is_called(name, protocol, base):
    other = unit(protocol, **{reflected(name): lambda self, tensor: ("reflected", tensor)})
    assert getattr(operator, name)(base, other)[0] == "reflected" and getattr(operator, name)(base, other)[1] is base
    assert getattr(operator, "i" + name.strip("_"))(base, other)[0] == "reflected", "in place too"


@pytest.mark.parametrize("protocol", ["none", "refuses", "raises TypeError"])
@pytest.mark.parametrize("name", NAMES)
def test_without_one_the_operands_are_named(name, protocol, base):
    for call in (getattr(operator, name), getattr(operator, "i" + name.strip("_"))):
        with pytest.raises(TypeError, match="unsupported operand type.*(Tensor|Plain)' and 'Unit'"):
            call(base, unit(protocol))


@pytest.mark.parametrize("protocol", ["refuses", "raises TypeError"])
def test_comparisons(protocol):
    other = unit(protocol, **{f"__{name}__": lambda self, tensor: "compared" for name in COMPARISONS}, __hash__=object.__hash__)
    for name in COMPARISONS:
        assert getattr(operator, name)(torch.ones(2), other) == "compared"


def test_other_errors_of_the_protocol_stay():
    def fail(cls, func, types, args=(), kwargs=None):
        raise ValueError("mine")

    for name in NAMES:
        other = type("Unit", (), {"__torch_function__": classmethod(fail), reflected(name): lambda self, tensor: "reflected"})()
        with pytest.raises(ValueError, match="mine"):
            getattr(operator, name)(torch.ones(2), other)


# --- what modes are told of ---------------------------------------------------------------------------------------------------


def types_seen(call):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return func(*args, **(kwargs or {}))

    with Mode():
        call()
    return seen[0]


def test_types_under_a_mode():
    functional = torch.nn.functional
    x, p, s = torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.ones(2).as_subclass(Plain)
    for call in (lambda t: t.sum(), lambda t: t + t, lambda t: torch.cat([t, t]), lambda t: t.to("cpu"), lambda t: t.half(), lambda t: t.size(), lambda t: t[0],
                 lambda t: t.stride(), lambda t: torch.add(t, 1)):  # fmt: skip
        assert types_seen(lambda: call(x)) == types_seen(lambda: call(p)) == (), "operators tell of types that override"
        assert types_seen(lambda: call(s)) == (Plain,)
    for call in (lambda t: t.shape, lambda t: t.device, lambda t: t.dim(), lambda t: t.numel(), lambda t: t.is_complex(), lambda t: t.data_ptr(), lambda t: len(t),
                 lambda t: bool(t[0:1].detach().sum()) if t is None else t.grad, lambda t: t.storage_offset(), lambda t: t.tolist(), lambda t: setattr(t, "grad", None)):  # fmt: skip
        for t in (x, p, s):
            assert types_seen(lambda: call(t)) == (type(t),), "methods and attributes tell of the tensor's"
    for call in (lambda t: functional.dropout(t), lambda t: functional.softmax(t, 0), lambda t: torch.norm(t), lambda t: torch.einsum("i->", t)):
        assert types_seen(lambda: call(x)) == (torch.Tensor,), "functions written in Python too"
        assert types_seen(lambda: call(p)) == (), "unless it is disabled"
        assert types_seen(lambda: call(s)) == (Plain,)
    assert types_seen(lambda: torch.einsum("i,i->", x, s)) == (Plain, torch.Tensor)


OPERATOR_NAMES = {  # of the functions that a subclass sees, from PyTorch 2.13
    "==": "__eq__", "!=": "ne", "<": "lt", "//": "__floordiv__", "&": "__and__", "|": "__or__", "^": "__xor__", "<<": "__lshift__", ">>": "__rshift__",
    "%": "remainder", "+": "add", "-": "sub", "*": "mul", "&=": "__iand__", "|=": "__ior__", "^=": "__ixor__", "<<=": "__ilshift__", ">>=": "__irshift__",
    "//=": "floor_divide_", "+=": "add_",
}  # fmt: skip


@pytest.mark.parametrize("sign", OPERATOR_NAMES)
def test_names_of_operators(sign):
    seen = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2, dtype=torch.int64).as_subclass(Seeing)
    if sign.endswith("=") and sign not in ("==", "!="):
        exec(f"x {sign} x", {"x": x})
    else:
        assert isinstance(eval(f"x {sign} x", {"x": x}), Seeing)
    ~x
    assert seen == [OPERATOR_NAMES[sign], "__invert__"]


class Left(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Left.seen.append((function.__name__, [t.__name__ for t in types]))
        return super().__torch_function__(function, types, args, kwargs or {})


class Right(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "name, reflected",
    [("add", "add"), ("sub", "__rsub__"), ("pow", "__rpow__"), ("__floordiv__", "__rfloordiv__"), ("div", "__rdiv__"), ("remainder", "__rmod__"), ("matmul", "__rmatmul__")],
)  # fmt: skip
def test_unrelated_types_are_asked_for_both_methods(name, reflected):
    """PyTorch 2.13: the reflected method has its turn before the TypeError; it is Python's there, whose types share no slot."""
    operation = {"div": operator.truediv, "remainder": operator.mod, "__floordiv__": operator.floordiv}.get(name) or getattr(operator, name)
    left, right = torch.ones(2).as_subclass(Left), torch.ones(2).as_subclass(Right)
    Left.seen.clear()
    with pytest.raises(TypeError):
        operation(left, right)
    assert Left.seen == [(name, ["Left", "Right"]), (reflected, ["Right", "Left"])]


def test_equality_asks_the_left_type_alone():
    left, right = torch.tensor([1.0, 2.0]).as_subclass(Left), torch.tensor([1.0, 3.0]).as_subclass(Right)
    Left.seen.clear()
    same = left == right
    assert Left.seen[0] == ("__eq__", ["Left"]) and type(same) is Left and same.tolist() == [True, False]
    assert type(right == left) is Right
