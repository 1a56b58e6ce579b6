"""Gradients that travel in 8 bits, with one scale for a bucket or for each part of it."""

import cresset
from cresset import distributed as dist

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

_LEVELS = 255  # of uint8


def _quantized(rows):
    """(values, scales, zero points) of rows, each with the smallest range that holds its values and zero."""
    low = rows.amin(dim=1).clamp(max=0).float()
    high = rows.amax(dim=1).clamp(min=0).float()
    scale = ((high - low) / _LEVELS).clamp(min=cresset.finfo(cresset.float32).tiny)
    zero = (-low / scale).round().clamp(0, _LEVELS)
    values = ((rows.float() / scale[:, None]).round() + zero[:, None]).clamp(0, _LEVELS).to(cresset.uint8)
    return values, scale, zero


def _mean_of_quantized(group, rows):
    """The average over the group of rows that travel quantized."""
    values, scale, zero = _quantized(rows)
    facts = cresset.stack([scale, zero])
    size = dist.get_world_size(group)
    all_facts = [cresset.empty_like(facts) for _ in range(size)]
    dist.all_gather(all_facts, facts, group=group)
    all_values = [cresset.empty_like(values) for _ in range(size)]
    future = dist.all_gather(all_values, values, group=group, async_op=True).get_future()

    def mean(done):
        done.value()
        total = cresset.zeros_like(rows, dtype=cresset.float32)
        for theirs, (s, z) in zip(all_values, all_facts):
            total += (theirs.float() - z[:, None]) * s[:, None]
        return (total / size).to(rows.dtype)

    return future.then(mean)


def quantization_pertensor_hook(process_group, bucket):
    """The average of buckets in 8 bits with a scale each: gathered from all ranks, which pays for few ranks."""
    group = process_group if process_group is not None else dist.group.WORLD
    buffer = bucket.buffer()
    return _mean_of_quantized(group, buffer.view(1, -1)).then(lambda done: done.value().view_as(buffer))


def quantization_perchannel_hook(process_group, bucket, bucket_size=512):
    """The average of buckets in 8 bits with a scale for each `bucket_size` values."""
    group = process_group if process_group is not None else dist.group.WORLD
    buffer = bucket.buffer()
    missing = -buffer.numel() % bucket_size
    rows = cresset.nn.functional.pad(buffer, (0, missing)).view(-1, bucket_size)
    return _mean_of_quantized(group, rows).then(lambda done: done.value().reshape(-1)[: buffer.numel()])
