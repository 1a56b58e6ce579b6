"""What functions that operators take may not do."""

__all__ = ["UnsupportedAliasMutationException"]


class UnsupportedAliasMutationException(RuntimeError):
    """A function that an operator takes writes to what it gets, or gives it back."""
