"""Sequences of different lengths: padded into one tensor, or packed step after step without padding."""

from typing import List, NamedTuple, Optional, Tuple

import cresset
from cresset import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence",
    "pack_sequence", "unpack_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):  # noqa: N801  (the name under which saved sequences know their base)
    data: cresset.Tensor
    batch_sizes: cresset.Tensor
    sorted_indices: cresset.Tensor | None
    unsorted_indices: cresset.Tensor | None


def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    """The permutation that undoes `permutation`; None stays None."""
    if permutation is None:
        return None
    output = cresset.empty_like(permutation, memory_format=cresset.contiguous_format)
    return output.scatter_(0, permutation, cresset.arange(0, permutation.numel(), device=permutation.device))


class PackedSequence(PackedSequence_):
    """All steps of a batch of sequences in one tensor, without padding; made by pack_padded_sequence.

    `batch_sizes[t]` sequences take part in step t (int64 on the CPU). `sorted_indices` says which sequence became which,
    longest first; `unsorted_indices` undoes it.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # one argument: (data, batch_sizes)
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
                "instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with_data(self, data):
        if data is self.data:
            return self
        indices = (None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self):
        return self._with_data(self.data.pin_memory())

    def to(self, *args, **kwargs):
        """The data converted as Tensor.to does; sizes stay on the CPU, indices follow the device."""
        return self._with_data(self.data.to(*args, **kwargs))

    def cpu(self, *args, **kwargs):
        return self._with_data(self.data.cpu(*args, **kwargs))

    def cuda(self, *args, **kwargs):
        return self._with_data(self.data.cuda(*args, **kwargs))

    def double(self):
        return self.to(dtype=cresset.double)

    def float(self):
        return self.to(dtype=cresset.float)

    def half(self):
        return self.to(dtype=cresset.half)

    def long(self):
        return self.to(dtype=cresset.long)

    def int(self):
        return self.to(dtype=cresset.int)

    def short(self):
        return self.to(dtype=cresset.short)

    def char(self):
        return self.to(dtype=cresset.int8)

    def byte(self):
        return self.to(dtype=cresset.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack padded sequences (L, N, *), or (N, L, *) when `batch_first`, of the given `lengths` (list or CPU tensor).

    With `enforce_sorted` the lengths must not increase; otherwise the sequences are sorted and the order is kept beside.
    """
    if not isinstance(lengths, cresset.Tensor):
        lengths = cresset.as_tensor(lengths, dtype=cresset.int64, device="cpu")
    elif lengths.device.type != "cpu":
        raise RuntimeError("pack_padded_sequence: lengths should be a 1D CPU int64 tensor.")
    else:
        lengths = lengths.to(cresset.int64)
    sorted_indices: Optional[Tensor] = None
    if not enforce_sorted:
        lengths, order = cresset.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
        sorted_indices = order
    data, batch_sizes = cresset._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, invert_permutation(sorted_indices))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    """(padded sequences (L, N, *) or (N, L, *), lengths): the inverse of pack_padded_sequence.

    `total_length` is the length to pad to; ValueError when it is less than the longest sequence.
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    padded, lengths = cresset._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, longest)
    order = sequence.unsorted_indices
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths.index_select(0, order.cpu())
    return padded, lengths


def pad_sequence(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Stack sequences (L_i, *) into (max L, N, *), or (N, max L, *) if `batch_first`, filled up with `padding_value`."""
    if padding_side != "left" and padding_side != "right":
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not isinstance(sequences, list):
        sequences = _listed(sequences)
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    if not cresset.jit.is_scripting():
        _check_tensors(sequences)
    longest = max([s.size(0) for s in sequences])
    first = [len(sequences), longest] if batch_first else [longest, len(sequences)]
    out = sequences[0].new_full(first + list(sequences[0].shape[1:]), padding_value)
    for i, s in enumerate(sequences):
        start = longest - s.size(0) if padding_side == "left" else 0
        out.select(0 if batch_first else 1, i).narrow(0, start, s.size(0)).copy_(s)
    return out


def _listed(sequences):
    if isinstance(sequences, cresset.Tensor):
        return list(sequences.unbind(0))
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    return list(sequences)


def _check_tensors(sequences):
    for i, s in enumerate(sequences):
        if not isinstance(s, cresset.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(s).__name__}")


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences that pad_sequence put together, given their lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack sequences (L_i, *); see pack_padded_sequence."""
    lengths = cresset.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences that pack_sequence packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
