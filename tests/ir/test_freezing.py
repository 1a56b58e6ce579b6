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
    with pytest.raises(RuntimeError, match="freeze: the method 'forward' returns self; it cannot be frozen"):
        lowering.freeze(cresset.jit.script(ReturnsSelf().eval()))
