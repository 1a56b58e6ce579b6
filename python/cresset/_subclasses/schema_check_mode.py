"""SchemaCheckMode: what operators do, against what their schemas say."""

from cresset._library.opcheck import checked_call
from cresset.utils._python_dispatch import TorchDispatchMode

__all__ = ["SchemaCheckMode"]


class SchemaCheckMode(TorchDispatchMode):
    """For a block: RuntimeError when an operator writes to an argument, or returns its memory, and its schema does not say so.

    `ops` has the names of the operators that ran, `mutated` (operator, argument) and `aliasing` (operator, argument, "output_i") what happened.
    """

    def __init__(self):
        super().__init__()
        self.reset_cache()

    def reset_cache(self):
        """Forget what happened so far."""
        self.ops, self.mutated, self.aliasing = [], [], []

    def display_ops(self):
        """Print the names of the operators that ran, joined by commas."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func._schema.name)
        return checked_call(func, args, kwargs or {}, self)
