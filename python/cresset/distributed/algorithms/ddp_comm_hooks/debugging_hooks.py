"""A hook for measurements."""

from cresset.futures import Future

__all__ = ["noop_hook"]


def noop_hook(_, bucket):
    """The bucket as it is: what training costs without communication. Its results are wrong."""
    future = Future()
    future.set_result(bucket.buffer())
    return future
