"""Modules as scripts: results, state and attributes equal those of the Python module."""

import copy
import importlib.util
import pickle
from pathlib import Path
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple

import cresset
import pytest
from cresset import Tensor, nn

jit = cresset.jit


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]


def run(module, inputs):
    cresset.manual_seed(7)
    return flat(module(*inputs))


class Scaled(nn.Module):
    limit: Final[int] = 4

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.names: List[str] = ["a", "b"]
        self.sizes = {"x": 1}
        self.scale = 2.0
        self.pair = (1, "b")
        self.register_buffer("count", cresset.zeros(1))
        self.note: Optional[str] = None

    def helper(self, x: Tensor, times: int = 2) -> Tensor:
        return x * times

    @jit.export
    def exported(self, n: int) -> int:
        return n + self.limit + self.sizes["x"]

    @property
    def doubled(self) -> float:
        return self.scale * 2

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.helper(self.linear(x)) * self.scale + self.doubled + len(self.names)


def test_attributes_methods_and_state():
    module = Scaled()
    script = jit.script(copy.deepcopy(module))
    x = cresset.ones(1, 2)
    cresset.testing.assert_close(script(x), module(x))
    assert script.exported(1) == module.exported(1) == 6
    assert script.names == ["a", "b"] and script.sizes == {"x": 1} and script.pair == (1, "b") and script.note is None
    assert script.doubled == 4.0 and script.count.item() == 1
    script.scale = 3.0
    module.scale = 3.0
    cresset.testing.assert_close(script(x), module(x))
    assert [name for name, _ in script.named_parameters()] == [name for name, _ in module.named_parameters()]
    assert script.original_name == "Scaled" and "original_name=Linear" in repr(script)
    script.linear.load_state_dict({"weight": cresset.zeros(2, 2), "bias": cresset.ones(2)})
    assert script.linear.bias.tolist() == [1, 1]
    assert isinstance(script, nn.Module) and isinstance(script.linear, jit.RecursiveScriptModule)


def test_parameters_are_shared_and_trained():
    module = nn.Linear(2, 1)
    script = jit.script(module)
    assert script.weight is module.weight
    script(cresset.ones(3, 2)).sum().backward()
    assert module.weight.grad.tolist() == [[3, 3]]
    cresset.optim.SGD(script.parameters(), lr=1.0).step()
    assert script.weight is module.weight
    script.double()
    assert script.weight.dtype == cresset.float64


def test_training_mode():
    script = jit.script(nn.Sequential(nn.Dropout(0.9), nn.Linear(2, 2)))
    assert script.training and script.eval() is script
    assert not script.training and not script[0].training and not script._c.getattr("training")
    x = cresset.ones(1, 2)
    assert (script(x) == script(x)).all()


def test_copies():
    script = jit.script(Scaled())
    deep, shallow = copy.deepcopy(script), copy.copy(script)
    deep.scale = 7.0
    assert script.scale == 2.0 and shallow.linear.weight is script.linear.weight
    assert deep.linear.weight is not script.linear.weight and (deep.linear.weight == script.linear.weight).all()
    assert deep(cresset.ones(1, 2)).shape == (1, 2)
    with pytest.raises(pickle.PickleError, match="use my_script_module.save"):
        pickle.dumps(script)


def test_one_class_for_equal_types_and_another_for_others():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return self.c(self.a(x))

    script = jit.script(Net())
    names = [getattr(script, name)._c.qualified_name for name in "abc"]
    assert names[0] == names[1] != names[2]
    assert "__torch__.torch.nn.modules.linear." in names[0] and names[0].endswith("Linear")
    assert jit.script(Net())._c.qualified_name == script._c.qualified_name


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()])
        self.named = nn.ModuleDict({"one": nn.Linear(2, 2), "two": nn.ReLU()})
        self.weights = nn.ParameterList([nn.Parameter(cresset.full((2,), float(i))) for i in range(3)])

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for name, module in self.named.items():
            x = module(x)
            if name == "one":
                x = x * 2
        for weight in self.weights:
            x = x + weight
        if "two" in self.named:
            x = self.named["two"](x)
        for layer in self.layers[:1]:
            x = layer(x)
        return self.layers[-1](x), len(self.layers)


