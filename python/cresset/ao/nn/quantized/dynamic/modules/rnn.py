"""Recurrent layers and cells with weights in int8 or float16."""

import numbers
import warnings
from typing import Optional  # noqa: UP035  scripts read annotations by these names

import cresset
from cresset import Tensor, nn
from cresset._quantized._operators import recurrent
from cresset.ao.nn.quantized.modules.utils import _quantize_weight
from cresset.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

__all__ = ["pack_weight_bias", "PackedParameter", "RNNBase", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell", "apply_permutation"]


def apply_permutation(tensor, permutation, dim=1):
    """The tensor's indices of a dimension in another order."""
    return tensor.index_select(dim, permutation)


def pack_weight_bias(qweight, bias, dtype):
    """A weight and bias packed for the dtype qint8 or float16."""
    pack = cresset.ops.quantized.linear_prepack if dtype is cresset.qint8 else cresset.ops.quantized.linear_prepack_fp16
    return pack(qweight, bias)


class PackedParameter(nn.Module):
    """The packed weights of one direction of one layer."""

    def __init__(self, param):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.param = state_dict[prefix + "param"]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)


def _weight_observer(mod):
    """What watches the weights of a float layer, by its `qconfig` where it has one."""
    qconfig = getattr(mod, "qconfig", None)
    observer = (qconfig if qconfig is not None and qconfig.weight is not None else cresset.ao.quantization.default_dynamic_qconfig).weight()
    if observer.dtype not in (cresset.qint8, cresset.float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {observer.dtype}; qint8 or float16 was required.")
    return observer


def _packed(weight, bias, make):
    """One matrix, watched by a new observer."""
    observer = make()
    observer(weight)
    weight = weight.detach().float()
    return pack_weight_bias(_quantize_weight(weight, observer) if observer.dtype is cresset.qint8 else weight, bias, observer.dtype)


def _cell_params(of_input, of_state, dtype, bias):
    if dtype is cresset.qint8:
        return cresset.ops.quantized.make_quantized_cell_params_dynamic(of_input, of_state, bias, bias, True)
    return cresset.ops.quantized.make_quantized_cell_params_fp16(of_input, of_state)


class RNNBase(nn.Module):
    """All layers and directions of an LSTM or GRU."""

    _FLOAT_MODULE = nn.RNNBase
    _version = 2  # of its part of state dicts

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, dtype=cresset.qint8):
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional, self.dtype = bias, batch_first, float(dropout), bidirectional, dtype
        self.version, self.training = 2, False
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but got "
                f"dropout={dropout} and num_layers={num_layers}", stacklevel=2,
            )  # fmt: skip
        gates = {"LSTM": 4, "GRU": 3}.get(mode)
        if gates is None:
            raise ValueError("Unrecognized RNN mode: " + mode)
        cells = []
        for layer in range(num_layers):
            for _ in range(self._directions):
                size = input_size if layer == 0 else hidden_size * self._directions
                weights = [cresset.randn(gates * hidden_size, n).float() for n in (size, hidden_size)]
                zero = cresset.zeros(gates * hidden_size)
                if dtype is cresset.qint8:
                    weights = [cresset.quantize_per_tensor(w, 1.0, 0, cresset.qint8) for w in weights]
                cells.append(PackedParameter(_cell_params(*(pack_weight_bias(w, zero, dtype) for w in weights), dtype, zero)))
        self._all_weight_values = nn.ModuleList(cells)

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    def _get_name(self):
        return "DynamicQuantizedRNN"

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.version = local_metadata.get("version", None)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def set_weight_bias(self, weight_bias_dict):
        """Other weights and biases, by their names: `weight_ih_l0`, `bias_hh_l0_reverse` and so on; the weights are quantized."""
        cells = []
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                w_ih, w_hh, b_ih, b_hh = (weight_bias_dict[f"{name}_l{layer}{suffix}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
                of_input, of_state = pack_weight_bias(w_ih, b_ih, self.dtype), pack_weight_bias(w_hh, b_hh, self.dtype)
                cells.append(PackedParameter(_cell_params(of_input, of_state, self.dtype, b_ih)))
        self._all_weight_values = nn.ModuleList(cells)

    def _facts(self):
        """{"weight" or "bias": {name: value}} of all layers."""
        found = {"weight": {}, "bias": {}}
        cells = iter(self._all_weight_values)
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                of_input, of_state, _ = recurrent.matrices(next(cells).param)
                for part, (weight, bias) in (("ih", of_input), ("hh", of_state)):
                    found["weight"][f"weight_{part}_l{layer}{suffix}"] = weight
                    found["bias"][f"bias_{part}_l{layer}{suffix}"] = bias
        return found

    def _weight_bias(self):
        return self._facts()

    def get_weight(self):
        """The weights by their names, quantized."""
        return self._facts()["weight"]

    def get_bias(self):
        """The biases by their names."""
        return self._facts()["bias"]

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of the float layer, by its `qconfig` where it has one; NotImplementedError for projections."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(f"{cls.__name__}.from_float: layers with projections (proj_size) are not supported.")
        make = lambda: _weight_observer(mod)  # noqa: E731
        dtype = make().dtype
        made = cls(mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional, dtype)
        made.training = mod.training
        cells = []
        for layer in range(mod.num_layers):
            for suffix in ("", "_reverse")[: made._directions]:
                matrices, zero = [], mod.weight_ih_l0.new_zeros(mod.weight_ih_l0.shape[0])
                for part in ("ih", "hh"):
                    bias = getattr(mod, f"bias_{part}_l{layer}{suffix}") if mod.bias else zero
                    matrices.append(_packed(getattr(mod, f"weight_{part}_l{layer}{suffix}"), bias, make))
                cells.append(PackedParameter(_cell_params(*matrices, dtype, zero)))
        made._all_weight_values = nn.ModuleList(cells)
        return made

    _states = 1

    def forward(self, input, hx=None):
        packed, lengths = isinstance(input, PackedSequence), None
        if packed:
            x, lengths = pad_packed_sequence(input)
        else:
            flat = input.dim() == 2
            x = input.unsqueeze(1) if flat else input.transpose(0, 1) if self.batch_first else input
        shape = (self.num_layers * self._directions, x.shape[1], self.hidden_size)
        if hx is None:
            states = [x.new_zeros(shape)] * self._states
        else:
            states = [s.unsqueeze(1) if not packed and flat else s for s in (hx if self._states > 1 else (hx,))]
            for s in states:
                if tuple(s.shape) != shape:
                    raise RuntimeError(f"Expected hidden size {shape}, got {list(s.shape)}")
        cells = [cell.param for cell in self._all_weight_values]
        x, final = recurrent.layers(self.mode.lower(), x, states, cells, self.num_layers, self.dropout, self.training, self.bidirectional, lengths)
        if packed:
            x = pack_padded_sequence(x, lengths, enforce_sorted=False)
        elif flat:
            x, final = x.squeeze(1), [s.squeeze(1) for s in final]
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, tuple(final) if self._states > 1 else final[0]


class LSTM(RNNBase):
    """nn.LSTM with weights in int8 or float16 (without projections)."""

    _FLOAT_MODULE, _states = nn.LSTM, 2

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self):
        return "DynamicQuantizedLSTM"


class GRU(RNNBase):
    """nn.GRU with weights in int8 or float16."""

    _FLOAT_MODULE, _states = nn.GRU, 1

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self):
        return "DynamicQuantizedGRU"


