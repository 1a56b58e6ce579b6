"""What PyTorch's own tests of scripts ask: types as they are written, marks of errors, annotations that are aliases, indices that are lists."""

import collections
import math
import re
import typing
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import pytest

import cresset
from cresset import _C, jit, nn
from cresset.nn.common_types import _size_2_t
from cresset.nn.utils import parametrize

# ---- futures have square brackets, and round ones inside of dicts and unions; both are read


def takes_futures(a: Dict[int, jit.Future[int]], b: Tuple[int, jit.Future[int]], c: List[jit.Future[int]], d: Optional[Dict[int, List[jit.Future[int]]]], e: Union[int, jit.Future[int]]):
    return a


def test_types_with_futures():
    graph = jit.script(takes_futures).graph
    wanted = ["Dict(int, Future(int))", "(int, Future[int])", "Future[int][]", "Dict(int, Future(int)[])?", "Union(Future(int), int)"]
    assert re.findall(r"%\w+ : (.*?)(?:,\n|\):\n)", str(graph)) == wanted
    assert str(_C.parse_ir(str(graph)).canonicalize()) == str(graph.copy().canonicalize())


def optional_union(flag: int) -> Union[str, int, None]:
    y: Union[int, str, None] = "foo"
    if flag == 0:
        x: Optional[Union[int, str]] = y
    elif flag == 1:
        x: Optional[Union[int, str]] = 1
    else:
        x: Optional[Union[int, str]] = None
    return x


def test_optional_unions_are_flat():
    compiled = jit.script(optional_union)
    assert "Optional[Union" not in compiled.code and [compiled(i) for i in range(3)] == ["foo", 1, None]


# ---- names that are lists for which one number may stand


def sum_of(x: _size_2_t) -> int:
    return x[0] + x[1]


def maybe_sum_of(x: Optional[_size_2_t] = None) -> int:
    return 0 if x is None else x[0] * x[1]


def own_union(x: Union[int, Tuple[int, int]]) -> int:
    return x if isinstance(x, int) else x[0]


def test_sizes():
    assert jit.script(sum_of)(4) == 8 and jit.script(sum_of)([1, 2]) == 3
    assert jit.script(maybe_sum_of)(4) == 16 and jit.script(maybe_sum_of)() == 0
    assert jit.script(own_union)(4) == 4 and jit.script(own_union)((7, 8)) == 7  # the same object, but not the name


# ---- lists as indices: their numbers are taken for integers; outside of scripts flags are a mask


def by_floats(x):
    return x[[0.1, 1.2, 2.3]]


def by_flags(x):
    at = [True, False, True]
    return x[at]


def write_by_floats(x):
    x[[0.5, 2.0]] = 7
    return x


@pytest.mark.parametrize("function, rows", [(by_floats, [0, 1, 2]), (write_by_floats, None), (by_flags, [1, 0, 1])], ids=lambda v: getattr(v, "__name__", ""))
def test_lists_as_indices(function, rows):
    x = cresset.arange(6.0).reshape(3, 2)
    got = jit.script(function)(x.clone())
    assert cresset.equal(got, function(x.clone()) if function is not by_flags else x[cresset.tensor(rows)])
    if rows is not None and function is not by_flags:
        assert cresset.equal(got, x[cresset.tensor(rows)])
    assert cresset.equal(by_flags(x), x[cresset.tensor([0, 2])])


# ---- where errors point, and what they say


def unhashable(t: Tuple[int, List[int]]):
    return hash(t)


def largest(x: List[int]):
    return max(x)


@pytest.mark.parametrize("function, argument, words, marked", [(unhashable, (1, [1]), "unhashable type: 'List[int]'", "hash"), (largest, [], "", "max")],
                         ids=["hash", "max"])
def test_calls_of_built_in_functions_are_marked_where_they_are_named(function, argument, words, marked):
    with pytest.raises(Exception) as error:
        jit.script(function)(argument)
    text = str(error.value)
    assert words in text
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if f"return {marked}(" in line)
    assert lines[at + 1].strip() == "~" * len(marked) + " <--- HERE" and lines[at + 1].index("~") == lines[at].index(f"{marked}(")


class Bad:
    def method(self):
        import pdb  # noqa: F401


def makes_bad(x) -> Bad:
    return Bad()


class Names(NamedTuple):
    first: cresset.Tensor
    second: "NobodyKnows"  # noqa: F821


def takes_names(x: Names) -> cresset.Tensor:
    return x.first


