"""Errors with PyTorch's words and something to add: the hint is a note behind them, so programs that compare messages find the ones they know."""

__all__ = ["with_hint"]


def with_hint(error, hint):
    """The error, with a note unless `hint` is empty."""
    if hint:
        error.add_note(hint)
    return error
