"""Where PyTorch keeps the interpreters of the levels of `torch.func`. There are none here: one tape serves all levels of derivatives."""

from cresset._functorch_c import RandomnessType, TransformType  # noqa: F401

__all__ = ["retrieve_all_functorch_interpreters", "retrieve_current_functorch_interpreter"]


def retrieve_current_functorch_interpreter():
    """Raises AssertionError, as outside of all transforms."""
    raise AssertionError("interpreter must not be None")


def retrieve_all_functorch_interpreters():
    """An empty list."""
    return []
