"""What tests of NumPy's functions ask and use."""

import contextlib
import warnings

import numpy

from .._ndarray import delegate

arange, empty = delegate(numpy.arange), delegate(numpy.empty)

__all__ = ["HAS_REFCOUNT", "IS_WASM", "assert_warns", "suppress_warnings"]

HAS_REFCOUNT, IS_WASM = True, False


class suppress_warnings(warnings.catch_warnings):
    """A block in which `filter(category)` and `record(category)` keep warnings silent."""

    def __init__(self):
        super().__init__(record=True)

    def filter(self, category=Warning, message="", module=None):
        warnings.filterwarnings("ignore", message, category)

    def record(self, category=Warning, message="", module=None):
        warnings.filterwarnings("always", message, category)
        return self

    def __enter__(self):
        self.log = super().__enter__()
        return self


@contextlib.contextmanager
def _warns(warning_class):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not any(issubclass(w.category, warning_class) for w in caught):
        raise AssertionError(f"{warning_class.__name__} not triggered")


def assert_warns(warning_class, *args, **kwargs):
    """That a call, or the block, gives a warning of the class."""
    if not args:
        return _warns(warning_class)
    with _warns(warning_class):
        return args[0](*args[1:], **kwargs)


def _gen_alignment_data(dtype="float32", type="binary", max_size=24):
    """(output, operands, words) of arrays that begin at different places in memory: one operand for type="unary", two for "binary"."""
    operands = 1 if type == "unary" else 2
    for begin in range(3):
        for size in range(begin + 2, max(begin + 3, max_size)):
            given = [arange(size, dtype=dtype)[begin:] for _ in range(operands)]
            yield (empty(size, dtype=dtype)[begin:], *given, f"{operands + 1} arrays of {size - begin} from {begin}")
