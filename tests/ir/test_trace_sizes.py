"""Traces run with sizes, dtypes and devices other than their example's, frozen, optimised and lowered: what a trace saw is a hint."""

import copy
import warnings
from random import Random

import cresset
import pytest
from cresset import jit, lowering, nn
from script_cases import MODULES as EVERY_MODULE
from test_every_module import NO_TRACE, assert_same, flat
from test_trace import FUNCTIONS, MODELS, MODULES, build, rand, same


class Function(nn.Module):
    """A function as a module: only modules can be frozen."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, *inputs):
        return FUNCTIONS[self.name](*inputs)


def trace(module, *inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        return jit.trace(module, inputs, check_trace=False)


# Each keeps what the trace computes, whatever its inputs.
WAYS = {
    "freeze": jit.freeze,
    "optimize_for_inference": jit.optimize_for_inference,
    "optimized frozen": lambda traced: jit.optimize_for_inference(jit.freeze(traced)),
    "lower": lowering.lower,
    "lower frozen": lambda traced: lowering.lower(jit.freeze(traced)),
    "lower unfrozen": lambda traced: lowering.lower(traced, unfreeze=True),
    "lower without trust": lambda traced: lowering.lower(traced, trust_types=False),
}


def other_batches(inputs, batch):
    """The same inputs with another size of the first dimension."""
    return tuple(x.repeat(batch, *[1] * (x.dim() - 1))[:batch] if x.dim() else x for x in inputs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, way):
    for example in (2, 1):
        if name == "slices" and example == 1:
            continue  # a trace of an empty result
        made = WAYS[way](trace(Function(name).eval(), rand(example, 4, 4)))
        for batch in (1, 2, 5):
            x = rand(batch, 4, 4)
            try:
                expected = FUNCTIONS[name](x)
            except (RuntimeError, IndexError):
                continue  # not of this size
            assert same(made(x), expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, way):
    make, shape, other = MODULES[name]
    module = make().eval()
    for example, sizes in ((shape, other), (other, shape)):
        made = WAYS[way](trace(module, rand(*example)))
        x = rand(*sizes)
        assert same(made(x), module(x))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_models(name, way):
    model, inputs, _ = build(name)
    model.eval()
    made = WAYS[way](trace(model, *inputs))
    for batch in (1, 3):
        other = other_batches(inputs, batch)
        assert same(made(*other), model(*other))


def takes_tensors(inputs):
    return all(isinstance(x, cresset.Tensor) and x.dim() for x in inputs)


@pytest.mark.parametrize("name", [n for n, (_, inputs) in EVERY_MODULE.items() if n not in NO_TRACE and takes_tensors(inputs)])
def test_every_module(name):
    module, inputs = copy.deepcopy(EVERY_MODULE[name])
    module.eval()
    traced = trace(module, *inputs)
    made = {way: f(copy.deepcopy(traced)) for way, f in WAYS.items()}
    for batch in (1, 3):
        other = other_batches(inputs, batch)
        results = []
        for f in (module, traced):
            cresset.manual_seed(3)
            try:
                results.append(f(*other))
            except (RuntimeError, ValueError, IndexError) as e:
                results.append(e)
        if isinstance(results[1], Exception) or isinstance(results[0], Exception):
            continue  # neither the module nor its trace promises this size
        for f in made.values():
            cresset.manual_seed(3)
            assert_same(flat(f(*other)), flat(results[1]))


# ---- what is known of a tensor beside its sizes

KINDS = {
    "dtype": (lambda x: x.to(cresset.float32) + x.type_as(x.float()).sum(), cresset.ones(3), cresset.ones(3, dtype=cresset.int64)),
    "is_floating_point": (lambda x: x * 1 + 0, cresset.ones(3), cresset.ones(3, dtype=cresset.bool)),
    "device": (lambda x: x.to("cpu") + 1, cresset.ones(3), cresset.ones(3, dtype=cresset.float64)),
    "rank": (lambda x: cresset.tile(x, (2,)), cresset.ones(3), cresset.ones(2, 3)),
    "expand": (lambda x: x.expand(1, 3) + 1, cresset.ones(1, 3), cresset.ones(3)),
    "type_as": (lambda x: (x > 0).type_as(x), cresset.ones(3), cresset.ones(3, dtype=cresset.float64)),
    "var": (lambda x: cresset.var(x, 1), cresset.ones(2, 3), cresset.rand(2, 3).double()),
    "half": (lambda x: cresset.var(x, 1), cresset.ones(2, 3, dtype=cresset.float16), cresset.rand(2, 3).double()),
    "mask": (lambda x: nn.functional.scaled_dot_product_attention(cresset.ones(2, 3, 3), cresset.ones(2, 3, 3), cresset.eye(3).expand(2, 3, 3), x),
             cresset.ones(3, 3, dtype=cresset.bool), cresset.rand(3, 3)),
    "gradient": (lambda x: x.detach() * 2 + x, cresset.ones(3), cresset.ones(3, requires_grad=True)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_of_tensors(name, way):
    f, example, other = KINDS[name]

    class Module(nn.Module):
        def forward(self, x):
            return f(x)

    made = WAYS[way](trace(Module().eval(), example))
    for x in (example, other):
        expected, found = f(x), made(x)
        assert same(found, expected) and found.dtype == expected.dtype


def test_unbatched_convolutions_stay_unbatched():
    """_convolution has no form without batch: that the example had none still forbids it."""
    conv = nn.Conv1d(2, 3, 2).eval()
    x = rand(2, 5)
    for way, f in WAYS.items():
        if way != "lower frozen":  # whose option assume_batched cannot know better
            assert same(f(trace(conv, x))(x), conv(x)), way


# ---- what the user says

SHAPED = lambda x: x.view(x.size(0), -1) * (x.sum() / x.numel())  # noqa: E731


class Shaped(nn.Module):
    def forward(self, x):
        return SHAPED(x)


def kinds(graph):
    return [n.kind() for n in graph.nodes()]


def test_types_of_results_say_nothing_of_the_example():
    for graph in (jit.freeze(trace(Shaped().eval(), rand(2, 3))).graph, lowering.lower(trace(Shaped().eval(), rand(2, 3))).graph):
        assert "Float(" not in str(graph) and "aten::numel" in kinds(graph) and "aten::size" in kinds(graph)
    assert "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)" in str(trace(Shaped(), rand(2, 3)).graph)


def test_inputs_that_are_all_like_the_example():
    lowered = lowering.lower(trace(Shaped().eval(), rand(2, 3)), trust_examples=True)
    assert "aten::numel" not in kinds(lowered.graph) and "aten::size" not in kinds(lowered.graph)
    x = rand(2, 3)
    assert same(lowered(x), SHAPED(x))


@pytest.mark.parametrize("specified", ["with_sizes", "inferTypeFrom", "text"])
def test_input_specifications_are_facts(specified):
    traced = trace(Shaped().eval(), rand(2, 3))
    x = list(traced.graph.inputs())[1]
    if specified == "with_sizes":
        x.setType(x.type().with_sizes([4, 3]))
    elif specified == "inferTypeFrom":
        x.inferTypeFrom(rand(4, 3))
    else:
        x.setType("Float(4, 3)")
    frozen = jit.freeze(traced)
    assert "aten::numel" not in kinds(frozen.graph) and "Float(4, 3" in str(frozen.graph)
    assert same(frozen(rand(4, 3)), SHAPED(rand(4, 3)))
    assert "aten::numel" in kinds(lowering.lower(traced, trust_types=False).graph)


def test_a_pass_by_pytorchs_name_takes_the_graphs_types():
    traced = jit.trace(lambda x, y: x.type_as(y), (rand(2), rand(3)))
    lowering.run_pass("peephole", traced.graph)
    assert "aten::type_as" in kinds(traced.graph)
    cresset._C._jit_pass_peephole(traced.graph)
    assert "aten::type_as" not in kinds(traced.graph)


def test_sizes_of_what_is_reshaped_in_place_are_not_those_of_its_type():
    graph = cresset._C.parse_ir("""graph(%x : Float(2, 3, strides=[3, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %y : Tensor = aten::t_(%x)
  %s : int = aten::size(%x, %zero)
  return (%s)
""")
    lowering.run_pass("peephole", graph)
    assert cresset._C._jit_run_graph(graph, [rand(2, 3)]) == [3]


# ---- subscripts: each bound may be left out, a number, or made of a size

BOUNDS = {
    "": lambda x, d: None,
    "number": lambda x, d: 1,
    "negative": lambda x, d: -1,
    "size": lambda x, d: x.size(d),
    "size - 1": lambda x, d: x.size(d) - 1,
    "half": lambda x, d: x.shape[d] // 2,
    "- half": lambda x, d: -(x.size(d) // 2),
}
STEPS = {"": lambda x, d: None, "two": lambda x, d: 2, "third": lambda x, d: x.size(d) // 3}
SUBSCRIPTS = {"last": lambda x, d: x.size(d) - 1, "first": lambda x, d: 0, "before": lambda x, d: -2, "new": lambda x, d: None, "all": lambda x, d: slice(None)}


def subscripts(random):
    """(what it is, a function of the tensor that gives the index)."""
    made = []
    for d in range(random.randint(1, 3)):
        if random.random() < 0.3:
            name = random.choice([n for n in SUBSCRIPTS if n != "new"])
            made.append((name, SUBSCRIPTS[name], d))
            continue
        names = random.choice(list(BOUNDS)), random.choice(list(BOUNDS)), random.choice(list(STEPS))
        parts = BOUNDS[names[0]], BOUNDS[names[1]], STEPS[names[2]]
        made.append((":".join(names), lambda x, d, parts=parts: slice(*(p(x, d) for p in parts)), d))
    return ", ".join(name for name, _, _ in made), lambda x: tuple(f(x, d) for _, f, d in made)


@pytest.mark.parametrize("seed", range(8))
def test_subscripts(seed):
    random = Random(seed)
    for _ in range(40):
        text, index = subscripts(random)

        def read(x):
            return x[index(x)] + 0

        def write(x):
            x = x * 1
            x[index(x)] = 5
            return x

        for f in (read, write):
            traced = trace_function(f, rand(6, 7, 9))
            for sizes in ((6, 7, 9), (4, 9, 8), (9, 3, 7)):
                x = rand(*sizes)
                assert same(traced(x), f(x)), f"{f.__name__} [{text}] of {sizes}"


def trace_function(f, *inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        return jit.trace(f, inputs, check_trace=False)


# ---- inputs that the module knows


def test_an_input_that_is_a_parameter_is_an_input():
    class Added(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(rand(3, 4))
            self.register_buffer("y", rand(3, 4) + 1)

        def forward(self, a, b):
            return self.x + a + self.y * b

    module = Added()
    traced = jit.trace(module, (module.x, module.y))
    a, b = rand(3, 4) * 2, rand(3, 4) * 3
    assert same(traced(a, b), module(a, b))
