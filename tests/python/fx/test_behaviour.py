"""What graphs, modules and passes do, besides their texts."""

import copy
import importlib
import pickle
import subprocess
import sys
import traceback

import cresset as torch
import pytest
from cresset import fx, nn
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.weight = torch.nn.Parameter(torch.rand(2))

    def forward(self, x):
        return torch.relu(self.linear(x) * self.weight) + torch.ones(2)


def leaf(a, b):
    return a[0] + b


fx.wrap("leaf")


def test_import_of_the_package_does_not_load_it():
    done = subprocess.run([sys.executable, "-c", "import cresset, sys; assert 'cresset.fx' not in sys.modules"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_users_follow_arguments():
    g = fx.Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    c = g.call_function(torch.add, (a, [b, {"k": a}]))
    assert list(a.users) == [c] and c.all_input_nodes == [a, b]
    c.args = (b,)
    assert not a.users and list(b.users) == [c]
    c.replace_input_with(b, a)
    assert c.args == (a,) and not b.users
    with pytest.raises(RuntimeError, match="still had 1 users"):
        g.erase_node(a)
    with pytest.raises(TypeError, match="does not support mutation"):
        g.call_function(torch.cat, ([a, b],)).args[0].append(a)


def test_order_by_position():
    g = fx.Graph()
    nodes = [g.placeholder("first")]
    for _ in range(40):
        with g.inserting_before(nodes[-1]):
            nodes.append(g.call_function(torch.rand, (1,)))
    for _ in range(40):
        with g.inserting_after(nodes[7]):
            nodes.append(g.call_function(torch.rand, (1,)))
    listed = list(g.nodes)
    assert sorted(nodes) == listed and len(g.nodes) == 81 and list(reversed(g.nodes)) == listed[::-1]


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(copied):
    net = fx.symbolic_trace(Net())
    other = copied(net)
    x = torch.rand(3, 2)
    assert other.code == net.code and torch.equal(other(x), net(x))
    assert list(other.state_dict()) == list(net.state_dict())


def test_an_error_shows_the_generated_line(capfd):
    net = fx.symbolic_trace(lambda x: torch.mm(x, x))
    with pytest.raises(RuntimeError):
        net(torch.ones(2, 3))
    said = capfd.readouterr().err
    assert "Call using an FX-traced Module, line 5 of the traced Module's generated forward function:" in said and "mm = torch.mm(x, x)" in said
    try:
        fx.symbolic_trace(lambda x: leaf(x, 1))(torch.tensor(1))
    except IndexError:
        assert "leaf = " in traceback.format_exc()


def test_wrapped_functions_are_themselves_again():
    before = leaf
    net = fx.symbolic_trace(lambda x: leaf((x, 3), 4) + leaf((1, 2), 3))
    assert leaf is before and net(2) == 10 and 'wrap("' in net.code
    assert fx.symbolic_trace(net)(2) == 10


def test_a_trace_that_fails_puts_everything_back():
    call, look = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: leaf((x,), 1) if x else 0)
    assert torch.nn.Module.__call__ is call and torch.nn.Module.__getattr__ is look


def test_dead_code():
    g = fx.Graph()
    x = g.placeholder("x")
    g.call_function(torch.relu, (x,))
    g.call_function(torch.ops.aten.add_.Tensor, (x, 1))
    g.call_function(torch._assert, (x, "text"))
    g.output(x)
    assert g.eliminate_dead_code() and not g.eliminate_dead_code()
    assert [n.name for n in g.nodes] == ["x", "add__tensor", "_assert", "output"]


def test_interpreter_says_where():
    net = fx.symbolic_trace(lambda x: torch.mm(x, x))
    with pytest.raises(RuntimeError, match="While executing %mm"):
        fx.Interpreter(net).run(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(net).run()


def test_matches_do_not_overlap():
    net = fx.symbolic_trace(lambda x: x.neg().neg().neg())
    found = fx.replace_pattern(net, lambda x: x.neg().neg(), lambda x: x)
    assert len(found) == 1 and net(torch.ones(1)) == -1


def test_a_value_that_is_used_outside_stays():
    def program(x):
        y = torch.relu(x)
        return torch.sigmoid(y) + y

    net = fx.symbolic_trace(program)
    assert fx.replace_pattern(net, lambda x: torch.sigmoid(torch.relu(x)), lambda x: x) == []


def test_passes_in_order():
    seen = []

    def first(gm):
        seen.append(1)

    def second(gm):
        seen.append(2)

    passes = [pass_result_wrapper(second), pass_result_wrapper(first)]
    PassManager(passes, constraints=[this_before_that_pass_constraint(passes[1], passes[0])])(fx.symbolic_trace(Net()))
    assert seen == [1, 2]


def test_equal_nodes_are_merged():
    from cresset.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

    def program(x):
        return x.sin() + x.sin() + torch.rand(2) * torch.rand(2)

    result = CSEPass(get_CSE_banned_ops())(make_fx(program)(torch.ones(2)))
    assert result.modified and result.graph_module.code.count("aten.sin") == 1 and result.graph_module.code.count("aten.rand") == 2


def test_constants_are_computed_once():
    from cresset.fx.experimental.const_fold import split_const_subgraphs

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.rand(2)), torch.nn.Parameter(torch.rand(2))

        def forward(self, x):
            return x * (self.a + self.b)

    m, x = M(), torch.rand(2)
    folded = split_const_subgraphs(m)
    assert not folded.graph.find_nodes(op="call_function", target=importlib.import_module("operator").add)
    assert torch.equal(folded(x), m(x))


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_make_fx_of_a_training_step(mode):
    net = Net()

    def step(x):
        return torch.autograd.grad(net(x).sum(), list(net.parameters()))

    x = torch.rand(3, 2)
    recorded = make_fx(step, tracing_mode=mode, _allow_non_fake_inputs=True)(x)
    other = torch.rand(3, 2)
    for ours, expected in zip(recorded(other), step(other)):
        assert torch.allclose(ours, expected)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx_of_a_new_constant(mode):
    recorded = make_fx(lambda x: torch.where(x > 0, x, torch.tensor(-2.0)), tracing_mode=mode)(torch.ones(2))
    assert "torch.ops.aten.lift_fresh_copy.default(_tensor_constant0)" in recorded.code
    assert recorded(torch.tensor([3.0, -1.0])).tolist() == [3.0, -2.0] and recorded._tensor_constant0.item() == -2.0


def test_make_fx_decomposes():
    table = {torch.ops.aten.relu.default: lambda x: x * (x > 0)}
    recorded = make_fx(lambda x: torch.relu(x).sin(), decomposition_table=table)(torch.ones(2))
    assert "relu" not in recorded.code and torch.equal(recorded(torch.tensor([-1.0, 2.0])), torch.tensor([-0.0, 2.0]).sin())


def test_pictures_need_pydot():
    from cresset.fx.passes.graph_drawer import FxGraphDrawer

    if importlib.util.find_spec("pydot") is None:
        with pytest.raises(RuntimeError, match="FXGraphDrawer requires the pydot package"):
            FxGraphDrawer(fx.symbolic_trace(Net()), "net")
    else:
        assert "digraph" in FxGraphDrawer(fx.symbolic_trace(Net()), "net").get_dot_graph().to_string()


@pytest.mark.parametrize("function", [torch.conv2d, len, "abc".upper])
def test_functions_without_python_code_are_no_roots(function):
    with pytest.raises(AssertionError, match="symbolic tracing needs a module, or a function with Python code"):
        fx.symbolic_trace(function)


def test_annotations_that_are_objects_are_written_and_found_again():
    """Types of tensors with sizes, and the type of what is unknown, are objects of fx.tensor_type."""
    from cresset.fx.tensor_type import Dyn, TensorType

    class M(torch.nn.Module):
        def forward(self, x: TensorType((1, 2, 3, Dyn)), y: Dyn, z: list[TensorType((4,))]):
            return torch.flatten(x, 1, 2)

    for traced in (once := fx.symbolic_trace(M()), fx.symbolic_trace(once), pickle.loads(pickle.dumps(once))):
        assert traced(torch.ones(1, 2, 3, 4), None, None).shape == (1, 6, 4)
        x, y, z = (n for n in traced.graph.nodes if n.op == "placeholder")
        assert x.type == TensorType((1, 2, 3, Dyn)) and y.type == Dyn and z.type.__args__ == (TensorType((4,)),)


def test_make_fx_with_pre_dispatch_sees_operators_as_they_are_called():
    def f(x, w):
        with torch.no_grad():
            y = torch.nn.functional.linear(x, w) + 1
        return torch.matmul(y, x).chunk(2)[0]

    x, w = torch.ones(2, 2), torch.ones(2, 2)
    names = [str(n.target) for n in make_fx(f, pre_dispatch=True)(x, w).graph.nodes if n.op == "call_function"]
    # What PyTorch 2.13 records, too.
    assert [n for n in names if "built-in" not in n] == ["aten.linear.default", "aten.add.Tensor", "aten.matmul.default", "aten.chunk.default"]
    assert names[0] == names[3] == str(torch._C._set_grad_enabled)
    assert "aten.linear.default" not in [str(n.target) for n in make_fx(f)(x, w).graph.nodes]
    replaced = make_fx(f, {torch.ops.aten.linear.default: lambda a, b: a * b}, pre_dispatch=True)(x, w)
    assert [str(n.target) for n in replaced.graph.nodes][2:5] == [str(torch._C._set_grad_enabled), "aten.mul.Tensor", "aten.add.Tensor"]
    assert torch.equal(replaced(x, w), f(x, w) - 2)


def test_functions_are_recorded_as_themselves():
    """As in PyTorch: torch.f(proxy) is a call of torch.f, not of a method or of what f calls. The others are not recorded in PyTorch either."""
    others = {"dsmm", "hsmm", "spmm", "fork_rng", "is_storage", "is_tensor", "set_printoptions", "typename", "set_default_tensor_type", "set_default_device", "wait"}
    wrong = []
    for name in set(torch.__all__) - others:
        function = getattr(torch, name)
        if not callable(function) or isinstance(function, type) or name.startswith(("set_", "is_", "use_")):
            continue
        for count in (1, 2):
            graph = fx.Graph()
            x = fx.Proxy(graph.placeholder("x"), fx.proxy.GraphAppendingTracer(graph))
            try:
                function(*[x] * count)
            except Exception:  # other arguments are needed
                continue
            last = list(graph.nodes)[-1]
            if last.target is not function and last.op != "placeholder":
                wrong.append((name, last.op, last.target))
            break
    assert wrong == []
    graph = fx.symbolic_trace(lambda x: torch.dequantize(x)).graph
    assert [n.target for n in graph.nodes][1] is torch.dequantize
    q = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    assert torch.Tensor.dequantize(q).tolist() == torch.dequantize([q])[0].tolist() == [1, 1]


class _Pair(torch.Tensor):
    """Two tensors in one, whose operators run on both."""

    @staticmethod
    def __new__(cls, a, b):
        self = torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)
        self.a, self.b = a, b
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        parts = [[getattr(a, name) if isinstance(a, _Pair) else a for a in args] for name in "ab"]
        return _Pair(*(func(*part, **(kwargs or {})) for part in parts))


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_make_fx_of_a_subclass_made_inside(mode):
    def program(a, b, y):
        both = _Pair(a, b) * y
        return both.a, both.b, y + y

    recorded = make_fx(program, tracing_mode=mode)(torch.zeros(4), torch.zeros(4), torch.ones(4))
    called = [str(n.target) for n in recorded.graph.nodes if n.op == "call_function"]
    assert called == ["aten.mul.Tensor", "aten.mul.Tensor", "aten.add.Tensor"] and not any(n.op == "get_attr" for n in recorded.graph.nodes)
    assert [t.tolist() for t in recorded(torch.full((1,), 2.0), torch.full((1,), 3.0), torch.full((1,), 4.0))] == [[8], [12], [8]]


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (nn.ReLU(), "input : torch.Tensor"), (nn.Dropout(), "input : torch.Tensor"), (nn.MSELoss(), "input : torch.Tensor, target : torch.Tensor"),
        (nn.ZeroPad2d(1), "input : torch.Tensor"), (nn.Flatten(), "input : torch.Tensor"), (nn.Identity(), "input : torch.Tensor"),
        (nn.CosineSimilarity(), "x1 : torch.Tensor, x2 : torch.Tensor"), (nn.RMSNorm(2), "x : torch.Tensor"),
    ],
)  # fmt: skip
def test_layers_say_what_they_take(layer, inputs):
    """The code of a layer that is traced by itself; PyTorch 2.13 prints the same line."""
    assert f"def forward(self, {inputs}) -> torch.Tensor:" in fx.symbolic_trace(layer).code


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("options", [{}, {"dtype": torch.float32}, {"dtype": torch.float32, "device": "cpu"}])
@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("linspace", "linspace.out(1, 5, 4, "),
        ("logspace", "logspace.out(1, 5, 4, "),
        ("arange", "arange.start_out(1, 5, 4, "),
    ],
)
def test_factories_with_out_are_recorded_without_options(mode, options, function, call):
    def f(o):
        return getattr(torch, function)(1, 5, 4, out=o, **options)

    out = torch.empty(1 if function == "arange" else 4)
    made = make_fx(f, tracing_mode=mode)(torch.empty_like(out))
    assert f"{function} = torch.ops.aten.{call}out = o_1);  o_1 = None" in made.code
    assert made(out) is out and torch.equal(out, getattr(torch, function)(1, 5, 4))


def test_names_that_begin_with_an_underscore():
    names = torch.fx.graph._Namespace()
    assert [names.create_name(name, None) for name in ("_0", "_0", "_1", "3", "3", "__0", "__0")] == ["_0", "_0_1", "_1", "_3", "_3_1", "__0", "__1"]


def test_views_that_change_their_tensor_are_recorded_inside_of_transforms():
    def f(x):
        y = x.clone()
        y.transpose_(0, 1)
        return (y * x.t()).sum()

    x = torch.arange(6.0).reshape(2, 3)
    traced = make_fx(torch.func.grad(f))(x)
    assert torch.equal(traced(x), 2 * x)
    assert "transpose_" in traced.code


def test_modules_with_fixed_arguments_are_loaded():
    traced = fx.symbolic_trace(lambda x, y=None: x + 1 if y is None else x + y, concrete_args={"y": None})
    again = pickle.loads(pickle.dumps(traced))
    assert again(torch.ones(1)).tolist() == [2] and "_assert_is_none" in again.code
    with pytest.raises(AssertionError, match="y has been specialized to have value None"):
        again(torch.ones(1), 3)
    with pytest.raises(TypeError, match="argument must be a Node"):
        next(iter(traced.graph.nodes)).append(5)
