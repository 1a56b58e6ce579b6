"""Methods of Tensor that are written in Python: one way in, under the protocol from their definition on."""

import types

import cresset
import numpy as np
import pytest
from cresset import _C, _overridable
from cresset.overrides import TorchFunctionMode


@pytest.fixture
def attributes(monkeypatch):
    monkeypatch.setattr(_overridable, "_attributes", {})
    return _overridable._attributes


def test_definitions_are_installed_in_any_order(attributes):
    class Class:
        present = 1

    _overridable.tensor_attribute("present", 2, missing=True)
    _overridable.tensor_attribute("absent", 3, missing=True)

    @_overridable.tensor_method(name="first", missing=True)
    def rest(self):
        return "missing"

    @_overridable.tensor_method
    def first_of_all(self):
        """Words."""
        return "given"

    _overridable.install_methods(Class)
    instance = Class()
    assert (instance.present, instance.absent, instance.first(), instance.first_of_all()) == (1, 3, "missing", "given")
    assert (Class.first_of_all.__qualname__, Class.first_of_all.__doc__) == ("Tensor.first_of_all", "Words.")
    assert not attributes


def test_a_name_is_defined_once(attributes):
    _overridable.tensor_attribute("lu", 1)
    with pytest.raises(RuntimeError, match=r"^Tensor\.lu is defined twice\.$"):
        _overridable.tensor_method(lambda self: None, name="lu")


def test_all_methods_of_python_take_part():
    plain = {name for name, value in vars(cresset.Tensor).items() if isinstance(value, types.FunctionType)}
    # they ask themselves, or nobody is asked
    assert plain == {"__dir__", "__reduce_ex__", "__repr__", "reinforce"}


@pytest.mark.parametrize("name", ["register_hook", "share_memory_", "unique", "_is_all_true"])
def test_modes_see_them(name):
    class Seen(TorchFunctionMode):
        def __init__(self):
            self.functions = []

        def __torch_function__(self, function, kinds, args=(), kwargs=None):
            self.functions.append(function)
            return "seen"

    x = cresset.zeros(2, requires_grad=True)
    arguments = (print,) if name == "register_hook" else ()
    with Seen() as mode:
        assert getattr(x, name)(*arguments) == "seen"
    assert mode.functions == [getattr(cresset.Tensor, name)] and isinstance(mode.functions[0], _C.overridable)


class Told(cresset.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Told.seen.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})


@pytest.mark.parametrize(
    "call, kind, seen",
    [
        (lambda x: cresset.tensor(x), cresset.Tensor, []),
        (lambda x: cresset.as_tensor(x), Told, []),
        (lambda x: cresset.as_tensor(x, dtype=cresset.double), cresset.Tensor, []),
        (lambda x: x.new_tensor([1.0]), Told, ["new_tensor"]),
        (lambda x: np.array(x), np.ndarray, ["__array__"]),
        (lambda x: np.asarray(x), np.ndarray, ["__array__"]),
        (lambda x: np.sin(x), Told, ["__array__", "__array_wrap__"]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_data_and_numpy_ask(call, kind, seen):
    """PyTorch 2.13: data is read and not asked; arrays are made by methods that the type may override."""
    x = cresset.tensor([1.0, 2.0]).as_subclass(Told)
    Told.seen.clear()
    got = call(x)
    assert type(got) is kind and Told.seen == seen
