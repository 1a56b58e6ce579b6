"""Recurrent layers and cells."""

import math
import numbers
import warnings
from typing import List, Optional, Tuple

import cresset
from cresset import Tensor
from cresset.nn import init
from cresset.nn.parameter import Parameter
from cresset.nn.utils.rnn import PackedSequence

from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: `num_layers` layers, one or both directions, dropout between layers.

    The methods here have one tensor as state; those of an LSTM have two.
    """

    __constants__ = ["mode"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if proj_size and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        gates = _GATES[mode] * hidden_size
        output = proj_size or hidden_size
        directions = 2 if bidirectional else 1

        def register(name, *shape):
            self.register_parameter(name, Parameter(cresset.empty(shape, device=device, dtype=dtype)))

        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                register("weight_ih" + suffix, gates, input_size if layer == 0 else output * directions)
                register("weight_hh" + suffix, gates, output)
                if bias:
                    register("bias_ih" + suffix, gates)
                    register("bias_hh" + suffix, gates)
                if proj_size:
                    register("weight_hr" + suffix, proj_size, hidden_size)
        self.reset_parameters()

    def __getstate__(self):
        # The names of the weights, as PyTorch's layers have them, so that pickles of modules cross.
        return {**self.__dict__, "_flat_weights_names": self._flat_weights_names, "_all_weights": self._all_weights, "_flat_weights": self._flat_weights}

    def __setstate__(self, state):
        super().__setstate__({k: v for k, v in state.items() if k not in ("_flat_weights_names", "_all_weights", "_flat_weights", "_flat_weight_refs")})

    def _weight_kinds(self):
        kinds = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if self.bias else [])
        return kinds + (["weight_hr"] if self.proj_size else [])

    def _suffixes(self, layer):
        return [f"_l{layer}", f"_l{layer}_reverse"] if self.bidirectional else [f"_l{layer}"]

    def reset_parameters(self):
        """Draw every parameter from the uniform distribution on ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self):
        """Nothing to do: parameters need no common memory here."""

    @property
    def all_weights(self):
        """The parameters of each layer and direction as a list of lists."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _all_weights(self):
        """The names of the parameters of each layer and direction."""
        kinds = self._weight_kinds()
        return [[kind + suffix for kind in kinds] for layer in range(self.num_layers) for suffix in self._suffixes(layer)]

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        if not hasattr(self, "_given"):
            return [getattr(self, name) for name in self._flat_weights_names]
        return [getattr(self, name) if given is None else given for name, given in zip(self._flat_weights_names, self._given, strict=True)]

    @_flat_weights.setter
    def _flat_weights(self, weights):
        # Parameters take the places of those of the layer; it computes with tensors beside them, as those that are made of parameters.
        given = [None if isinstance(weight, Parameter) else weight for weight in weights]
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if isinstance(weight, Parameter):
                setattr(self, name, weight)
        self.__dict__.pop("_given", None)
        if any(weight is not None for weight in given):
            self.__dict__["_given"] = given

    def _state_shape(self, batch: int, width: int) -> Tuple[int, int, int]:
        return (self.num_layers * (2 if self.bidirectional else 1), batch, width)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Optional[Tensor]) -> Tuple[int, int, int]:
        """Shape of h for an input (padded with the batch where batch_first says, or packed with `batch_sizes`)."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self._state_shape(batch, self.proj_size if self.proj_size > 0 else self.hidden_size)

    def check_input(self, input: Tensor, batch_sizes: Optional[Tensor]):
        """ValueError unless `input` has the type of this layer, RuntimeError unless it has its rank and width. Autocast chooses types."""
        if not cresset.jit.is_scripting():
            own = self._flat_weights[0].dtype
            if input.dtype != own and not cresset._C._is_any_autocast_enabled():
                raise ValueError(
                    f"RNN input dtype ({input.dtype}) does not match weight dtype ({own}). Convert input: input.to({own}), or convert model: "
                    f"model.to({input.dtype})"
                )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: Tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ):
        """RuntimeError unless `hx` has the expected shape."""
        layers, batch, width = expected_hidden_size
        if list(hx.shape) != [layers, batch, width]:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Tensor, batch_sizes: Optional[Tensor]):
        """check_input, and the same for the state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Tensor, permutation: Optional[Tensor]) -> Tensor:
        """The state with its batch in the order `permutation`."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _check_rank(self, input: Tensor, states: List[Tensor]):
        rank = input.dim()
        if rank not in (2, 3):
            raise ValueError(f"{self._name}: Expected input to be 2D or 3D, got {rank}D {'tensor ' if self._name == 'RNN' else ''}instead")
        for state in states:
            if state.dim() != rank:
                two = len(states) == 2
                ranks = ", ".join([f"{s.dim()}-D" for s in states])
                raise RuntimeError(
                    f"For {'batched 3-D' if rank == 3 else 'unbatched 2-D'} input, hx {'and cx ' if two else ''}should also be "
                    f"{rank}-D but got {'(' + ranks + ')' if two else ranks} tensor{'s' if two else ''}"
                )

    def _zeros(self, input: Tensor, batch: int, width: int) -> Tensor:
        layers, batch, width = self._state_shape(batch, width)
        return cresset.zeros([layers, batch, width], dtype=input.dtype, device=input.device)

    def _forward_packed(self, packed: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            state = self._zeros(data, int(batch_sizes[0]), self.hidden_size)
        else:
            state = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, state, batch_sizes)
        output, state = self._packed(data, batch_sizes, state)
        whole = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return whole, self.permute_hidden(state, unsorted_indices)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        """(output, state) for input (L, N, in), (N, L, in) with batch_first, (L, in) without a batch, or a PackedSequence."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_rank(input, [hx] if hx is not None else [])
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            state = self._zeros(input, input.size(batch_dim), self.hidden_size)
        else:
            state = hx if batched else hx.unsqueeze(1)
        self.check_forward_args(input, state, None)
        output, state = self._padded(input, state)
        return (output, state) if batched else (output.squeeze(batch_dim), state.squeeze(1))

    def extra_repr(self):
        s = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            s += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s


class RNN(RNNBase):
    """h' = tanh (or relu) of two linear maps: input (L, N, in) -> (output (L, N, D H), h (D layers, N, H))."""

    _name = "RNN"

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=False,
        dropout=0.0,
        **kwargs,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = "RNN_" + nonlinearity.upper()
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, **kwargs)
        self.nonlinearity = nonlinearity

    def _padded(self, input: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            return cresset.rnn_tanh(
                input, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                self.batch_first,
            )  # fmt: skip
        return cresset.rnn_relu(
            input, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )  # fmt: skip

    def _packed(self, data: Tensor, batch_sizes: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            return cresset.rnn_tanh(
                data, batch_sizes, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
            )
        return cresset.rnn_relu(
            data, batch_sizes, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        )


class LSTM(RNNBase):
    """Long short-term memory: input (L, N, in), (h, c) -> (output (L, N, D H), (h, c))."""

    _name = "LSTM"

    def __init__(self, input_size, hidden_size, *args, **kwargs):
        super().__init__("LSTM", input_size, hidden_size, *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Optional[Tensor]) -> Tuple[int, int, int]:
        """Shape of c for an input; see get_expected_hidden_size."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return (layers, batch, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Tuple[Tensor, Tensor], batch_sizes: Optional[Tensor]):
        """check_input, and the same for h and c."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx: Tuple[Tensor, Tensor], permutation: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        """(h, c) with their batches in the order `permutation`."""
        return hx if permutation is None else (hx[0].index_select(1, permutation), hx[1].index_select(1, permutation))

    def _zero_state(self, input: Tensor, batch: int) -> Tuple[Tensor, Tensor]:
        h = self._zeros(input, batch, self.proj_size if self.proj_size > 0 else self.hidden_size)
        return h, self._zeros(input, batch, self.hidden_size)

    def _padded(self, input: Tensor, h: Tensor, c: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        return cresset.lstm(
            input, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )  # fmt: skip

    def _packed(self, data: Tensor, batch_sizes: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        output, h, c = cresset.lstm(
            data, batch_sizes, [state[0], state[1]], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        return output, (h, c)

    def _forward_packed(
        self, packed: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            state = self._zero_state(data, int(batch_sizes[0]))
        else:
            state = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, state, batch_sizes)
        output, state = self._packed(data, batch_sizes, state)
        whole = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return whole, self.permute_hidden(state, unsorted_indices)

    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        """As of RNNBase; the state is (h, c)."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_rank(input, [hx[0], hx[1]] if hx is not None else [])
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            batch = input.size(batch_dim)
            h, c = self._zero_state(input, batch)
        else:
            h, c = hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        self.check_forward_args(input, (h, c), None)
        output, h, c = self._padded(input, h, c)
        return (output, (h, c)) if batched else (output.squeeze(batch_dim), (h.squeeze(1), c.squeeze(1)))


class GRU(RNNBase):
    """Gated recurrent unit: input (L, N, in) -> (output (L, N, D H), h (D layers, N, H))."""

    _name = "GRU"

    def __init__(self, input_size, hidden_size, *args, **kwargs):
        super().__init__("GRU", input_size, hidden_size, *args, **kwargs)

    def _padded(self, input: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        return cresset.gru(
            input, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )  # fmt: skip

    def _packed(self, data: Tensor, batch_sizes: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        return cresset.gru(
            data, batch_sizes, state, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        )


class RNNCellBase(Module):
    """What the cells share: two linear maps into `num_chunks` gates."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        new = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(cresset.empty((num_chunks * hidden_size, input_size), **new))
        self.weight_hh = Parameter(cresset.empty((num_chunks * hidden_size, hidden_size), **new))
        if bias:
            self.bias_ih = Parameter(cresset.empty(num_chunks * hidden_size, **new))
            self.bias_hh = Parameter(cresset.empty(num_chunks * hidden_size, **new))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw every parameter from the uniform distribution on ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _state(self, input: Tensor, state: Optional[Tensor], is_batched: bool, name: str = "hidden", place: int = 0) -> Tensor:
        """The state for an input with a batch; zeros where there is none. It has a batch where the input that was given had one."""
        if state is None:
            return cresset.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        if state.dim() not in (1, 2):
            raise ValueError(f"{self._name}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")
        if is_batched and state.dim() == 1:
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{place} batch size {state.size(0)}: the state has no batch")
        if not is_batched and state.dim() == 2:
            raise RuntimeError(f"hidden{place} has inconsistent hidden_size: got {state.size(0)}, expected {self.hidden_size}: the state has a batch, the input none")
        return state if is_batched else state.unsqueeze(0)

    def _batch(self, input: Tensor) -> Tensor:
        """The input with a batch."""
        if input.dim() not in (1, 2):
            raise ValueError(f"{self._name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        return input if input.dim() == 2 else input.unsqueeze(0)

    def extra_repr(self):
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s


class RNNCell(RNNCellBase):
    """One step of an RNN: input (N, in), h (N, H) -> h."""

    _name = "RNNCell"

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        x = self._batch(input)
        h = self._state(x, hx, input.dim() == 2)
        if self.nonlinearity == "tanh":
            result = cresset.rnn_tanh_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        elif self.nonlinearity == "relu":
            result = cresset.rnn_relu_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return result if input.dim() == 2 else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: input (N, in), (h, c) -> (h, c)."""

    _name = "LSTMCell"

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        x = self._batch(input)
        if hx is None:
            h = c = self._state(x, None, False)
        else:
            h, c = self._state(x, hx[0], input.dim() == 2, "hx[0]"), self._state(x, hx[1], input.dim() == 2, "hx[1]", 1)
        h, c = cresset.lstm_cell(x, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU: input (N, in), h (N, H) -> h."""

    _name = "GRUCell"

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        x = self._batch(input)
        result = cresset.gru_cell(x, self._state(x, hx, input.dim() == 2), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if input.dim() == 2 else result.squeeze(0)