def list_of_futures(x):
    return jit.annotate(List[jit.Future], [])


class NoInit(nn.Module):
    def __init__(self):
        self.x = 2

    def forward(self):
        pass


@pytest.mark.parametrize("compiled, error, words", [
    (makes_bad, RuntimeError, ["import statements", "is being compiled since it was called from 'makes_bad'", "-> Bad"]),
    (takes_names, ValueError, ["NobodyKnows", "in NamedTuple Names", "Issue occurred at   File", "def takes_names"]),
    (list_of_futures, RuntimeError, ["Attempted to use Future without a contained type"]),
    (NoInit, RuntimeError, ["NoInit' has not been initialized, did you forget to call 'super()'?"]),
], ids=["class", "named tuple", "future", "module"])  # fmt: skip
def test_words(compiled, error, words):
    with pytest.raises(error) as raised:
        jit.script(compiled() if isinstance(compiled, type) else compiled)
    at = -1
    for word in words:
        at = str(raised.value).index(word, at + 1)


@jit.interface
class Steps(nn.Module):
    def one(self, x: cresset.Tensor) -> cresset.Tensor:
        pass


class Step(nn.Module):
    def one(self, x: cresset.Tensor) -> cresset.Tensor:
        return x

    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        return self.one(x)


class BehindInterface(nn.Module):
    step: Steps

    def __init__(self):
        super().__init__()
        self.step = Step()

    def forward(self, x):
        for m in self.modules():
            x = m(x)
        return x


def test_modules_behind_interfaces_are_not_gone_over():
    with pytest.raises(RuntimeError, match="Could not compile modules\\(\\) because module is an interface type"):
        jit.script(BehindInterface())


class Numbers:
    i: int

    def __init__(self, i: int):
        self.i = i


def takes_numbers(x: Numbers) -> int:
    return x.i


def test_arguments_that_are_no_objects_of_the_class():
    with pytest.raises(RuntimeError, match="Cast error details: Tried to cast object to type .*Numbers but object was missing attribute i"):
        jit.script(takes_numbers)(cresset.ones(1))
    assert jit.script(takes_numbers)(Numbers(3)) == 3


# ---- interfaces below interfaces


@jit.interface
class OneTwo:
    def one(self, x: cresset.Tensor) -> cresset.Tensor:
        pass


@jit.interface
class OneTwoThree:
    def one(self, x: cresset.Tensor) -> cresset.Tensor:
        pass

    def three(self, x: cresset.Tensor) -> cresset.Tensor:
        pass


@jit.interface
class OneOfNumbers:
    def one(self, x: int) -> int:
        pass


def as_one(x: OneTwo) -> OneTwo:
    return x


def fewer(x: OneTwoThree) -> OneTwo:
    return as_one(x)


def takes_three(x: OneTwoThree) -> OneTwoThree:
    return x


def more(x: OneTwo) -> OneTwoThree:
    return takes_three(x)


def other(x: OneOfNumbers) -> OneTwo:
    return as_one(x)


def test_interfaces_below_interfaces():
    assert jit.script(fewer).graph.findNode("prim::CallFunction") is not None
    with pytest.raises(RuntimeError, match="Interface '.*OneTwo' does not have method 'three'"):
        jit.script(more)
    with pytest.raises(RuntimeError, match="Method on interface '.*OneOfNumbers' is not compatible with interface '.*OneTwo'"):
        jit.script(other)


# ---- modules


def test_sizes_of_linear_layers_are_constants_of_their_classes():
    a, b, c = (jit.script(nn.Linear(n, n)) for n in (5, 5, 10))
    assert a._c._type() == b._c._type() != c._c._type()


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT


def test_parametrizations_are_not_traced_while_they_are_kept():
    model = nn.Linear(5, 5)
    parametrize.register_parametrization(model, "weight", Symmetric())
    x = cresset.randn(3, 5)
    traced = jit.trace_module(model, {"forward": x})
    with parametrize.cached():
        assert cresset.equal(traced(x), model(x))
        with pytest.raises(RuntimeError, match="Cannot trace a model while caching"):
            jit.trace_module(model, {"forward": x})


def test_namespaces_of_operators_have_no_origin():
    for name in ("__origin__", "__self__"):
        with pytest.raises(AttributeError, match=f"Invalid attribute '{name}' for '_OpNamespace' 'aten'"):
            getattr(cresset.ops.aten, name)
    assert typing.get_origin(cresset.ops.aten) is None


# ---- passes under PyTorch's names


