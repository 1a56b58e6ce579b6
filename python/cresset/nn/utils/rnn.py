"""Padding of sequences of different lengths."""

import cresset

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack sequences (L_i, *) into (max L, N, *), or (N, max L, *) if `batch_first`, filled up with `padding_value`."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence: padding_side must be 'left' or 'right'; got {padding_side!r}")
    sequences = list(sequences.unbind(0) if isinstance(sequences, cresset.Tensor) else sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    rest = tuple(sequences[0].shape[1:])
    if any(tuple(s.shape[1:]) != rest for s in sequences):
        raise RuntimeError("pad_sequence: the sequences must agree in all dimensions but the first")
    rows = []
    for s in sequences:
        missing = longest - s.size(0)
        if missing:
            filler = s.new_full((missing, *rest), padding_value)
            s = cresset.cat([filler, s] if padding_side == "left" else [s, filler])
        rows.append(s)
    return cresset.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences that pad_sequence put together, given their lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(padded_sequences, lengths)]
