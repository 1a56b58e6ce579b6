"""Converters and evaluators: operators of users become others when engines are built, by schema and by what a node has."""

import cresset
import cresset.engine
import pytest
from cresset import nn

_library = cresset.library.Library("converted", "DEF")
for schema in ("scaled(Tensor x, float by) -> Tensor", "both(Tensor x) -> (Tensor, Tensor)", "half(int n) -> int", "add.named(Tensor x, Tensor y) -> Tensor", "plain(Tensor x) -> Tensor"):
    _library.define(schema)
_calls = []


def _kernel(name, function):
    def counted(*args):
        _calls.append(name)
        return function(*args)

    _library.impl(name, counted, "CompositeExplicitAutograd")


_kernel("scaled", lambda x, by: x * by)
_kernel("both", lambda x: (x + 1, x - 1))
_kernel("half", lambda n: n // 2)
_kernel("add.named", lambda x, y: x + y)
_kernel("plain", lambda x: x * 3)
OPS = cresset.ops.converted


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(cresset.randn(4))

    def forward(self, x):
        y = cresset.ops.converted.scaled(x, 2.5)
        a, b = cresset.ops.converted.both(y)
        n = cresset.ops.converted.half(6)
        return (cresset.ops.converted.add(a, b) * self.weight).relu() + n


def traced(module, *inputs):
    with cresset.no_grad():
        return cresset.jit.trace(module.eval(), inputs, check_trace=False)


@cresset.engine.converter("converted::both(Tensor x) -> (Tensor, Tensor)")
def _both(ctx, node, x):
    return ctx.call("aten::add", x, 1), ctx.call("aten::sub", x, 1)


@cresset.engine.converter("converted::add(Tensor x, Tensor y) -> Tensor")
def _add(ctx, node, x, y):
    return ctx.call("aten::add", x, y)


@cresset.engine.converter("converted::scaled(Tensor x, float by) -> Tensor", supports=lambda node: node.inputsAt(1).toIValue() is not None if hasattr(node, "inputsAt") else True)
def _scaled(ctx, node, x, by):
    assert ctx.constant(x, "unknown") == "unknown"
    return ctx.call("aten::mul", x, ctx.weight(cresset.tensor(ctx.constant(by))))


cresset.engine.evaluator("converted::half(int n) -> int")(lambda n: n // 2)


def test_a_graph_is_converted_as_a_whole():
    module, x = Net(), cresset.randn(3, 4)
    engine = cresset.engine.compile(traced(module, x), inputs=[x], require_full_compilation=True)
    text = engine.engine_0.program()
    assert "converted::" not in text and "converted::scaled" in engine.engine_0.graph()
    _calls.clear()
    got = engine(x)
    assert not _calls
    cresset.testing.assert_close(got, module(x))


def test_archives_keep_the_graph_from_before(tmp_path):
    module, x = Net(), cresset.randn(3, 4)
    engine = cresset.engine.compile(traced(module, x), inputs=[x])
    engine.save(tmp_path / "net.cre")
    loaded = cresset.jit.load(tmp_path / "net.cre")
    assert "converted::" not in loaded.engine_0.program()
    cresset.testing.assert_close(loaded(x), module(x))


class Plain(nn.Module):
    def forward(self, x):
        return cresset.ops.converted.plain(x).relu() * 2 + 1


def test_what_a_node_has_decides():
    x = cresset.randn(3)
    asked = []
    supports = lambda node: asked.append(node.kind()) or len(asked) < 0  # noqa: E731
    cresset.engine.converter("converted::plain(Tensor x) -> Tensor", backend="nobody", supports=supports)(lambda ctx, node, x: ctx.call("aten::mul", x, 3))
    missing = cresset.engine.check_method_operator_support(traced(Plain(), x))
    assert missing and missing[0].startswith("converted::plain") and not asked  # of another backend
    with pytest.warns(UserWarning, match="the converter of converted::plain.* for 'nobody' replaces another one"):
        cresset.engine.converter("converted::plain(Tensor x) -> Tensor", backend="nobody", supports=supports)(lambda ctx, node, x: None)
    cresset.engine.converter("converted::plain(Tensor x) -> Tensor", supports=supports)(lambda ctx, node, x: ctx.call("aten::mul", x, 3))
    assert cresset.engine.check_method_operator_support(traced(Plain(), x)) == missing and asked[0] == "converted::plain"
    with pytest.warns(UserWarning, match="replaces another one"):
        cresset.engine.converter("converted::plain(Tensor x) -> Tensor")(lambda ctx, node, x: ctx.call("aten::mul", x, 3))
    assert cresset.engine.check_method_operator_support(traced(Plain(), x)) == []


def test_overrides_of_operators_that_the_engine_has():
    class Tanh(nn.Module):
        def forward(self, x):
            return x.tanh() * 2

    x = cresset.randn(3)
    module = traced(Tanh(), x)
    on = []
    cresset.engine.converter("aten::tanh(Tensor self) -> Tensor", supports=lambda node: bool(on))(
        lambda ctx, node, x: ctx.call("aten::sub", ctx.call("aten::mul", ctx.call("aten::sigmoid", ctx.call("aten::mul", x, 2)), 2), 1)
    )
    assert "aten::tanh" in cresset.engine.compile(module, inputs=[x]).engine_0.program()
    on.append(True)
    engine = cresset.engine.compile(module, inputs=[x])
    assert "aten::tanh" not in engine.engine_0.program() and "aten::sigmoid" in engine.engine_0.program()
    cresset.testing.assert_close(engine(x), module(x))
    on.clear()


BAD = [
    (lambda: cresset.engine.converter("no schema")(print), "a schema like aten::foo.* was required; got 'no schema'"),
    (lambda: cresset.engine.converter("aten::tanh(Tensor self, int n) -> Tensor")(print), "no overload of aten::tanh has the arguments of"),
    (lambda: cresset.engine.converter("converted::add(Tensor x, int y) -> Tensor")(print), "no overload of converted::add has the arguments of"),
    (lambda: cresset.engine.evaluator("converted::half(int n) -> int")(print), "converted::half.* has an evaluator"),
    (lambda: cresset.engine.converter("converted::scaled(Tensor x, float by) -> Tensor", backend="")(print), "a backend's name and a function were required"),
]


@pytest.mark.parametrize("register, words", BAD)
def test_what_is_refused(register, words):
    with pytest.raises(ValueError, match=words):
        register()


def test_converters_that_are_wrong():
    kept = []
    cases = [
        (lambda ctx, node, x: (x, x), ValueError, "converter of converted::plain: 1 results were required; it gave 2"),
        (lambda ctx, node, x: 3, TypeError, "a value, or a tuple of values, was required; it gave a int"),
        (lambda ctx, node, x: ctx.call("aten::no_such", x), RuntimeError, "no_such"),
        (lambda ctx, node, x: 1 / 0, ZeroDivisionError, "division"),
        (lambda ctx, node, x: kept.append(ctx) or x, None, ""),
    ]
    x = cresset.randn(3)
    for function, error, words in cases:
        with pytest.warns(UserWarning, match="replaces another one|no engine"):
            cresset.engine.converter("converted::plain(Tensor x) -> Tensor")(lambda *a: None)
            cresset.engine.converter("converted::plain(Tensor x) -> Tensor")(function)
        if error is None:
            cresset.engine.compile(traced(Plain(), x), inputs=[x])
        else:
            with pytest.raises(error, match=words):
                cresset.engine.compile(traced(Plain(), x), inputs=[x])
    with pytest.raises(RuntimeError, match="the context is gone once its converter has returned"):
        kept[0].call("aten::relu", 1)
