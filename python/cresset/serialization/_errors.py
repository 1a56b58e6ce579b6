"""What load raises for files that it does not read."""

import contextlib
import pickle
import struct

__all__ = ["FileError", "damaged", "damage"]


class FileError(pickle.UnpicklingError, RuntimeError):
    """A file that is damaged, ends too early or is of another kind. Programs may catch it as either of its two classes.

    pickle.UnpicklingError is thereby the one class of all files that load refuses: it is also what is raised for a sound file whose
    content `weights_only` does not allow. An empty file is an EOFError.
    """

    def __str__(self):
        return RuntimeError.__str__(self)


def damaged(why, kind="a checkpoint"):
    """The error of a file that is not what it should be."""
    return FileError(f"load: {kind} was required; {why}. The file is damaged or of another kind.")


# What reading and interpreting hostile bytes raises.
_CAUSES = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError, AssertionError, EOFError, NotImplementedError,
    struct.error,
)  # fmt: skip


@contextlib.contextmanager
def damage(part, kind="a checkpoint"):
    """Errors of interpreting what a file says become the one of damaged files."""
    try:
        yield
    except FileError:
        raise
    except _CAUSES as e:
        raise damaged(f"its {part} is damaged ({type(e).__name__}: {e})", kind) from e