def lengths(x: List[int], y: List[int]):
    if len(x) != 4 or len(y) != 5:
        raise Exception("")  # noqa: TRY002
    return len(x) + len(y)


def test_lengths_that_conditions_tell():
    for refine, found in ((True, True), (False, False)):
        graph = jit.script(lengths).graph.copy()
        _C._jit_pass_peephole_list_idioms(graph, refine_list_len=refine)
        _C._jit_pass_constant_propagation(graph)
        assert ("value=9" in str(graph)) == found
    _C._jit_pass_peephole(graph, disable_shape_peepholes=True)
    _C._jit_pass_peephole(graph, True)


class FunctionalLinear(nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x):
        y = cresset.matmul(x, self.weight.t())
        if self.bias is not None:
            y.add_(self.bias)
        return y


@pytest.mark.parametrize("bias", [None, cresset.rand(5)], ids=["none", "bias"])
def test_linear_layers_of_a_trace(bias):
    x = cresset.rand(3)
    traced = jit.trace(FunctionalLinear(cresset.rand(5, 3), bias), [x])
    wanted, place = traced(x), traced.graph.findNode("aten::matmul").sourceRange()
    _C._jit_pass_fuse_linear(traced.graph)
    counts = collections.Counter(n.kind() for n in traced.graph.nodes())
    assert counts["aten::linear"] == 1 and not counts["aten::matmul"] and not counts["aten::add_"]
    assert traced.graph.findNode("aten::linear").sourceRange() == place
    assert cresset.allclose(traced(x), wanted)


def test_random_numbers_that_are_written_in_place():
    graph = jit.script(random_in_place).graph
    _C._jit_pass_remove_mutation(graph)
    assert "normal_" not in str(graph)
    cresset.manual_seed(3)
    wanted = random_in_place()
    cresset.manual_seed(3)
    assert cresset.equal(_C._jit_interpret_graph(graph, []), wanted)


def random_in_place():
    return cresset.rand(2, 1, 3, 4, dtype=cresset.float).normal_()


def test_elements_of_a_list_that_is_returned():
    @jit.script
    def f(x):
        y = cresset.rand([2, 2])
        return [y]

    graph = f.graph
    aliases = graph.alias_db()
    made = graph.findNode("aten::rand").output()
    assert aliases.may_contain_alias(made, next(graph.outputs())) and not aliases.may_contain_alias(next(graph.inputs()), made)
    assert aliases.escapes_scope([made])
    text = aliases.to_graphviz_str()
    assert text.startswith("digraph alias_db {") and '"WILDCARD for Tensor"' in text


# ---- texts that the parser and the compiler refuse, and what they take

REFUSED = {
    "*b, = a\n    return b": "A Starred expression may only appear on the lhs within the presence of another non-starred expression",
    "*b, *c = a\n    return b": "Only one starred expression is allowed on the lhs",
    "b, c = a\n    return b": "too many values to unpack: need 2 but found 3",
    "b, c, d, e = a\n    return b": "need 4 values to unpack but found only 3",
    "for b, c in zip([1], [2], [3]):\n        pass\n    return x": "too many values to unpack: need 2 but found 3",
    "for b, c, d in zip([1], [2]):\n        pass\n    return x": "need 3 values to unpack but found only 2",
    "return tuple(1, 2)": "tuple expected exactly 1 arguments but found 2",
    "return tuple([1, 2])": "cannot statically infer the expected size of a list in this context",
    "b: Tuple[int, int][int] = a\n    return b": "Subscripted type must be a type identifier",
    "return 'a' if x.dim() > 1 else 2": "if-expression's true branch has type str but false branch has type int",
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.replace("\n   ", ""))
def test_refused(body):
    with pytest.raises(RuntimeError) as error:
        jit.CompilationUnit(f"def f(x):\n    a = (x, x, x)\n    {body}\n")
    assert REFUSED[body] in str(error.value)


def prefix(a):
    #type: (Int) -> Int  # noqa: E265
    return a + 2


def far_prefix(a):
    #     type: (Int) -> Int
    return a + 2


@jit.unused
def unused_with_comment(x):
    # type: (List[int]) -> int
    return sum(x)


def calls_unused(x):
    # type: (List[int]) -> int
    return unused_with_comment(x)


def test_comments_of_types():
    for function in (prefix, far_prefix):
        with pytest.raises(RuntimeError, match="annotation prefix in line 1 is probably invalid.\nIt must be '# type:'"):
            jit.script(function)
    assert str(next(jit.script(calls_unused).graph.outputs()).type()) == "int"


