"""functional_call: parameters, buffers and plain attributes, what a module assigns while it runs, and modules that hold each other."""

import cresset
import pytest
from cresset import nn
from cresset.func import functional_call

ONE = cresset.ones(1)


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.plain = cresset.ones(1)
        self.nothing = None
        self.number = 3
        self.register_buffer("steps", cresset.zeros(1))

    def forward(self, x):
        self.steps = self.steps + 1
        return self.layer(x) * 0 + self.plain + self.steps


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.layer.above = self

    def forward(self, x):
        return self.layer.weight * x


def test_a_plain_attribute_is_replaced_and_comes_back():
    m = Steps()
    own = m.plain
    assert functional_call(m, {"plain": cresset.tensor([5.0])}, ONE).item() == 6
    assert m.plain is own
    assert functional_call(m, {"nothing": ONE}, ONE).item() == 3 and m.nothing is None
    functional_call(m, {"unknown": ONE}, ONE)
    assert not hasattr(m, "unknown")


def test_an_attribute_of_the_class():
    class Constant(nn.Module):
        k = cresset.ones(1)

        def forward(self, x):
            return x + self.k

    m = Constant()
    assert functional_call(m, {"k": cresset.tensor([4.0])}, ONE).item() == 5
    assert m.k.item() == 1 and "k" not in vars(m)


@pytest.mark.parametrize("tie_weights", [True, False])
def test_what_the_module_assigns_is_in_the_dictionary(tie_weights):
    m, given = Steps(), {"steps": cresset.tensor([7.0])}
    own = m.steps
    assert functional_call(m, given, ONE, tie_weights=tie_weights).item() == 9
    assert given["steps"].item() == 8 and m.steps is own and own.item() == 0
    several = {"steps": cresset.tensor([7.0])}
    functional_call(m, (several, {}), ONE)
    assert several["steps"].item() == 7 and m.steps is own


def test_parameters_that_are_replaced_or_deleted():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(cresset.ones(1)), nn.Parameter(cresset.ones(1))

        def forward(self, x):
            self.a = nn.Parameter(self.a + 1)
            del self.b
            return x

    m, given = Odd(), {"a": cresset.tensor([2.0]), "b": cresset.tensor([2.0])}
    before = dict(m.named_parameters())
    functional_call(m, given, ONE)
    after = dict(m.named_parameters())
    assert after.keys() == before.keys() and all(after[n] is before[n] for n in after)
    assert given["a"].item() == 3 and given["b"].item() == 2


def test_an_error_in_forward_leaves_the_module_as_it_was():
    class Fails(Steps):
        def forward(self, x):
            super().forward(x)
            raise ValueError("no")

    m, given = Fails(), {"steps": cresset.tensor([7.0]), "layer.weight": cresset.ones(1, 1)}
    own, weight = m.steps, m.layer.weight
    with pytest.raises(ValueError, match="no"):
        functional_call(m, given, ONE)
    assert m.steps is own and m.layer.weight is weight and given["steps"].item() == 8


def test_modules_that_hold_each_other():
    m = Loop()
    two = cresset.tensor([[2.0]])
    for name in ("layer.weight", "layer.above.layer.weight"):
        for tie_weights in (True, False):
            assert functional_call(m, {name: two}, ONE, tie_weights=tie_weights).item() == 2, name
    assert functional_call(m, {"layer.weight": two, "layer.bias": ONE}, ONE, strict=True).item() == 2


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"unknown.x": ONE}, AttributeError, "Steps has no attribute `unknown`"),
        ({"plain.x": ONE}, TypeError, r"submodule `plain`: tensor\(\[1\.\]\) is not an instance of torch.nn.Module"),
        ({"number": ONE}, TypeError, "attribute `number`: 3 is not an instance of torch.Tensor"),
        ({"layer": ONE}, TypeError, r"attribute `layer`: Linear\(.*\) is not an instance of torch.Tensor"),
        ({"plain": 3}, TypeError, "3 is not an instance of torch.Tensor"),
        ({"layer.weight": 3}, TypeError, "3 is not an instance of torch.Tensor"),
        ({"": ONE}, KeyError, "tensor name can.{1,2}t be empty string"),
    ],
)
def test_names_and_values_that_cannot_be(values, error, words):
    m = Steps()
    own = m.steps
    with pytest.raises(error, match=words):
        functional_call(m, {"steps": ONE, **values}, ONE)
    assert m.steps is own


def test_a_scripted_module_is_refused():
    with pytest.raises(RuntimeError, match="The stateless API can't be used with Jitted modules"):
        functional_call(cresset.jit.script(nn.Linear(1, 1)), {}, ONE)


def test_the_older_name():
    from cresset.nn.utils import stateless

    with pytest.warns(FutureWarning, match="functional_call` is deprecated"):
        assert stateless.functional_call(Steps(), {"plain": cresset.zeros(1)}, ONE).item() == 1
    m, given = Steps(), {"plain": cresset.zeros(1)}
    with stateless._reparametrize_module(m, given):
        assert m.plain.item() == 0
    assert m.plain.item() == 1


def test_new_names_and_none():
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.plain = nn.Parameter(cresset.ones(1)), cresset.ones(1)

        def forward(self, x):
            return [n for n, _ in self.named_parameters()], getattr(self, "new", None), self.plain

    m, parameter = Lists(), nn.Parameter(cresset.zeros(1))
    names, new, _ = functional_call(m, {"new": parameter}, ONE)
    assert names == ["w", "new"] and new is parameter
    assert functional_call(m, {"new": ONE}, ONE)[:2] == (["w"], ONE)
    assert functional_call(m, {"plain": parameter}, ONE)[0] == ["w"]
    assert functional_call(m, {"w": None, "plain": None}, ONE) == ([], None, None)
    assert [n for n, _ in m.named_parameters()] == ["w"] and not hasattr(m, "new") and m.plain.item() == 1
