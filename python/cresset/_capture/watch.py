"""What operators do besides giving results, seen before they do it."""

import functools

import cresset
from cresset.utils._python_dispatch import TorchDispatchMode

from .errors import Unsupported

__all__ = ["Watch"]

_OF_CONTENTS = frozenset({"dynamic_output_shape", "data_dependent_output"})  # sizes of results, or what Python gets, depend on what is in tensors


@functools.lru_cache(maxsize=None)
def _facts(func):
    """(positions and names of arguments that are written, is it random, do contents decide?)."""
    arguments = func._schema.arguments
    written = tuple((i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)
    tags = {str(getattr(tag, "name", tag)) for tag in getattr(func, "tags", ())}
    return written, "nondeterministic_seeded" in tags, bool(tags & _OF_CONTENTS)


def _draws(func, args, kwargs):
    """Is an operator that may be random so with these arguments? Attention without dropout is not."""
    for i, a in enumerate(func._schema.arguments):
        if a.name == "dropout_p":
            return (args[i] if i < len(args) else kwargs.get(a.name, 0.0)) != 0.0
    return True


class Watch(TorchDispatchMode):
    """Ends a capture in front of an operator that is random or writes to memory from outside (`outside`: storages); says whether contents decided."""

    def __init__(self):
        super().__init__()
        self.outside = set()
        self.of_contents = False
        self.others = False  # operators that are not the library's own

    def add(self, tensor):
        """This tensor's memory is others' too."""
        self.outside.add(tensor.untyped_storage()._cdata)

    def _refuse_writes(self, written, func, args, kwargs):
        for position, name in written:
            target = args[position] if position < len(args) else kwargs.get(name)
            for one in target if isinstance(target, (list, tuple)) else (target,):
                if one is not None and one.untyped_storage()._cdata in self.outside:
                    raise Unsupported(f"{func._schema.name} writes to a tensor from outside")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        written, random, contents = _facts(func)
        if random and _draws(func, args, kwargs):
            raise Unsupported(f"{func._schema.name} takes random numbers")
        self._refuse_writes(written, func, args, kwargs)
        if func._schema.name == "aten::index":
            contents = any(i is not None and i.dtype in (cresset.bool, cresset.uint8) for i in args[1])
        self.of_contents = self.of_contents or contents
        self.others = self.others or not func._schema.name.startswith(("aten::", "prims::", "cresset::"))
        return func(*args, **kwargs)
