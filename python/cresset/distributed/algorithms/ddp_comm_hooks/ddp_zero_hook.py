"""Steps of a ZeroRedundancyOptimizer within backward: a bucket is stepped by who has its parameters, and sent to the others, while buckets
after it are still on their way.

Buckets are waited for in their order on the thread of backward, so all ranks begin their collectives in one order, with every backend.
"""

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


def _stepping(hook, ddp, zero, shard_buckets, interleaved):
    if not zero._overlap_with_ddp:
        raise ValueError("ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook properly")
    if not shard_buckets:
        zero._keep_buckets_whole([list(bucket.parameters) for bucket in ddp.reducer.buckets])
    # PyTorch's buckets are final after these passes, and make no steps before; programs count on it.
    warm_up = 3 if ddp.static_graph else 2
    passes, reduced, sent = 0, [], []

    def step(bucket, future):
        value = future.wait()
        value = value[0] if isinstance(value, (list, tuple)) else value
        parts = value.split([p.numel() for p in bucket.parameters()])
        sent.extend(zero._step_bucket(bucket.parameters(), [part.view(p.shape) for part, p in zip(parts, bucket.parameters())]))

    def stepping(state, bucket):
        nonlocal passes
        future = hook(state, bucket)
        passes += bucket.index() == 0
        if passes <= warm_up:
            return future
        reduced.append((bucket, future))
        while reduced and (bucket.is_last() or (interleaved and len(reduced) > 1)):
            step(*reduced.pop(0))
        if bucket.is_last():
            while sent:
                sent.pop().wait()
        return future

    return stepping


def hook_with_zero_step(hook, ddp, zero, shard_buckets=False):
    """`hook` for `ddp.register_comm_hook`, with steps of `zero`, a ZeroRedundancyOptimizer(overlap_with_ddp=True) of ddp's parameters.

    Steps begin when the last bucket's gradients are there: they run beside the collectives that are left. A bucket's parameters are one rank's,
    or shared out one by one with `shard_buckets`. The first two passes (three of a static graph) make no steps. ValueError for another optimizer.
    """
    return _stepping(hook, ddp, zero, shard_buckets, interleaved=False)


def hook_with_zero_step_interleaved(hook, ddp, zero, shard_buckets=False):
    """As hook_with_zero_step; a bucket is stepped when the next one begins its collective, within backward."""
    return _stepping(hook, ddp, zero, shard_buckets, interleaved=True)
