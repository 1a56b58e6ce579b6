"""Loops as a function."""

from cresset import while_loop

__all__ = ["while_loop"]
