"""The question of functions that are compiled to scripts as well: `cresset.jit` shows it, and is not loaded for it."""

__all__ = ["is_scripting"]


def is_scripting():
    """True inside of scripts, False in Python."""
    return False


is_scripting.__module__ = "cresset.jit"
