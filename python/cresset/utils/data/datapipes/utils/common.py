"""Open files that are closed when nobody has them, and checks of the functions that pipes are given."""

import functools
import importlib.util
import inspect
import os
import warnings

__all__ = ["StreamWrapper", "validate_input_col"]


class StreamWrapper:
    """A stream with all of its methods, which is closed when the wrapper goes."""

    def __init__(self, file_obj, parent_stream=None, name=None):
        self.file_obj, self.parent_stream, self.name, self.closed = file_obj, parent_stream, name, False

    def close(self, *args, **kwargs):
        """Close the stream."""
        self.closed = True
        self.file_obj.close(*args, **kwargs)

    def autoclose(self):
        """The stream, which was read, is closed."""
        self.close()

    def __getattr__(self, name):
        if name == "file_obj":  # before __init__, as pickle has it
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self):
        return sorted({*self.__dict__, *dir(type(self)), *dir(self.file_obj)})

    def __del__(self):
        if "file_obj" in self.__dict__ and not self.closed and hasattr(self.file_obj, "close"):
            self.close()

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __repr__(self):
        return f"StreamWrapper<{self.name if self.name is not None else self.file_obj!r}>"

    def __getstate__(self):
        return self.file_obj

    def __setstate__(self, file_obj):
        self.__init__(file_obj)


def _check_unpickable_fn(fn):
    """TypeError for what cannot be called; a warning of functions that no worker process can be sent."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    while isinstance(fn, functools.partial):
        fn = fn.func
    if importlib.util.find_spec("dill") is not None:
        return
    local = "<locals>" in getattr(fn, "__qualname__", "")
    kind = "Local" if local else "Lambda" if getattr(fn, "__name__", "") == "<lambda>" else None
    if kind:
        advice = "please use regular python function or functools.partial instead."
        warnings.warn(f"{kind} function is not supported by pickle, {advice}", stacklevel=_outside())


def _outside():
    """The level of the frame that called into the package."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frame, level = inspect.currentframe(), 0
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(folder):
        frame, level = frame.f_back, level + 1
    return level


def validate_input_col(fn, input_col):
    """ValueError when fn cannot be called with the columns: one, the several of a list or tuple, or for None the whole sample.

    Functions without a signature, and modules, are not checked.
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):
        return
    named = fn.func if isinstance(fn, functools.partial) else fn
    name = named.__name__ if hasattr(named, "__name__") else type(named).__name__
    wanted = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    by_keyword = sum(p.kind == p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if by_keyword:
        raise ValueError(f"The function {name} takes {by_keyword} non-default keyword-only parameters, which is not allowed.")
    if required > wanted:
        raise ValueError(f"The function {name} takes {required} positional parameters, but {wanted} are required.")
    if len(positional) < wanted and not any(p.kind == p.VAR_POSITIONAL for p in parameters):
        raise ValueError(f"The function {name} takes {len(positional)} parameters, but {wanted} are required.")
