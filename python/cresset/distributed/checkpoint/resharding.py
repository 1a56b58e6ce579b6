"""Boxes of tensors and what two of them share."""

__all__ = []


def _shares(a, b):
    """Do two chunks have an element in common?"""
    ranges = zip(a.offsets, a.sizes, b.offsets, b.sizes)
    return all(max(ao, bo) < min(ao + an, bo + bn) for ao, an, bo, bn in ranges)


_check_shard_metadata_pair_overlap = _shares


def _shards_get_overlap_region_wrt_saved_tensor(saved_shard, current_shard):
    """(dimension, offset in the saved chunk, offset in the current one, length) of the part that both have, for each dimension."""
    found = []
    for dim, (so, sn, co, cn) in enumerate(zip(saved_shard.offsets, saved_shard.sizes, current_shard.offsets, current_shard.sizes)):
        start, end = max(so, co), min(so + sn, co + cn)
        found.append((dim, start - so, start - co, end - start))
    return found
