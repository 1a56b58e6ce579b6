"""What is compiled for nn.LSTM, nn.GRU and nn.RNN where a script calls them with a PackedSequence."""

from typing import Optional, Tuple

import cresset
from cresset import Tensor, nn
from cresset.nn.utils.rnn import PackedSequence

from . import _module_methods

__all__ = ["alternatives_of"]


def _permuted(state: Tensor, permutation: Optional[Tensor]) -> Tensor:
    return state if permutation is None else state.index_select(1, permutation)


def _check_packed(data: Tensor, input_size: int):
    if data.dim() != 2:
        raise RuntimeError(f"input must have 2 dimensions, got {data.dim()}")
    if data.size(-1) != input_size:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {input_size}, got {data.size(-1)}")


def lstm(self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
    data, batch_sizes, sorted_indices, unsorted_indices = input
    _check_packed(data, self.input_size)
    batch = int(batch_sizes[0])
    width = self.proj_size if self.proj_size > 0 else self.hidden_size
    if hx is None:
        h, c = self._zero_state(data, batch, width), self._zero_state(data, batch, self.hidden_size)
    else:
        h, c = _permuted(hx[0], sorted_indices), _permuted(hx[1], sorted_indices)
    self._check_state(h, batch, width)
    self._check_state(c, batch, self.hidden_size)
    output, h, c = cresset.lstm(
        data, batch_sizes, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
    )
    packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
    return packed, (_permuted(h, unsorted_indices), _permuted(c, unsorted_indices))


def _state(self, data: Tensor, batch_sizes: Tensor, sorted_indices: Optional[Tensor], hx: Optional[Tensor]) -> Tensor:
    batch = int(batch_sizes[0])
    h = self._zero_state(data, batch, self.hidden_size) if hx is None else _permuted(hx, sorted_indices)
    self._check_state(h, batch, self.hidden_size)
    return h


def gru(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
    data, batch_sizes, sorted_indices, unsorted_indices = input
    _check_packed(data, self.input_size)
    h = self._packed_state(data, batch_sizes, sorted_indices, hx)
    output, h = cresset.gru(
        data, batch_sizes, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
    )
    return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), _permuted(h, unsorted_indices)


def rnn(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
    data, batch_sizes, sorted_indices, unsorted_indices = input
    _check_packed(data, self.input_size)
    h = self._packed_state(data, batch_sizes, sorted_indices, hx)
    if self.mode == "RNN_TANH":
        output, h = cresset.rnn_tanh(
            data, batch_sizes, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        )
    else:
        output, h = cresset.rnn_relu(
            data, batch_sizes, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        )
    return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), _permuted(h, unsorted_indices)


METHODS = {nn.GRU: {"_packed_state": _state}, nn.RNN: {"_packed_state": _state}}
_PACKED = {nn.LSTM: lstm, nn.GRU: gru, nn.RNN: rnn}


def alternatives_of(module):
    """{"forward": its texts for tensors and for packed sequences}, for layers that have not a forward of their own."""
    for cls, packed in _PACKED.items():
        if isinstance(module, cls) and type(module).forward is cls.forward:
            return {"forward": (("forward", _module_methods.METHODS[cls]["forward"]), ("forward__packed", packed))}
    return {}
