"""What PyTorch keeps under _refs: operators written in Python, with the meaning of those of the same name. Here they are the operators themselves.

Functions of `linalg`, `special`, `fft` and `nn.functional` stand in submodules of these names.
"""

import sys
import types

import cresset


class _Operators(types.ModuleType):
    """The functions of a module of the package, under another name."""

    def __init__(self, name, source, parts):
        super().__init__(name, f"The functions of cresset{source and '.' + source}.")
        self._source, self.__path__ = source, []
        sys.modules[name] = self
        for part, below in parts.items():
            setattr(self, part, _Operators(f"{name}.{part}", f"{source}.{part}".lstrip("."), below))

    def __getattr__(self, name):
        owner = cresset
        for step in self._source.split(".") if self._source else ():
            owner = getattr(owner, step)
        found = None if name.startswith("_") else getattr(owner, name, None)
        if not callable(found) or isinstance(found, (type, types.ModuleType)):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found


_Operators(__name__, "", {"linalg": {}, "special": {}, "fft": {}, "nn": {"functional": {}}})