def any_of(x: int) -> typing.Any:
    return "a" if x > 1 else {"b": x}


def test_conditional_expressions_where_anything_is_wanted():
    compiled = jit.script(any_of)
    assert compiled(2) == "a" and compiled(1) == {"b": 1}


class InPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(cresset.rand(3))

    def forward(self, x):
        return x * self.weight


outside, scripted = InPython(), jit.script(InPython())


def calls_a_module(x):
    return outside(x) + 1


def calls_a_script_module(x):
    return scripted(x) + 1


def test_modules_of_the_surroundings_are_called_in_python(tmp_path):
    compiled = jit.script(calls_a_module)
    assert "^<python_value>" in str(compiled.graph)
    x = cresset.rand(3)
    assert cresset.equal(compiled(x), calls_a_module(x))
    compiled(x).sum().backward()
    assert cresset.equal(outside.weight.grad, x)
    with pytest.raises(RuntimeError, match="Could not export Python function call '<python_value>'"):
        compiled.save(tmp_path / "f.pt")
    with pytest.raises(RuntimeError, match="Cannot call a ScriptModule that is not a submodule of the caller"):
        jit.script(calls_a_script_module)


@pytest.mark.parametrize("name, arguments, kinds", [
    ("constant_", (2.5,), ", float"), ("ones_", (), ""), ("zeros_", (), ""), ("uniform_", (), ""), ("normal_", (), ""), ("xavier_normal_", (), ""),
    ("xavier_uniform_", (), ""),
])  # fmt: skip
def test_initial_values_in_scripts(name, arguments, kinds):
    names = ", ".join("ab"[: 1 + len(arguments)])
    unit = jit.CompilationUnit(f"def test({names}):\n    # type: (Tensor{kinds})\n    return cresset.nn.init.{name}({names})\n")
    results = []
    for function in (unit.test, getattr(nn.init, name)):
        cresset.manual_seed(5)
        results.append(function(cresset.ones(2, 3), *arguments))
    assert cresset.equal(*results)


def with_records(x, y):
    with cresset.autograd.profiler.record_function("outer"):
        with cresset.autograd.profiler.record_function("inner", "some"):
            return x + y


def test_records_of_the_profiler_in_scripts():
    compiled = jit.script(with_records)
    with cresset.autograd.profiler.profile() as profile:
        assert cresset.equal(compiled(cresset.ones(2), cresset.ones(2)), cresset.full((2,), 2.0))
    assert [sum(e.name == name for e in profile.function_events) for name in ("outer", "inner")] == [1, 1]


@pytest.mark.parametrize("name, dtype, value", [("Half", cresset.float16, 123.5), ("BFloat16", cresset.bfloat16, 123.5), ("Short", cresset.int16, 1234)])
def test_constants_of_few_bits(name, dtype, value):
    text = f"graph():\n  %1 : {name}(requires_grad=0, device=cpu) = prim::Constant[value={{{value}}}]()\n  return (%1)\n"
    found = next(_C.parse_ir(text, parse_tensor_constants=True).nodes()).t("value")
    assert found.dtype == dtype and found.item() == value


def dead_writes():
    a = cresset.rand(2, 3)
    a += cresset.rand(2, 3)
    b = cresset.rand(2, 3)
    b += cresset.rand(2, 3)
    numbers = [1]
    numbers.append(2)
    return a


def writes_that_count(x, flag: bool):
    a = cresset.zeros(2)
    b = a.view(2)
    if flag:
        b += 1
    x.add_(1)
    return a


def test_writes_that_nobody_sees_go():
    text = str(jit.script(dead_writes).graph)
    assert text.count("aten::rand") == 2 and text.count("aten::add_") == 1 and "aten::append" not in text
    compiled, x = jit.script(writes_that_count), cresset.zeros(1)
    assert compiled(x, True).tolist() == [1.0, 1.0] and compiled(x, False).tolist() == [0.0, 0.0] and x.item() == 2


# ---- what Python values become where scripts want another kind


def flag(x: bool):
    return x


def flags(x: List[bool]):
    return x


def integers(x: List[int]):
    return x


def number(x: float):
    return x


def pair(x: Tuple[bool, int]):
    return x


def table(x: Dict[str, bool]):
    return x


def text(x: str):
    return x


