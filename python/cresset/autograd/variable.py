"""The old name of Tensor, and callbacks at the end of a backward pass."""

from cresset import _C

from . import Variable

__all__ = ["Variable", "VariableMeta"]

VariableMeta = type(Variable)


class _Engine:
    """The engine as `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback):
        """Call callback() when the backward pass that runs now is complete."""
        _C._queue_callback(callback)


Variable._execution_engine = _Engine()
