"""Branches as a function."""

from cresset import cond

__all__ = ["cond"]
