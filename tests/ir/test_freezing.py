"""Freezing: what counts as written, what is kept, what is refused. Each module is a whole scenario."""

from typing import Dict, List, Tuple

import pytest

import cresset
from cresset import lowering, nn


class AddToItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = nn.Parameter(cresset.zeros(2), requires_grad=False)

    def forward(self, x):
        self.state.add_(1)
        return x + self.state


class ThroughAlias(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", cresset.zeros(2))

    def forward(self, x):
        same = self.state
        same.mul_(2).add_(1)
        return x + self.state


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", cresset.zeros(2))
        self.register_buffer("other", cresset.ones(2))

    def forward(self, x):
        self.state += x
        return self.state * self.other


class BySubmodule(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x) + self.inner.state


class ListWritten(nn.Module):
    numbers: List[int]

    def __init__(self):
        super().__init__()
        self.numbers = [1, 2]
        self.fixed = [5, 6]

    def forward(self, x):
        self.numbers.append(len(self.numbers))
        return x + self.numbers[-1] + self.fixed[0]


class DictWritten(nn.Module):
    table: Dict[str, int]

    def __init__(self):
        super().__init__()
        self.table = {"a": 1}

    def forward(self, x):
        self.table["a"] += 1
        return x + self.table["a"]


class TupleWithList(nn.Module):
    pair: Tuple[List[int], int]

    def __init__(self):
        super().__init__()
        self.pair = ([1], 3)

    def forward(self, x):
        self.pair[0].append(4)
        return x + len(self.pair[0]) + self.pair[1]


class SharedStorage(nn.Module):
    def __init__(self):
        super().__init__()
        base = cresset.zeros(4)
        self.register_buffer("front", base[:2])
        self.register_buffer("all", base)

    def forward(self, x):
        self.front.add_(1)
        return x + self.all[:2]


class Forked(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", cresset.full((2,), 3.0))

    def work(self, x):
        return x * self.scale

    def forward(self, x):
        future = cresset.jit.fork(self.work, x)
        return cresset.jit.wait(future)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        if x.sum() > 0:
            y = self.a(x)
        else:
            y = self.b(x)
        for _ in range(2):
            y = self.a(y)
        return y


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(x)


class Scale(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.weight = nn.Parameter(cresset.full((2,), value))

    def forward(self, x):
        return x * self.weight


class OneTwiceAndTwoOfAClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Scale(2.0), Scale(3.0)
        self.same = self.a

    def forward(self, x):
        return self.a(self.same(x)) + self.b(x)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Sequential(Scale(2.0)), BySubmodule())

    def forward(self, x):
        return self.layers(x)


SAME = [OneTwiceAndTwoOfAClass, Deep, AddToItself, ThroughAlias, BySubmodule, ListWritten, DictWritten, TupleWithList, SharedStorage, Forked, Branches]


@pytest.mark.parametrize("make", SAME, ids=lambda c: c.__name__)
def test_frozen_modules_change_as_the_module_does(make):
    cresset.manual_seed(0)
    module = cresset.jit.script(make().eval())
    cresset.manual_seed(0)
    reference = make().eval()
    frozen = lowering.freeze(module)
    for k in range(3):
        x = cresset.randn(2) + k
        assert cresset.allclose(frozen._get_method("forward")(x), reference(x)), k


@pytest.mark.parametrize("make, kept", [(AddToItself, {"state"}), (ThroughAlias, {"state"}), (BySubmodule, {"inner"}), (ListWritten, {"numbers"}),
                                        (DictWritten, {"table"}), (TupleWithList, {"pair"}), (SharedStorage, {"front", "all"}), (Forked, set()), (Branches, set()),
                                        (OneTwiceAndTwoOfAClass, set()), (Deep, {"layers"})],
                         ids=lambda c: getattr(c, "__name__", ""))
def test_what_is_kept(make, kept):
    frozen = lowering.freeze(cresset.jit.script(make().eval()))
    assert {name for name, *_ in frozen._attributes()} == kept


def test_only_the_written_attribute_of_a_submodule_is_kept():
    frozen = lowering.freeze(cresset.jit.script(BySubmodule().eval()))
    assert {name for name, *_ in frozen.getattr("inner")._c._attributes()} == {"state"}


def test_training_modules():
    frozen = lowering.freeze(cresset.jit.script(Normed().train()))
    text = str(frozen._get_method("forward").graph)
    assert 'name="running_mean"' in text and 'name="weight"' in text
    x = cresset.randn(8, 2)
    reference = Normed().train()
    for _ in range(2):
        assert cresset.allclose(frozen._get_method("forward")(x), reference(x), atol=1e-6)
    frozen = lowering.freeze(cresset.jit.script(Normed().eval()))
    assert 'name="running_mean"' not in str(frozen._get_method("forward").graph)


def test_constants_need_no_gradients():
    module = cresset.jit.script(Branches().eval())
    x = cresset.randn(2, 2)
    assert module(x).requires_grad and not lowering.freeze(module)._get_method("forward")(x).requires_grad


class ReturnsSelf(nn.Module):
    def forward(self, x):
        return self


class Methods(nn.Module):
    count: int

    def __init__(self):
        super().__init__()
        self.count = 0
        self.fc = nn.Linear(2, 2)

    @cresset.jit.export
    def bump(self, x):
        self.count += 1
        return self.fc(x) + self.count

    @cresset.jit.export
    def unused(self, x):
        return x

    def forward(self, x):
        return self.fc(x) * self.count


def test_preserved_methods_share_what_they_write():
    module = cresset.jit.script(Methods().eval())
    frozen = lowering.freeze(module, ["bump"])
    assert set(frozen._method_names()) == {"forward", "bump"}
    x = cresset.ones(1, 2)
    zero = frozen._get_method("forward")(x)
    frozen._get_method("bump")(x)
    assert cresset.equal(zero, cresset.zeros(1, 2)) and not cresset.equal(frozen._get_method("forward")(x), zero)
    assert module.count == 0
    plain = lowering.freeze(module)
    assert "prim::GetAttr" not in str(plain._get_method("forward").graph)  # nobody bumps there


class Identity(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", cresset.ones(2))

    def forward(self, x):
        y = self.a.detach()
        return x + y


def test_detach_of_constants_goes():
    text = str(lowering.freeze(cresset.jit.script(Identity().eval()))._get_method("forward").graph)
    assert "aten::detach" not in text


def test_a_module_that_returns_itself_is_refused():
    with pytest.raises(RuntimeError, match="attempted to freeze a module that return itself"):
        lowering.freeze(cresset.jit.script(ReturnsSelf().eval()))


# ---- interfaces, containers of modules, modules as results


@cresset.jit.interface
class Activation(nn.Module):
    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        pass


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = 2

    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        return x + self.by


class ByInterface(nn.Module):
    act: Activation

    def __init__(self):
        super().__init__()
        self.act = Shift()

    def forward(self, x):
        return self.act(x) * 2


class InterfaceAnew(nn.Module):
    act: Activation

    def __init__(self):
        super().__init__()
        self.act, self.other = Shift(), Shift()

    def forward(self, x):
        self.act = self.other
        return self.act(x)


class IndexedByConstant(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.named = nn.ModuleList([Shift(), Scale(2.0)]), nn.ModuleDict({"shift": Shift()})

    def forward(self, x):
        return self.named["shift"](self.blocks[-1](self.blocks[0](x)))


class IndexedAtRunTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Shift(), Shift()])

    def forward(self, x, i: int):
        block: Activation = self.blocks[i]
        return block(x)


class NamedAtRunTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleDict({"a": Shift(), "b": Shift()})

    def forward(self, x, name: str):
        block: Activation = self.blocks[name]
        return block(x)


class GivesSubmodule(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.used = Inner(), Shift()

    def forward(self, x):
        return self.inner, self.used(x)


@pytest.mark.parametrize("make", [ByInterface, IndexedByConstant], ids=lambda c: c.__name__)
def test_what_is_known_when_freezing_leaves_no_attributes(make):
    frozen = lowering.freeze(cresset.jit.script(make().eval()))
    text = str(frozen._get_method("forward").graph)
    assert frozen._attributes() == [] and "prim::GetAttr" not in text and "prim::CallMethod" not in text
    x = cresset.randn(2)
    assert cresset.equal(frozen._get_method("forward")(x), make()(x))


@pytest.mark.parametrize("make, words", [
    (InterfaceAnew, "Freezing does not support SetAttr on an interface type: the attribute 'act' is set"),
    (IndexedAtRunTime, "Freezing modules containing prim::ModuleContainerIndex is not supported"),
    (NamedAtRunTime, "Freezing modules containing prim::ModuleContainerIndex is not supported"),
], ids=lambda c: getattr(c, "__name__", ""))
def test_what_is_not_known_is_refused_with_the_place(make, words):
    module = cresset.jit.script(make().eval())
    with pytest.raises(RuntimeError, match=words) as e:
        lowering.freeze(module)
    assert "HERE" in str(e.value) and "test_freezing.py" in str(e.value)
    assert str(module.graph)  # which stays as it was


def test_a_returned_submodule_stays_whole():
    module = cresset.jit.script(GivesSubmodule().eval())
    frozen = lowering.freeze(module)
    assert {name for name, *_ in frozen._attributes()} == {"inner"}
    inner, y = frozen._get_method("forward")(x := cresset.ones(2))
    assert cresset.equal(y, x + 2)
    assert cresset.equal(inner(x), x) and cresset.equal(inner(x), x + 1)  # its state grows
    assert cresset.equal(frozen._get_method("forward")(x)[0](x), x + 2)  # it is the module's own
    assert cresset.equal(module.inner.state, cresset.zeros(2))


def test_preserved_submodules_and_parameters():
    module = cresset.jit.script(BySubmodule().eval())
    frozen = lowering.freeze(module, ["inner"])
    assert {name for name, *_ in frozen.getattr("inner")._c._attributes()} >= {"state", "other"}
    frozen.getattr("inner").other.fill_(5.0)  # written from outside: the frozen method sees it
    x = cresset.ones(2)
    assert cresset.equal(frozen._get_method("forward")(x), x * 5 + 1)
    assert cresset.equal(module.inner.other, cresset.ones(2))


# ---- attributes that share memory


class TensorInList(nn.Module):
    items: List[cresset.Tensor]

    def __init__(self):
        super().__init__()
        base = cresset.zeros(4)
        self.register_buffer("state", base)
        self.items = [base[1:3], base, cresset.ones(2)]

    def forward(self, x):
        self.state.add_(1)
        return x + self.items[0] + self.items[1][2:] + self.items[2]


class TensorsOfListWritten(nn.Module):
    items: List[cresset.Tensor]
    table: Dict[str, cresset.Tensor]

    def __init__(self):
        super().__init__()
        base = cresset.zeros(4)
        self.register_buffer("state", base)
        self.items, self.table = [base[2:]], {"a": base}

    def forward(self, x):
        self.items[0].mul_(2).add_(x)
        return self.state[2:] + self.table["a"][2:]


class Linked(nn.Module):
    lists: List[List[int]]
    pair: Tuple[List[int], int]
    numbers: List[int]

    def __init__(self):
        super().__init__()
        self.numbers, self.lists, self.pair = [1], [[5]], ([2], 3)

    @cresset.jit.export
    def link(self):
        self.lists.append(self.numbers)
        self.pair = (self.numbers, 4)

    def forward(self, x):
        self.numbers.append(3)
        return x + len(self.lists[-1]) + len(self.pair[0])


class Overlapping(nn.Module):
    def __init__(self):
        super().__init__()
        base = cresset.arange(6.0)
        self.register_buffer("front", base[:4])
        self.register_buffer("back", base[2:])

    def forward(self, x):
        self.front.mul_(2)
        return self.back * x


@pytest.mark.parametrize("make, kept", [(TensorInList, {"state", "items"}), (TensorsOfListWritten, {"state", "items", "table"}), (Overlapping, {"front", "back"}),
                                        (Linked, {"numbers", "lists", "pair"})], ids=lambda c: getattr(c, "__name__", ""))
def test_attributes_that_share_memory_share_it_when_frozen(make, kept):
    module = cresset.jit.script(make().eval())
    if hasattr(make, "link"):
        module.link()
    frozen = lowering.freeze(module)
    assert {name for name, *_ in frozen._attributes()} == kept
    before = str(module.state_dict())
    first = [frozen._get_method("forward")(cresset.full((1,), float(k + 1))).clone() for k in range(3)]
    assert str(module.state_dict()) == before
    for k in range(3):
        assert cresset.equal(first[k], module(cresset.full((1,), float(k + 1)))), k


def test_one_memory_seen_as_two_dtypes_is_refused():
    class TwoDtypes(nn.Module):
        def __init__(self):
            super().__init__()
            base = cresset.zeros(4)
            self.register_buffer("numbers", base)
            self.register_buffer("bits", base.view(cresset.int32))

        def forward(self, x):
            self.numbers.add_(x)
            return self.bits

    with pytest.raises(RuntimeError, match="freeze: attributes of two dtypes share memory, and one of them is written"):
        lowering.freeze(cresset.jit.script(TwoDtypes().eval()))


# ---- other lines of freezing


class Compared(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y.detach()
        if z is y:
            return y
        return y + 1


def test_detach_stays_where_objects_are_compared():
    frozen = lowering.freeze(cresset.jit.script(Compared().eval()))
    assert "aten::detach" in str(frozen._get_method("forward").graph)
    x = cresset.randn(2)
    assert cresset.equal(frozen._get_method("forward")(x), Compared()(x))


@pytest.mark.parametrize("training", [False, True])
def test_dropout_and_convolution(training):
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.drop = nn.Conv1d(1, 1, 1), nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.conv(x))

    frozen = lowering.freeze(cresset.jit.script(Layers().train(training)))
    text = str(frozen._get_method("forward").graph)
    for name in ("training", "weight"):
        assert (f'prim::GetAttr[name="{name}"]' in text) == training


def test_pytorchs_name_freezes_the_objects():
    module = cresset.jit.script(ListWritten().eval())
    frozen = cresset._C._freeze_module(module._c, preservedAttrs=["fixed"])
    assert frozen.hasattr("numbers") and frozen.hasattr("fixed")
    assert not cresset._C._freeze_module(module._c).hasattr("fixed")
    with pytest.raises(NotImplementedError, match="preserveParameters"):
        cresset._C._freeze_module(module._c, preserveParameters=True)


class Held(nn.Module):
    """Parameters that are also in a list, a tuple and a dict, as recurrent layers hold theirs."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(cresset.tensor([2.0, 3.0]))
        self.flat: list[cresset.Tensor] = [self.weight, nn.Parameter(cresset.tensor([1.0, 5.0]))]
        self.pair: tuple[cresset.Tensor, int] = (self.weight, 2)
        self.table: dict[str, cresset.Tensor] = {"w": self.weight}

    def forward(self, x):
        return x * self.flat[0] + self.flat[1] + self.pair[0] * self.pair[1] + self.table["w"]


@pytest.mark.parametrize("make", [Held, lambda: nn.LSTM(2, 3, 2), lambda: nn.GRU(2, 3, bidirectional=True)], ids=["own", "lstm", "gru"])
def test_parameters_in_containers_fold(make):
    module = cresset.jit.script(make().eval())
    frozen = cresset.jit.freeze(module)
    assert "prim::GetAttr" not in str(frozen.graph)
    x = cresset.randn(3, 2)
    answers, wanted = frozen(x), module(x)
    assert cresset.allclose(answers if isinstance(answers, cresset.Tensor) else answers[0], wanted if isinstance(wanted, cresset.Tensor) else wanted[0])


def test_lists_of_parameters_as_inputs():
    """Unfrozen, each parameter is one input, however it is held."""
    module = cresset.jit.script(nn.LSTM(2, 3).eval())
    graph, parameters = lowering.lower_graph(module)
    assert len(parameters) == 4 and all(p.requires_grad for p in parameters)
    x = cresset.randn(3, 1, 2)
    inputs = [x, None][: len(list(graph.inputs())) - 4]
    assert cresset.allclose(cresset._C._jit_run_graph(graph, [*inputs, *parameters])[0][0], module(x)[0])


def test_constants_are_preserved_by_name():
    class Scaled(nn.Module):
        __constants__ = ["k"]

        def __init__(self):
            super().__init__()
            self.k = 3

        def forward(self, x):
            return x * self.k

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Scaled()

        def forward(self, x):
            return self.inner(x)

    jit = cresset.jit
    assert jit.freeze(jit.script(Scaled().eval()), preserved_attrs=["k"]).k == 3
    frozen = jit.freeze(jit.script(Outer().eval()), preserved_attrs=["inner.k"])
    assert frozen.inner.k == 3 and frozen(cresset.ones(1)).tolist() == [3]
    assert not hasattr(jit.freeze(jit.script(Scaled().eval())), "k")