class RNNCellBase(nn.Module):
    """One step of a recurrent layer."""

    _FLOAT_MODULE = nn.RNNCellBase
    __constants__ = ("input_size", "hidden_size", "bias")

    def __init__(self, input_size, hidden_size, bias=True, num_chunks=4, dtype=cresset.qint8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        size = num_chunks * hidden_size
        self.bias_ih, self.bias_hh = (cresset.zeros(size) if bias else None for _ in range(2))
        weights = [cresset.randn(size, n).float() for n in (input_size, hidden_size)]
        if dtype is cresset.qint8:
            weights = [cresset.quantize_per_tensor(w, 1.0, 0, cresset.qint8) for w in weights]
        self._packed_weight_ih, self._packed_weight_hh = (pack_weight_bias(w, b, dtype) for w, b in zip(weights, (self.bias_ih, self.bias_hh)))

    def _get_name(self):
        return "DynamicQuantized" + type(self).__name__

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def check_forward_input(self, input: Tensor) -> None:
        """RuntimeError unless the input has the cell's size."""
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}")

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """RuntimeError unless the state fits the input and has the cell's size."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size {hx.size(0)}")
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected {self.hidden_size}")

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of the float cell, by its `qconfig` where it has one."""
        if type(mod) not in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
            raise AssertionError("nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell")
        make = lambda: _weight_observer(mod)  # noqa: E731
        arguments = {"nonlinearity": mod.nonlinearity} if type(mod) is nn.RNNCell else {}
        made = cls(mod.input_size, mod.hidden_size, bias=mod.bias, dtype=make().dtype, **arguments)
        made.training = mod.training
        made.bias_ih, made.bias_hh = ((b.detach() for b in (mod.bias_ih, mod.bias_hh))) if mod.bias else (None, None)
        made._packed_weight_ih = _packed(mod.weight_ih, made.bias_ih, make)
        made._packed_weight_hh = _packed(mod.weight_hh, made.bias_hh, make)
        return made

    def set_weight_bias(self, weight_bias_dict):
        """Other weights and biases, by their names."""
        self._packed_weight_ih = pack_weight_bias(weight_bias_dict["weight_ih"], weight_bias_dict["bias_ih"], self.weight_dtype)
        self._packed_weight_hh = pack_weight_bias(weight_bias_dict["weight_hh"], weight_bias_dict["bias_hh"], self.weight_dtype)

    def get_weight(self):
        """The weights by their names, quantized."""
        return {"weight_ih": self._packed_weight_ih.unpack()[0], "weight_hh": self._packed_weight_hh.unpack()[0]}

    def get_bias(self):
        """The biases by their names."""
        return {"bias_ih": self._packed_weight_ih.unpack()[1], "bias_hh": self._packed_weight_hh.unpack()[1]}

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        rest = dict(state_dict)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            if prefix + name in rest:
                setattr(self, name, rest.pop(prefix + name))
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(rest, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _checked(self, input: Tensor, hx: Optional[Tensor]) -> Tensor:
        self.check_forward_input(input)
        if hx is None:
            hx = cresset.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        self.check_forward_hidden(input, hx, "")
        return hx


class RNNCell(RNNCellBase):
    """nn.RNNCell with weights in int8 or float16."""

    _FLOAT_MODULE = nn.RNNCell
    __constants__ = ("input_size", "hidden_size", "bias", "nonlinearity")

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", dtype=cresset.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        hx = self._checked(input, hx)
        if self.nonlinearity == "tanh":
            return cresset.ops.quantized.quantized_rnn_tanh_cell_dynamic(input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)
        elif self.nonlinearity == "relu":
            return cresset.ops.quantized.quantized_rnn_relu_cell_dynamic(input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """nn.LSTMCell with weights in int8 or float16."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(self, *args, **kwargs):
        super().__init__(*args, num_chunks=4, **kwargs)

    def forward(self, input: Tensor, hx: Optional[tuple[Tensor, Tensor]] = None) -> tuple[Tensor, Tensor]:
        self.check_forward_input(input)
        if hx is None:
            zeros = cresset.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        self.check_forward_hidden(input, hx[0], "[0]")
        self.check_forward_hidden(input, hx[1], "[1]")
        return cresset.ops.quantized.quantized_lstm_cell_dynamic(
            input, [hx[0], hx[1]], self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
        )


class GRUCell(RNNCellBase):
    """nn.GRUCell with weights in int8 or float16."""

    _FLOAT_MODULE = nn.GRUCell

    def __init__(self, input_size, hidden_size, bias=True, dtype=cresset.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        hx = self._checked(input, hx)
        return cresset.ops.quantized.quantized_gru_cell_dynamic(input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)
