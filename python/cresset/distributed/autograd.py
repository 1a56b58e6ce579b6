"""Backward passes across processes are not part of Cresset."""

__all__ = ["context", "is_available"]


def is_available():
    """False."""
    return False


class context:
    """What a backward pass across processes runs in. RuntimeError when it is entered."""

    def __enter__(self):
        raise RuntimeError("autograd.context: communication between processes is not part of Cresset.")

    def __exit__(self, *error):
        return None
