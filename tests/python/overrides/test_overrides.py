"""The listings of the override protocol, and that everything listed really goes through it."""

import inspect
import keyword

import pytest

import cresset as torch
from cresset import overrides

TESTING = overrides.get_testing_overrides()


class Duck:
    """Answers every function with -1."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return -1


class Sub(torch.Tensor):
    """The same for methods and properties, whose first argument must be a tensor."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return {torch.Tensor.__repr__: "-1", torch.Tensor.__setitem__: None}.get(func, -1)


# The language turns these results into bool, or takes None for them.
COERCED = {torch.Tensor.__bool__: True, torch.Tensor.__contains__: True, torch.Tensor.__repr__: "-1", torch.Tensor.__setitem__: None}


@pytest.mark.parametrize("function", TESTING, ids=[overrides.resolve_name(f) for f in TESTING])
def test_every_listed_function_goes_through_the_protocol(function):
    parameters = inspect.signature(TESTING[function]).parameters.values()
    make = (lambda: Sub([1.0])) if overrides.is_tensor_method_or_property(function) else Duck
    args = [make() for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if not args:
        args = [make()]
    required = {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    result = function(*args, **required)
    assert result == COERCED.get(function, -1)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        assert TESTING[function](*args, **required) == -1


def test_listing_covers_the_namespaces():
    table = overrides.get_overridable_functions()
    for namespace in (torch, torch.nn.functional, torch.special, torch.Tensor):
        assert len(table[namespace]) > 20
    assert torch.add in table[torch] and torch.Tensor.add in table[torch.Tensor] and torch.nn.functional.cross_entropy in table[torch.nn.functional]
    assert table[torch.Tensor.shape] == [torch.Tensor.shape.__get__]
    listed = {f for functions in table.values() for f in functions}
    assert listed == set(TESTING)
    ignored = overrides.get_ignored_functions()
    assert torch.zeros in ignored and torch.tensor in ignored and torch.manual_seed in ignored and not listed & ignored


def test_every_operator_function_is_listed_or_ignored():
    known = set(TESTING) | overrides.get_ignored_functions()
    for name, value in vars(torch).items():
        if not name.startswith("_") and isinstance(value, torch._C.builtin_function):
            assert value in known, name


@pytest.mark.parametrize(
    "function, name, member",
    [
        (torch.add, "torch.add", False),
        (torch.Tensor.add, "torch.Tensor.add", True),
        (torch.Tensor.shape.__get__, "torch.Tensor.shape.__get__", True),
        (torch.Tensor.requires_grad.__set__, "torch.Tensor.requires_grad.__set__", False),
        (torch.nn.functional.linear, "torch.nn.functional.linear", False),
        (torch.special.erf, "torch.special.erf", False),
        (torch.ops.aten.add.Tensor, "aten.add.Tensor", False),
        (torch.ops.aten.add, "aten.add", False),
        (torch.Tensor.__getitem__, "torch.Tensor.__getitem__", True),
        (len, None, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # an address in an id would differ between test processes
)
def test_names(function, name, member):
    assert overrides.resolve_name(function) == name
    assert overrides.is_tensor_method_or_property(function) == member


@pytest.mark.parametrize(
    "function, signature",
    [
        (torch.add, "(input, other, out=None)"),
        (torch.cat, "(tensors, dim=0, out=None)"),
        (torch.Tensor.shape.__get__, "(self)"),
        (torch.nn.functional.linear, "(input, weight, bias=None, out=None)"),
        (torch.Tensor.add, "(self, other)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dummies_have_the_signatures(function, signature):
    assert str(inspect.signature(TESTING[function])) == signature


def test_helpers():
    assert overrides.is_tensor_like(torch.ones(1)) and overrides.is_tensor_like(Duck()) and not overrides.is_tensor_like(1)
    assert overrides.has_torch_function((1, Duck())) and not overrides.has_torch_function((1, torch.ones(1)))

    @overrides.wrap_torch_function(lambda x, y=None: (x, y))
    def mine(x, y=None):
        return "own"

    assert mine(1) == "own" and mine(Duck()) == -1 and mine(1, y=Duck()) == -1
    from cresset._overrides import get_overridable_functions

    assert get_overridable_functions is overrides.get_overridable_functions


def test_dummies_take_every_parameter_of_every_overload():
    """By keyword; shown is the short signature that PyTorch's dummies have."""
    for function, dummy in TESTING.items():
        for name in getattr(function, "_overloads", ()):
            base, _, overload = name.partition(".")
            arguments = torch._C._find_overload(base, overload)._schema.arguments
            names = set(dummy.__code__.co_varnames[: dummy.__code__.co_argcount + dummy.__code__.co_kwonlyargcount])
            given = {"out" if a.is_out else a.name for a in arguments}
            if "out" in given and "out" not in names:
                continue  # in-place methods and methods, which have no out
            renamed = {f"{n}_" if keyword.iskeyword(n) else "input" if n == "self" and "self" not in names else n for n in given}
            assert renamed <= names, (function, name)
            assert dummy(**dict.fromkeys(renamed | {n for n in names if dummy.__code__.co_varnames.index(n) == 0})) == -1
    assert TESTING[torch.sum](torch.ones(1), 0, True, dtype=torch.float64) == -1
    assert TESTING[torch.max](torch.ones(1), dim=0, keepdim=True) == -1
    assert TESTING[torch.div](1, 2, rounding_mode="floor") == -1
