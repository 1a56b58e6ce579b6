"""What is compiled in place of the functions of nn.utils.rnn that pack and pad sequences."""

from typing import List, Optional, Tuple

import cresset
from cresset import Tensor
from cresset.nn.utils.rnn import PackedSequence

__all__ = ["pack_padded_sequence", "pad_packed_sequence", "pad_sequence"]


def _inverse(permutation: Tensor) -> Tensor:
    positions = cresset.arange(0, permutation.numel(), device=permutation.device)
    return cresset.empty_like(permutation).scatter_(0, permutation, positions)


def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    if lengths.device.type != "cpu":
        raise RuntimeError("pack_padded_sequence: lengths should be a 1D CPU int64 tensor.")
    lengths = lengths.to(cresset.int64)
    sorted_indices: Optional[Tensor] = None
    unsorted_indices: Optional[Tensor] = None
    if not enforce_sorted:
        lengths, order = cresset.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
        sorted_indices, unsorted_indices = order, _inverse(order)
    data, batch_sizes = cresset._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    data, batch_sizes, _, unsorted_indices = sequence
    longest = batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    padded, lengths = cresset._pad_packed_sequence(data, batch_sizes, batch_first, padding_value, longest)
    if unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted_indices)
        lengths = lengths.index_select(0, unsorted_indices.cpu())
    return padded, lengths


def pad_sequence(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    if padding_side != "left" and padding_side != "right":
        raise RuntimeError(f"pad_sequence: padding_side must be 'left' or 'right'; got {padding_side}")
    if len(sequences) == 0:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest = max([s.size(0) for s in sequences])
    rows: List[Tensor] = []
    for s in sequences:
        missing = longest - s.size(0)
        if missing > 0:
            filler = s.new_full([missing] + s.shape[1:], padding_value)
            s = cresset.cat([filler, s]) if padding_side == "left" else cresset.cat([s, filler])
        rows.append(s)
    return cresset.stack(rows, 0 if batch_first else 1)
