"""Hooks that average a bucket over a group, as it is or in 16 bits; their state is the process group, or None for the default one."""

import cresset
from cresset import distributed as dist

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]


def _mean(group, buffer):
    """A future of the average of a buffer, in place."""
    buffer.div_(dist.get_world_size(group))
    future = dist.all_reduce(buffer, group=group, async_op=True).get_future()
    return future.then(lambda future: future.value()[0])


def _compressed(dtype, group, bucket):
    buffer = bucket.buffer()
    if buffer.layout != cresset.strided:  # entries travel as they are
        return _mean(group, buffer)
    return _mean(group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def allreduce_hook(process_group, bucket):
    """The average: what happens without a hook."""
    return _mean(process_group, bucket.buffer())


def fp16_compress_hook(process_group, bucket):
    """The average of values rounded to float16, half the bytes."""
    return _compressed(cresset.float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    """The average of values rounded to bfloat16."""
    return _compressed(cresset.bfloat16, process_group, bucket)


def _wrapper(hook, dtype):
    def wrapped(state, bucket):
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda future: buffer.copy_(future.value()))

    return wrapped


def fp16_compress_wrapper(hook):
    """`hook` on buffers rounded to float16."""
    return _wrapper(hook, cresset.float16)


def bf16_compress_wrapper(hook):
    """`hook` on buffers rounded to bfloat16."""
    return _wrapper(hook, cresset.bfloat16)