@pytest.mark.parametrize("function, value, wanted", [
    (flag, 2, True), (flag, 0.0, False), (flag, None, False), (flag, cresset.tensor(1), True), (flags, [0, 1, True], [False, True, True]), (flags, (0, 2), [False, True]),
    (integers, [True, 2], [1, 2]), (number, True, 1.0), (pair, [0, True], (False, 1)), (table, {"a": 1}, {"a": True}), (text, b"a", "a"),
], ids=lambda v: getattr(v, "__name__", repr(v)))  # fmt: skip
def test_values_are_converted(function, value, wanted):
    got = jit.script(function)(value)
    assert got == wanted and repr(got) == repr(wanted)


@pytest.mark.parametrize("function, value", [(flag, "a"), (flags, ["a"]), (integers, [0.5]), (pair, (True,)), (number, "1"), (text, 1), (table, [1])],
                         ids=lambda v: getattr(v, "__name__", repr(v)))
def test_values_that_are_not(function, value):
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        jit.script(function)(value)


def one_tuple(x, y: Tuple[int, int]):
    return y


def test_one_result_that_is_a_tuple_has_its_own_parentheses():
    schema = jit.script(one_tuple).schema
    assert str(schema) == "one_tuple(Tensor x, (int, int) y) -> ((int, int))"
    parsed = _C.parse_schema(str(schema))
    assert len(parsed.returns) == 1 and str(parsed) == str(schema)


def no_pairs():
    return dict([])


def test_dict_of_no_pairs():
    assert jit.script(no_pairs)() == {}


@jit.ignore
def ignored(x, y):
    return x


@jit.ignore
def gives_a_tuple() -> cresset.Tensor:
    return ((3, 4),)


def too_many(x):
    return ignored(x, x, x)


def too_few(x):
    return ignored(x)


def calls_for_a_tuple():
    return gives_a_tuple()


def hypotenuse(a: float):
    return math.hypot(a, 2.0)


def falls_through(x: int) -> Optional[int]:
    if x > 0:
        return 1


def too_big():
    return 0xFFFFFFFFFFFFFFFF


@pytest.mark.parametrize("function, words", [
    (too_many, "Expected at most 2 arguments but found 3 positional arguments."), (too_few, "Argument y not provided."),
    (hypotenuse, "Python builtin <built-in function hypot> is currently not supported in Torchscript"),
    (falls_through, "Function was not annotated as having type None, but does not return along all paths"),
    (too_big, "Integral constant out of range (must fit in a signed 64 bit integer)"),
], ids=lambda v: getattr(v, "__name__", ""))  # fmt: skip
def test_more_words(function, words):
    with pytest.raises(RuntimeError) as error:
        jit.script(function)
    assert words in str(error.value)


@pytest.mark.parametrize("text, words", [
    ('def f(a):\n    print("\n    a")\n', "expected a valid token"),
    ("def f(x : Tuple[(int,)]):\n    return x\n", "Tuple literal in Tuple type annotation must not have any elements"),
], ids=["string", "tuple"])  # fmt: skip
def test_words_of_texts(text, words):
    with pytest.raises(RuntimeError, match=words):
        jit.CompilationUnit(text)


def test_results_of_python_of_another_kind():
    with pytest.raises(Exception, match="expected value of type Tensor for return value but instead got value of type tuple"):
        jit.script(calls_for_a_tuple)()


def test_rewrites_say_where_new_nodes_come_from():
    def f(x, y, z, w):
        x = x + y
        x = x * z
        return w - x

    graph = jit.script(f).graph
    place = graph.findNode("aten::add").sourceRange()
    before = "graph(%x, %y, %z, %const):\n  %t = aten::add(%x, %y, %const)\n  %o = aten::mul(%t, %z)\n  return (%o)"
    after = "graph(%x, %y, %z, %const):\n  %o = my::add_mul(%x, %y, %z, %const)\n  return (%o)"
    _C._jit_pass_custom_pattern_based_rewrite_graph(before, after, graph, value_name_pairs=[("o", "t")])
    assert graph.findNode("my::add_mul").sourceRange() == place


# ---- with-statements are left when an error ends them


class Counts:
    def __init__(self, start: int):
        self.count = cresset.tensor([start], dtype=cresset.double)

    def __enter__(self):
        self.count.add_(0.5)
        return self.count

    def __exit__(self, type: typing.Any, value: typing.Any, tb: typing.Any):
        self.count.sub_(0.5)


class ExitWithTypes:
    def __init__(self):
        self.count = 1

    def __enter__(self):
        self.count += 1

    def __exit__(self, type: typing.Any, value: int, tb: int):
        pass


class WithoutEnter:
    def __init__(self):
        self.count = 1


