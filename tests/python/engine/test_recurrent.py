"""Recurrent layers that an engine packed answer as the interpreter does."""

import itertools

import cresset
import cresset.engine
import pytest
from cresset import nn

KINDS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": lambda *a, **k: nn.RNN(*a, nonlinearity="tanh", **k),
    "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
}


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, *state):
        if not state:
            out, last = self.layer(x)
        else:
            out, last = self.layer(x, state if len(state) == 2 else state[0])
        return (out, *last) if isinstance(last, tuple) else (out, last)


def compiled(module, *inputs, precision=cresset.float32):
    module.eval()
    with cresset.no_grad():
        script = cresset.jit.trace(module, inputs, check_trace=False)
        dynamic = [cresset.lowering.Input((-1, -1, x.size(2))) for x in inputs]
        return cresset.engine.compile(script, inputs=dynamic, min_block_size=1, enabled_precisions={precision})


def check(module, engine, *inputs, tolerance=1e-5):
    with cresset.inference_mode():
        expected, given = module(*inputs), engine(*inputs)
    assert len(expected) == len(given)
    for e, g in zip(expected, given):
        assert g.stride() == e.stride()
        cresset.testing.assert_close(g, e, atol=tolerance, rtol=1e-4)


def state_of(module, batch):
    layer = module.layer
    sizes = (layer.num_layers * (2 if layer.bidirectional else 1), batch, layer.hidden_size)
    return [cresset.randn(sizes) for _ in range(2 if isinstance(layer, nn.LSTM) else 1)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden, layers, bidirectional, batch_first, bias", [(37, 1, False, False, True), (16, 2, False, True, True), (5, 2, True, False, True), (33, 1, True, True, False)])
def test_layers_of_any_size(kind, hidden, layers, bidirectional, batch_first, bias):
    cresset.manual_seed(0)
    module = Recurrent(KINDS[kind](9, hidden, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias))
    engine = compiled(module, cresset.randn(3, 3, 9), *state_of(module, 3))
    assert "cresset::recurrent_packed" in engine.engine_0.program() and "aten::" + kind not in engine.engine_0.program()
    for steps, batch in [(3, 3), (1, 1), (4, 7), (2, 13)]:
        x = cresset.randn(batch, steps, 9) if batch_first else cresset.randn(steps, batch, 9)
        check(module, engine, x, *state_of(module, batch))
        check(module, engine, x.transpose(1, 2).contiguous().transpose(1, 2), *(s.transpose(0, 1).contiguous().transpose(0, 1) for s in state_of(module, batch)))


@pytest.mark.parametrize("kind, threads", [*itertools.product(KINDS, [1, 3])])
def test_without_a_state_and_in_threads(kind, threads):
    before = cresset.get_num_threads()
    try:
        cresset.set_num_threads(threads)
        cresset.manual_seed(0)
        module = Recurrent(KINDS[kind](64, 200))
        engine = compiled(module, cresset.randn(5, 2, 64))
        for steps, batch in [(5, 2), (3, 9), (6, 1)]:
            check(module, engine, cresset.randn(steps, batch, 64), tolerance=1e-4)
    finally:
        cresset.set_num_threads(before)


@pytest.mark.parametrize("kind", KINDS)
def test_nan_and_infinity_come_out_where_the_interpreter_has_them(kind):
    cresset.manual_seed(0)
    module = Recurrent(KINDS[kind](3, 18))
    engine = compiled(module, cresset.randn(4, 3, 3))
    for bad in [float("nan"), float("inf"), -float("inf")]:
        x = cresset.randn(4, 3, 3)
        x[1, 1, 2] = bad
        with cresset.inference_mode():
            for e, g in zip(module(x), engine(x)):
                cresset.testing.assert_close(g, e, atol=1e-5, rtol=1e-4, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_refused_as_the_operator_does(kind):
    module = Recurrent(KINDS[kind](6, 8))
    engine = compiled(module, cresset.randn(4, 3, 6), *state_of(module, 3))
    for inputs in [(cresset.randn(4, 3, 5), *state_of(module, 3)), (cresset.randn(4, 3, 6), *state_of(module, 2)), (cresset.randn(0, 3, 6), *state_of(module, 3))]:
        words = []
        for call in (lambda i: cresset.jit.trace(module, (cresset.randn(4, 3, 6), *state_of(module, 3)), check_trace=False)(*i), lambda i: engine(*i)):
            with pytest.raises(RuntimeError) as error:
                call(inputs)
            words.append(str(error.value).splitlines()[0])
        assert words[0] == words[1]


def test_what_is_not_packed_runs():
    cresset.manual_seed(0)
    projected = Recurrent(nn.LSTM(6, 8, proj_size=3))
    engine = compiled(projected, cresset.randn(4, 3, 6))
    assert "recurrent_packed" not in engine.engine_0.program()
    check(projected, engine, cresset.randn(4, 3, 6))


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(kind, tmp_path):
    cresset.manual_seed(0)
    module = Recurrent(KINDS[kind](6, 20, bidirectional=True))
    engine = compiled(module, cresset.randn(4, 3, 6))
    engine.save(str(tmp_path / "engine.cre"))
    check(module, cresset.jit.load(str(tmp_path / "engine.cre")), cresset.randn(2, 5, 6))


def packed_by_hand(layer, kind, precision):
    params = list(layer.parameters())
    return cresset.ops.cresset.pack_recurrent(kind, params, layer.bias, layer.num_layers, layer.bidirectional, layer.batch_first, precision)


@pytest.mark.skipif(cresset.bfloat16 not in cresset.engine.precisions(), reason="no products of bfloat16")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden, batch", [(31, 1), (64, 7)])
def test_bfloat16_is_the_same_of_rounded_weights(kind, hidden, batch):
    """Products of bfloat16, sums of float32: what the interpreter gives for rounded weights, but for the rounding of inputs and states."""
    cresset.manual_seed(0)
    module = Recurrent(KINDS[kind](12, hidden)).requires_grad_(False)
    for p in module.parameters():
        p.copy_(p.bfloat16().float())
    engine = compiled(module, cresset.randn(3, batch, 12), precision=cresset.bfloat16)
    assert "recurrent_packed" in engine.engine_0.program()
    x = cresset.randn(6, batch, 12).bfloat16().float()
    with cresset.inference_mode():
        for e, g in zip(module(x), engine(x)):
            assert float((e - g).abs().max()) < 0.01 * max(1.0, float(e.abs().max()))
        assert any(not cresset.equal(e, g) for e, g in zip(module(x), engine(x)))


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(kind="elman"), "lstm, gru, rnn_tanh or rnn_relu was required; got 'elman'"),
        (dict(layers=2), "4 weights for each layer and direction were required; 4 were given for 2 layers"),
        (dict(layers=0), "4 were given for 0 layers"),
        (dict(kind="gru"), r"weights of size \(24, 6\) and \(24, 8\) and dtype float32"),
        (dict(double=True), "dtype float32 on the CPU"),
        (dict(short_bias=True), "biases of 32 elements"),
        (dict(precision="int8"), "float32 or, with AVX512_BF16, bfloat16 was required; got int8"),
    ],
)
def test_numbers_of_files_are_checked(change, words):
    params = [p.detach() for p in nn.LSTM(6, 8).parameters()]
    if change.get("double"):
        params[1] = params[1].double()
    if change.get("short_bias"):
        params[3] = params[3][:7]
    with pytest.raises(ValueError, match=words):
        cresset.ops.cresset.pack_recurrent(change.get("kind", "lstm"), params, True, change.get("layers", 1), False, False, change.get("precision", "float32"))