def test_containers_are_unrolled():
    module = Containers()
    script = jit.script(module)
    x = cresset.ones(1, 2)
    expected, actual = module(x), script(x)
    cresset.testing.assert_close(actual[0], expected[0])
    assert actual[1] == 2 and len(script.layers) == 2 and [type(m).__name__ for m in script.layers] == ["RecursiveScriptModule"] * 2
    assert list(script.named.keys()) == ["one", "two"] and "one" in script.named and script.named["two"].original_name == "ReLU"
    assert not script.graph.findAllNodes("prim::Loop")


@jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Plus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Times(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 10


class Strange(nn.Module):
    def forward(self, y: Tensor) -> int:
        return 1


class Stepping(nn.Module):
    step: Step

    def __init__(self, step):
        super().__init__()
        self.step = step
        self.steps = nn.ModuleList([Plus(), Times()])

    def forward(self, x: Tensor, which: int) -> Tensor:
        chosen: Step = self.steps[which]
        return chosen.forward(self.step.forward(x))


def test_interfaces():
    script = jit.script(Stepping(Plus()))
    x = cresset.ones(1)
    assert script(x, 0).item() == 3 and script(x, 1).item() == 20
    script.step = jit.script(Times())
    assert script(x, 0).item() == 11
    with pytest.raises(RuntimeError, match="is not of its annotated type"):
        jit.script(Stepping(Strange()))


class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    @jit.ignore
    def in_python(self, x: Tensor, n: int) -> Tensor:
        return x + n

    @jit.unused
    def never(self, x: Tensor) -> Tensor:
        return [y for y in {x}][0]

    @jit.ignore
    def not_called(self):
        return "python"

    def forward(self, x: Tensor, bad: bool = False) -> Tensor:
        if bad:
            return self.never(x)
        return self.in_python(x, n=3)


def test_ignore_and_unused():
    script = jit.script(Partly())
    assert script(cresset.ones(1)).item() == 4 and script.not_called() == "python"
    with pytest.raises(RuntimeError, match="annotated to be ignored and cannot be run"):
        script(cresset.ones(1), True)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Plus()
        self.inner.register_forward_pre_hook(before)
        self.inner.register_forward_hook(after)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def before(self, inputs: Tuple[Tensor]) -> Tuple[Tensor]:
    return (inputs[0] * 3,)


def after(self, inputs: Tuple[Tensor], result: Tensor) -> Tensor:
    return result + inputs[0]


def test_hooks():
    module = Hooked()
    script = jit.script(module)
    x = cresset.ones(1)
    assert script(x).item() == module(x).item() == 7
    assert script.inner(x).item() == 7
    partial = nn.Linear(1, 1)
    partial.register_forward_hook(lambda m, i, o: o)
    with pytest.raises(RuntimeError, match="Expected a single top-level function|aren't supported"):
        jit.script(partial)


class Old(jit.ScriptModule):
    __constants__ = ["n"]

    def __init__(self, n):
        super().__init__()
        self.n = n
        self.weight = nn.Parameter(cresset.ones(2))

    @jit.script_method
    def forward(self, x):
        for _ in range(self.n):
            x = x + self.weight
        return x

    def python_only(self):
        return {1, 2}


def test_the_older_style():
    old = Old(3)
    assert old(cresset.zeros(2)).tolist() == [3, 3] and old.python_only() == {1, 2}
    assert [n for n, _ in old.named_parameters()] == ["weight"] and old.graph.findNode("prim::Loop") is not None
    with pytest.raises(RuntimeError, match="Can't set constant 'n' which has value:3"):
        old.n = 4


class Counter(NamedTuple):
    total: Tensor
    steps: int


class Recurrent(nn.Module):
    """State in and out, containers of tensors, a free function, a submodule called with keywords."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(2, 3)

    def forward(self, xs: List[Tensor], start: Optional[Tensor] = None) -> Tuple[Counter, Dict[str, Tensor]]:
        h = cresset.zeros(1, 3) if start is None else start
        total = cresset.zeros(1)
        for x in xs:
            h = self.cell(x, hx=h)
            total = add_up(total, h)
        return Counter(total, len(xs)), {"h": h}


def add_up(total: Tensor, h: Tensor) -> Tensor:
    return total + h.sum()


def test_structured_inputs_and_results():
    module = Recurrent()
    script = jit.script(module)
    xs = [cresset.ones(1, 2), cresset.zeros(1, 2)]
    for args in ((xs,), (xs, cresset.ones(1, 3))):
        expected, actual = module(*args), script(*args)
        cresset.testing.assert_close(actual[0].total, expected[0].total)
        cresset.testing.assert_close(actual[1], expected[1])
        assert actual[0].steps == 2 and isinstance(actual[0], Counter)


def module_with(forward, **attributes):
    made = type("Bad", (nn.Module,), {"forward": forward})()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def reads_thing(self, x):
    return self.thing


def sets_new(self, x):
    self.fresh = 3
    return x


def calls_missing(self, x):
    return self.missing(x)


def indexes_list(self, x, i: int):
    return self.thing[i](x)


@pytest.mark.parametrize(
    "forward, attributes, message",
    [
        (reads_thing, {"thing": object()}, "has no attribute 'thing' .This attribute exists on the Python module, but we failed to convert Python type: 'object'"),
        (reads_thing, {"thing": []}, "Its type was inferred; try adding a type annotation for the attribute"),
        (reads_thing, {"thing": [1, "a"]}, r"must have consistent element type. Found int and str\. Its type"),
        (reads_thing, {"thing": [nn.ReLU()]}, r"list element: Cannot infer concrete type of torch\.nn\.Module\. .* for the attribute\.\):\n"),
        (reads_thing, {"thing": lambda x: x}, "failed to compile it to a TorchScript function"),
        (sets_new, {}, "Tried to set nonexistent attribute: fresh. Did you forget to initialize it in __init__"),
        (calls_missing, {}, "Module 'Bad' has no attribute 'missing'"),
        (indexes_list, {"thing": nn.ModuleList([nn.ReLU()])}, "only supported with integer literals"),
    ],
)  # fmt: skip
def test_errors(forward, attributes, message):
    with pytest.raises(RuntimeError, match=message):
        jit.script(module_with(forward, **attributes))


def test_other_errors():
    script = jit.script(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match=r"forward\(\) Expected a value of type 'Tensor' for argument 'input' but instead found type 'int'"):
        script(1)
    with pytest.raises(RuntimeError, match="is missing value for argument 'input'"):
        script()
    with pytest.raises(AttributeError, match="'RecursiveScriptModule' object has no attribute 'nothing'"):
        script.nothing
    with pytest.raises(RuntimeError, match="inherits from nn.Module, consider passing an instance instead"):
        jit.script(nn.Linear)

    class NoSuper(nn.Module):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="did you forget to call 'super\\(\\)'"):
        jit.script(NoSuper())


class Shared(nn.Module):
    """The same submodule twice, and a class that contains itself."""

    def __init__(self, depth):
        super().__init__()
        self.inner = Shared(depth - 1) if depth else nn.Identity()
        self.linear = nn.Linear(2, 2)
        self.again = self.linear

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.linear(self.inner(x)))


def test_shared_and_nested_modules():
    module = Shared(3)
    script = jit.script(module)
    x = cresset.ones(1, 2)
    cresset.testing.assert_close(script(x), module(x))
    assert script.linear is script.again and len(list(script.parameters())) == len(list(module.parameters())) == 8


class Functions(nn.Module):
    """Functions, dtypes, devices, None and the training flag as attributes."""

    def __init__(self):
        super().__init__()
        self.activation, self.operator, self.own = nn.functional.gelu, cresset.relu, add_up
        self.dtype, self.device, self.size = cresset.float64, cresset.device("cpu"), cresset.ones(2, 3).shape
        self.nothing = None
        self.tensors = [cresset.ones(1)]

    def forward(self, x: Tensor):
        if self.nothing is not None:
            x = self.nothing(x)
        y = self.own(self.activation(x), self.operator(x)) + self.tensors[0]
        return (y if self.training else -y).to(self.dtype).to(self.device), self.size


def test_functions_and_constants_as_attributes():
    module = Functions()
    script = jit.script(module)
    for mode in (True, False):
        expected, actual = module.train(mode)(cresset.ones(2)), script.train(mode)(cresset.ones(2))
        cresset.testing.assert_close(actual[0], expected[0])
        assert actual[1] == list(expected[1])


def test_freezing():
    script = jit.script(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.ReLU()))
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(script)
    with pytest.raises(RuntimeError, match="expects a ScriptModule as input"):
        jit.freeze(nn.Linear(2, 2).eval())
    frozen = jit.freeze(script.eval())
    x = cresset.ones(1, 2)
    cresset.testing.assert_close(frozen(x), script(x).detach())
    kinds = {n.kind() for n in frozen.graph.nodes()}
    assert kinds == {"prim::Constant", "aten::linear", "aten::relu"} and not list(frozen.parameters()) and len(list(script.parameters())) == 2
    kept = jit.freeze(jit.script(Scaled()).eval(), preserved_attrs=["exported"])
    assert kept.exported(1) == 6
    assert jit.optimize_for_inference(script)(x).shape == (1, 2)


def test_modules_of_the_examples():
    source = Path(__file__).resolve().parents[2] / "examples" / "digits" / "model.py"
    spec = importlib.util.spec_from_file_location("digits_model", source)
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    for activation in (cresset.relu, nn.functional.silu):
        module = model.DigitsNet(activation)
        script = jit.script(copy.deepcopy(module))
        for mode in (True, False):
            module.train(mode), script.train(mode)
            images = cresset.linspace(0, 1, 2 * 64).reshape(2, 1, 8, 8)
            expected, actual = run(module, (images,)), run(script, (images,))
            cresset.testing.assert_close(actual[0], expected[0])


def test_methods_from_source_text():
    module = jit.script(nn.Linear(2, 1))
    module.define("""
        def twice(self, x):
            return 2 * self.forward(x)
    """)
    x = cresset.ones(1, 2)
    assert cresset.equal(module.twice(x), 2 * module(x))
    with pytest.raises(RuntimeError, match="Can't redefine method: twice on class"):
        module.define("def twice(self):\n    return 1\n")


X = cresset.tensor([[1.0, -2.0], [3.0, 0.5]])


class Members(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("first", cresset.ones(2))
        self.register_buffer("second", cresset.zeros(2))
        self.layers = nn.Sequential(nn.ReLU(), nn.BatchNorm1d(2).eval())

    def forward(self, x):
        names: List[str] = []
        for name, child in self.named_children():
            names.append(name)
            x = child(x)
        for name, module in self.named_modules():
            names.append(name)
        for child in self.layers.children():
            x = child(x)
        sums = [buffer.sum() for _, buffer in self.named_buffers()]
        return x, names, sums, len(self.modules())


def test_members_are_known_while_compiling():
    x, names, sums, count = jit.script(Members())(X)
    python = Members()
    expected = [n for n, _ in python.named_children()] + [n for n, _ in python.named_modules()]
    assert names == expected and count == len(list(python.modules()))
    assert x.equal(python.layers(python.layers(X))) and sums == [2.0, 0.0]  # as in PyTorch: not the buffers of modules below

    class Recursive(Members):
        def forward(self, x):
            return [b for _, b in self.named_buffers(recurse=False)]

    with pytest.raises(RuntimeError, match="named_buffers method does not accept any arguments"):
        jit.script(Recursive())


class PlainList(nn.Module):
    """Scripts cannot have a list of modules; they get a module that has another container."""

    def __init__(self):
        super().__init__()
        self.stages = [nn.Linear(2, 2), nn.Linear(2, 2)]
        for i, stage in enumerate(self.stages):
            self.add_module(f"stage{i}", stage)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x

    def __prepare_scriptable__(self):
        made = PlainList()
        del made.stage0, made.stage1
        made.stages = nn.ModuleList(self.stages)
        return made


def test_modules_give_others_to_be_scripted():
    outer = nn.Sequential(PlainList(), nn.ModuleDict({"deep": PlainList()})["deep"])
    before = list(outer)
    scripted = jit.script(outer)
    assert scripted(X).equal(outer(X)) and list(outer) == before and isinstance(outer[0].stages, list)
    outer[0].stages[0].weight.data.zero_()
    assert scripted(X).equal(outer(X))  # the parameters are the same
    assert jit.script(PlainList())(X).shape == X.shape


def test_handles_have_attributes_and_methods_by_name():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 1)
            self.names = ["a"]

        def forward(self, x):
            return self.inner(x)

        @jit.export
        def count(self) -> int:
            return len(self.names)

    handle = jit.script(Outer())._c
    x = cresset.ones(1, 2)
    assert handle.names == ["a"] and handle.count() == 1
    assert type(handle.inner) is type(handle) and handle.inner.hasattr("weight")
    assert cresset.equal(handle.forward(x), handle.inner.forward(x))
    for name in ("absent", "_absent"):
        with pytest.raises(AttributeError, match=name):
            getattr(handle, name)


def test_texts_of_functions_and_methods_stay():
    @jit.script
    def documented(x):
        """What it does."""
        return x

    class Module(nn.Module):
        def forward(self, x):
            """What it does."""
            return x

    class Older(jit.ScriptModule):
        @jit.script_method
        def forward(self, x):
            """What it does."""
            return x

    for made in (documented, jit.script(Module()).forward, Older().forward):
        assert made.__doc__ == "What it does."
    documented.note = 1
    assert documented.note == 1


def test_the_graph_that_ran():
    def twice(x):
        return x * 2

    def outer(x, n: int = 1):
        return twice(x) + n

    function = jit.script(outer)
    graph = function.graph_for(cresset.ones(1), n=2)
    assert "prim::CallFunction" in str(function.graph) and "prim::CallFunction" not in str(graph)
    assert str(jit.last_executed_optimized_graph()) == str(graph)
    module = jit.script(nn.Linear(2, 1))
    assert "aten::linear" in str(module.graph_for(cresset.ones(1, 2)))
    assert "aten::linear" in str(module.forward.graph_for(cresset.ones(1, 2)))
    assert "aten::linear" in str(jit.last_executed_optimized_graph())
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        function.graph_for("x")


class NoSelf(jit.ScriptModule):
    @jit.script_method  # noqa: B902
    def forward():  # noqa: B902
        return cresset.zeros(3, 4)


class IgnoredWithoutSelf(nn.Module):
    @jit.ignore  # noqa: B902
    def number():  # noqa: B902
        # type: () -> int
        return 1

    def forward(self):
        return self.number()


@pytest.mark.parametrize("make, words", [(NoSelf, "methods must have a self argument"), (lambda: jit.script(IgnoredWithoutSelf()), "does not have a self argument")],
                         ids=["compiled", "ignored"])
def test_methods_without_self(make, words):
    with pytest.raises(Exception, match=words):
        make()


class Counted(nn.ModuleList):
    """A container that answers len() and `in` itself."""

    def __len__(self) -> int:
        return 7

    def __contains__(self, i: int) -> bool:
        return i == 3


class HoldsCounted(nn.Module):
    def __init__(self):
        super().__init__()
        self.counted, self.plain = Counted([nn.ReLU()]), nn.ModuleList([nn.ReLU()])

    def forward(self, x):
        return x + len(self.counted), len(self.plain), 3 in self.counted, 1 in self.counted


def test_containers_with_a_length_of_their_own():
    made, n, three, one = jit.script(HoldsCounted())(cresset.zeros(1))
    assert (made.item(), n, three, one) == (7, 1, True, False)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("Union[List[str], List[Tensor]]", "['a']", ["a"]), ("Union[List[int], List[str]]", "['a', 'b']", ["a", "b"]), ("Union[List[int], List[str]]", "[1]", [1]),
        ("Union[Dict[str, int], Dict[str, str]]", "{'a': 'b'}", {"a": "b"}), ("Union[Dict[str, int], Dict[str, str]]", "{'a': 1}", {"a": 1}),
        ("Union[List[str], int]", "['a']", ["a"]), ("Union[Dict[str, float], int]", "{'a': 1.5}", {"a": 1.5}),
    ],
)  # fmt: skip
def test_literals_choose_among_the_types_of_a_union(annotation, text, value):
    assert jit.CompilationUnit(f"def f():\n    x: {annotation} = {text}\n    return x\n").f() == value


class HoldsAModule(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.held = jit.Attribute(jit.script(nn.Linear(2, 2)), Any)

    @jit.script_method
    def hold(self, number: int) -> Any:
        before = self.held
        self.held = number
        return before


def test_an_attribute_has_the_given_type_even_if_it_is_a_module():
    m = HoldsAModule()
    m.hold(3)
    assert m.hold(4) == 3


class Overridden(nn.Module):
    @jit.ignore
    def left(self) -> int:
        return 1

    @jit.unused
    def unused(self) -> int:
        return 1

    def helper(self, x):
        return x + 1

    def forward(self, x):
        return self.helper(x) + self.left()


def test_methods_of_one_object():
    """A method that was bound to the object takes the place of its class's, compiled or ignored as it is marked; other objects keep theirs."""
    import types

    @jit.ignore
    def left(self) -> int:
        return 100

    @jit.unused
    def unused(self) -> int:
        return 7

    def helper(self, x):
        return x + 20

    def forward(self, x):
        return x * 2

    m, plain, whole = Overridden(), Overridden(), Overridden()
    for name, function in (("left", left), ("unused", unused), ("helper", helper)):
        setattr(m, name, types.MethodType(function, m))
    whole.forward = types.MethodType(forward, whole)
    scripted = jit.script(m)
    assert scripted(cresset.zeros(1)).item() == m(cresset.zeros(1)).item() == 120 and (scripted.left(), scripted.unused()) == (100, 7)
    assert jit.script(plain)(cresset.zeros(1)).item() == 2 and jit.script(plain).unused() == 1
    assert jit.script(whole)(cresset.ones(1)).item() == 2 and jit.script(Overridden())(cresset.zeros(1)).item() == 2


def test_methods_that_only_an_interface_asks_for():
    @jit.interface
    class Step(nn.Module):
        def one(self, x: Tensor) -> Tensor:
            pass

    class PlusOne(nn.Module):
        def one(self, x: Tensor) -> Tensor:
            return self.two(x)

        def two(self, x: Tensor) -> Tensor:
            return x + 1

    class Through(nn.Module):
        step: Step

        def __init__(self):
            super().__init__()
            self.step = PlusOne()

        def forward(self, x):
            return self.step.one(x)

    assert jit.script(Through())(cresset.ones(2)).tolist() == [2, 2]


class Projection(nn.Module):
    def __init__(self, projection):
        super().__init__()
        self.projection = projection

    def forward(self, x):
        if self.projection is not None:
            if isinstance(self.projection, nn.Linear):
                x = self.projection(x)
            else:
                x = x @ self.projection
        return x


class Kinds(nn.Module):
    def __init__(self, member):
        super().__init__()
        self.member = member

    def forward(self, x):
        y = self.member
        return isinstance(y, nn.Linear), isinstance(self.member, (nn.Linear, nn.Identity)), not isinstance(self.member, nn.Identity), isinstance(x, nn.Linear)


def test_members_are_asked_for_their_class():
    x = cresset.arange(6.0).view(2, 3)
    for member in (nn.Linear(3, 3), nn.Linear(3, 2, bias=False), nn.Parameter(2 * cresset.eye(3)), None):
        m = Projection(member)
        assert jit.script(m)(x).equal(m(x))
    for member in (nn.Linear(3, 3), nn.Parameter(cresset.eye(3)), None, nn.Identity(), nn.Sequential(nn.Linear(3, 3))):
        m = Kinds(member)
        assert jit.script(m)(x) == m(x)
