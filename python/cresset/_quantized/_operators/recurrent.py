"""Recurrent layers and cells with packed weights; their states and inputs are real numbers."""

import cresset

from ..._overridable import overridable
from . import linear
from ._register import operator

_DYNAMIC, _FLOAT16 = 0, 1


def _lstm(gates_x, gates_h, state):
    i, f, g, o = (gates_x + gates_h).chunk(4, -1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(gates_x, gates_h, state):
    (rx, zx, nx), (rh, zh, nh) = gates_x.chunk(3, -1), gates_h.chunk(3, -1)
    reset, update = (rx + rh).sigmoid(), (zx + zh).sigmoid()
    new = (nx + reset * nh).tanh()
    return (new + update * (state[0] - new),)


def _rnn(activation):
    return lambda gates_x, gates_h, state: (activation(gates_x + gates_h),)


def _cell(step, several):
    def run(input, hx, w_ih, w_hh, b_ih, b_hh):
        state = tuple(hx) if several else (hx,)
        new = step(linear.any_product(input, w_ih), linear.any_product(state[0], w_hh), state)
        return new if several else new[0]

    return run


for _name, _step in (("gru", _gru), ("rnn_relu", _rnn(cresset.relu)), ("rnn_tanh", _rnn(cresset.tanh))):
    operator(f"quantized_{_name}_cell_dynamic(Tensor input, Tensor hx, LINEAR w_ih, LINEAR w_hh, Tensor b_ih, Tensor b_hh) -> Tensor")(_cell(_step, False))
operator("quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, LINEAR w_ih, LINEAR w_hh, Tensor bias_ih, Tensor bias_hh) -> (Tensor, Tensor)")(_cell(_lstm, True))


def _pack(w_ih, w_hh, *numbers):
    return cresset.classes.rnn.CellParamsBase([*w_ih.unpack(), *w_hh.unpack()], list(numbers))


@operator("make_quantized_cell_params_dynamic(LINEAR w_ih, LINEAR w_hh, Tensor bias_ih, Tensor bias_hh, bool reduce_range=False) -> CELL")
def make_quantized_cell_params_dynamic(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    """The weights of one direction of one layer in int8."""
    return _pack(w_ih, w_hh, _DYNAMIC, int(reduce_range))


@operator("make_quantized_cell_params_fp16(LINEAR w_ih, LINEAR w_hh) -> CELL")
def make_quantized_cell_params_fp16(w_ih, w_hh):
    """The weights of one direction of one layer in float16."""
    return _pack(w_ih, w_hh, _FLOAT16, 0)


def matrices(cell):
    """((weight, bias) for the input, (weight, bias) for the state, is it float16?) of packed cell parameters."""
    w_ih, b_ih, w_hh, b_hh = cell.tensors()
    return (w_ih, b_ih), (w_hh, b_hh), cell.numbers()[0] == _FLOAT16


def _products(cell):
    of_input, of_state, half = matrices(cell)
    if half:
        return tuple(lambda x, w=w, b=b: cresset.nn.functional.linear(x, w, b) for w, b in (of_input, of_state))
    reduce_range = bool(cell.numbers()[1])
    return tuple(lambda x, w=w, b=b: linear.dynamic_product(x, w, b, reduce_range) for w, b in (of_input, of_state))


def _direction(step, x, state, cell, lengths, backward):
    """One direction of one layer over x [time, batch, features]; steps beyond a sequence's length change nothing."""
    of_input, of_state = _products(cell)
    gates, out = of_input(x), [None] * x.shape[0]
    for t in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
        new = step(gates[t], of_state(state[0]), state)
        if lengths is not None:
            alive = (t < lengths).unsqueeze(1)
            new = tuple(cresset.where(alive, n, s) for n, s in zip(new, state))
        state, out[t] = new, new[0]
    return (cresset.stack(out) if out else x.new_zeros(0, x.shape[1], state[0].shape[-1])), state


def layers(kind, x, states, cells, num_layers, dropout, train, bidirectional, lengths=None):
    """(output, last states) of all layers of an "lstm" or "gru" over x [time, batch, features]; states [layers * directions, batch, hidden]."""
    step, directions, last, cells = {"lstm": _lstm, "gru": _gru}[kind], 1 + bidirectional, [], iter(cells)
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            out, state = _direction(step, x, tuple(s[layer * directions + d] for s in states), next(cells), lengths, d == 1)
            outputs.append(out)
            last.append(state)
        x = outputs[0] if directions == 1 else cresset.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            x = cresset.nn.functional.dropout(x, dropout)
    return x, [cresset.stack(values) for values in zip(*last)]


def _whole(kind, hx, params, num_layers, dropout, train, bidirectional, batch_first, input):
    states = list(hx) if kind == "lstm" else [hx]
    x, last = layers(kind, input.transpose(0, 1) if batch_first else input, states, params, num_layers, dropout, train, bidirectional)
    return (x.transpose(0, 1) if batch_first else x, *last)


def _packed(kind, hx, params, num_layers, dropout, train, bidirectional, data, batch_sizes):
    sequences = cresset.nn.utils.rnn
    x, lengths = sequences.pad_packed_sequence(sequences.PackedSequence(data, batch_sizes))
    states = list(hx) if kind == "lstm" else [hx]
    x, last = layers(kind, x, states, params, num_layers, dropout, train, bidirectional, lengths)
    return (sequences.pack_padded_sequence(x, lengths).data, *last)


def whole(kind):
    """`aten::quantized_<kind>.input`, of a padded input."""

    def run(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, *, dtype=None, use_dynamic=False):
        return _whole(kind, hx, params, num_layers, dropout, train, bidirectional, batch_first, input)

    return run


def packed(kind):
    """`aten::quantized_<kind>.data`, of a packed sequence."""

    def run(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, *, dtype=None, use_dynamic=False):
        return _packed(kind, hx, params, num_layers, dropout, train, bidirectional, data, batch_sizes)

    return run


def _function(name):
    def run(*args, **kwargs):
        return getattr(cresset.ops.aten, name)(*args, **kwargs)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"""The layers of an nn.{name.rpartition("_")[2].upper()} with packed weights: of a padded input, or of the data and batch sizes of a packed sequence."""
    return overridable(run)


quantized_lstm, quantized_gru = _function("quantized_lstm"), _function("quantized_gru")
