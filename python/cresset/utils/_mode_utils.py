"""What tensor types and modes of libraries ask about modes."""

from ._python_dispatch import no_dispatch

__all__ = ["no_dispatch", "all_same_mode"]


def all_same_mode(modes):
    """Are all of them the same object? True for none."""
    return all(mode is modes[0] for mode in modes)
