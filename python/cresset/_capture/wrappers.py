"""What PyTorch's compile() makes of its arguments for a backend: an object that is called with a graph and its example inputs. Libraries make them to
hand them on as backends."""

import cresset

from . import backends

__all__ = ["_TorchCompileInductorWrapper", "_TorchCompileWrapper"]


class _TorchCompileWrapper:
    """The backend of a name, or a function, with the keywords `mode` and `options` where they are given."""

    def __init__(self, backend, mode, options, dynamic):
        self.compiler_name = backend if isinstance(backend, str) else getattr(backend, "__name__", str(backend))
        self.compiler_fn = backends.lookup(backend) or backends.engine
        self.dynamic = dynamic
        self.kwargs = {name: value for name, value in (("mode", mode), ("options", options)) if value and mode != "default"}

    def _identity(self):
        return self.compiler_fn, sorted(self.kwargs.items(), key=lambda item: item[0]), self.dynamic

    def __eq__(self, other):
        return isinstance(other, _TorchCompileWrapper) and self._identity() == other._identity()

    __hash__ = object.__hash__

    def __call__(self, model_, inputs_):
        return self.compiler_fn(model_, inputs_, **self.kwargs)

    def reset(self):
        """Forget what the backend keeps, where it has a function for that."""
        if hasattr(self.compiler_fn, "reset"):
            self.compiler_fn.reset()


class _TorchCompileInductorWrapper(_TorchCompileWrapper):
    """Engines as a backend; modes change nothing, and options are those of compile()."""

    compiler_name = "inductor"

    def __init__(self, mode, options, dynamic, name=None):
        if mode is not None and mode not in cresset.compiler._MODES:
            raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(cresset.compiler._MODES)}")
        self.compiler_fn, self.dynamic, self.name = backends.engine, dynamic, name
        self.kwargs = cresset.compiler._options("inductor", options)

    def reset(self):
        """Engines keep nothing beside the compiled functions."""