def test_with_statements_say_what_the_object_lacks():
    def with_types(c: ExitWithTypes):
        with c as _:
            pass

    def without(c: WithoutEnter):
        with c as _:
            pass

    def with_text():
        with "text" as _:
            pass

    for function, words in (
        (with_types, "argument 2 of __exit__ must have Any type; TorchScript does not currently support passing exception type, value, or traceback"),
        (without, "Object returned by with item expression does not define __enter__ and __exit__ methods"),
        (with_text, "With item expression must return an object, not a value of type 'str'"),
    ):
        with pytest.raises(RuntimeError, match=words):
            jit.script(function)


@jit.script
def raises() -> cresset.Tensor:
    raise Exception("raised here")  # noqa: TRY002


@jit.script
def with_that_raises(c: Counts) -> cresset.Tensor:
    a = cresset.tensor([1])
    with c as _:
        a += raises()
    return a


@jit.script
def nested(x, c: Counts, fails: bool):
    with c as _:
        with c as _:
            if fails:
                x += raises()
    return x


@jit.script
def through_calls(x, c: Counts):
    with c as _:
        x += with_that_raises(c)
    return x


@jit.script
def no_grad_that_raises(x):
    with cresset.no_grad():
        x = x + raises()
    return x


def test_with_statements_are_left_by_errors():
    c = Counts(1)
    for call in (lambda: with_that_raises(c), lambda: nested(cresset.ones(1), c, True), lambda: through_calls(cresset.ones(1), c)):
        with pytest.raises(Exception, match="raised here"):
            call()
        assert c.count.item() == 1
    nested(cresset.ones(1), c, False)
    assert c.count.item() == 1
    with pytest.raises(Exception, match="raised here"):
        no_grad_that_raises(cresset.ones(1))
    assert cresset.is_grad_enabled()


def test_sizes_in_texts():
    unit = jit.CompilationUnit("def f(x: BroadcastingList3[float], y: Optional[BroadcastingList2[int]], z):\n    # type: (...) -> List[float]\n    return x\n")
    assert str(unit.f.schema) == "f(float[3] x, int[2]? y, Tensor z) -> float[]"
    assert unit.f(1.5, None, cresset.ones(1)) == [1.5, 1.5, 1.5]


def test_loops_that_may_not_end_are_kept():
    unit = cresset.jit.CompilationUnit(
        "def counted(n: int):\n    l = [1]\n    for i in range(n):\n        l.append(i)\n"
        "def conditional(n: int):\n    i = 0\n    while i < n:\n        i += 1\n"
        "def endless():\n    while True:\n        x = 1\n"
    )
    assert ["prim::Loop" in str(getattr(unit, name).graph) for name in ("counted", "conditional", "endless")] == [False, True, True]


def strings_changed(s: str) -> List[str]:
    return [s.strip(), s.lstrip(), s.rstrip(), s.strip("an "), s.upper(), s.lower(), s.capitalize(), s.title(), s.swapcase(), s.expandtabs(), s.center(9), s.zfill(8)]


def strings_cut(s: str) -> List[List[str]]:
    return [s.split(), s.splitlines(), s.split(" "), s.rsplit(" ", 1)]


def strings_asked(s: str) -> List[bool]:
    return [s.isupper(), s.islower(), s.isdigit(), s.isspace(), s.isalnum(), s.isalpha(), s.isdecimal(), s.isnumeric(), s.isidentifier(), s.istitle()]


STRINGS = ["", "12a", "!B", "aB", "AB ", "  \t", "  \n", "\na", "\\n\\t", "n begin", " begin", "titular Strings\v", "\t\fx\n", "spaces at the end "]


@pytest.mark.parametrize("function", [strings_changed, strings_cut, strings_asked])
def test_strings_are_pythons(function):
    scripted = jit.script(function)
    for s in STRINGS:
        assert scripted(s) == function(s), repr(s)


class GivesUnion(nn.Module):
    def forward(self, flag: int):
        return optional_union(flag)


def test_code_of_unions_reads_back(tmp_path):
    script = jit.script(GivesUnion())
    script.save(str(tmp_path / "m.pt"))
    loaded = jit.load(str(tmp_path / "m.pt"))
    assert [loaded(i) for i in range(3)] == ["foo", 1, None]


def test_unwrapping_none():
    with pytest.raises(RuntimeError, match="could not be inferred from actual type None"):
        jit.CompilationUnit("def f() -> int:\n    return torch.jit._unwrap_optional(None)\n")
