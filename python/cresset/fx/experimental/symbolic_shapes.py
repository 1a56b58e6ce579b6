"""Errors about sizes that a program needs to know, and questions about sizes, numbers and bools that may be symbolic in PyTorch.

Sizes here are always numbers: `export` compares runs of several sizes instead. So each question has the answer that PyTorch gives for numbers.
"""

from ...utils._ordered_set import OrderedSet

__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode", "ShapeEnv"]


class ConstraintViolationError(RuntimeError):
    """A size is not in the range that was declared for it."""


class GuardOnDataDependentSymNode(RuntimeError):
    """Code needs the value of a tensor, which is not there while a program is recorded."""

    def __init__(self, cond, *args):
        super().__init__(cond, *args)
        self.cond = cond

    def __str__(self):
        return str(self.cond)


def _exactly(kind, name):
    """A function that gives its argument back, and AssertionError when it is not of this kind."""

    def same(a):
        if type(a) is not kind:
            raise AssertionError(f"Expected {kind.__name__}, got {a if name.startswith('guard_') else type(a)}")
        return a

    same.__name__ = same.__qualname__ = name
    same.__doc__ = f"A {kind.__name__}, as it is; AssertionError for anything else."
    return same


guard_int, guard_bool, guard_float = _exactly(int, "guard_int"), _exactly(bool, "guard_bool"), _exactly(float, "guard_float")
guard_or_false, guard_or_true, statically_known_true = (_exactly(bool, name) for name in ("or_false", "or_true", "statically_known_true"))
guard_size_oblivious = _exactly(bool, "size_oblivious")


def expect_true(a, skip=0):
    """A bool, as it is; AssertionError for anything else."""
    return guard_bool(a)


def guard_scalar(a):
    """A bool, int or float, as it is; AssertionError for anything else."""
    if not isinstance(a, (bool, int, float)):
        raise AssertionError(f"unrecognized scalar {a}")
    return a


def _concrete(kind, symbolic):
    def is_concrete(a):
        if not isinstance(a, kind):
            raise AssertionError(f"Expected {symbolic} or {kind.__name__}, got {type(a)}")
        return True

    is_concrete.__name__ = is_concrete.__qualname__ = f"is_concrete_{kind.__name__}"
    is_concrete.__doc__ = f"Is a {kind.__name__} no symbol? True; AssertionError for anything else."
    return is_concrete


is_concrete_int, is_concrete_bool, is_concrete_float = _concrete(int, "SymInt"), _concrete(bool, "SymBool"), _concrete(float, "SymFloat")


def has_static_value(a):
    """Is the value of a bool, int or float known? True; AssertionError for anything else."""
    if not isinstance(a, (bool, int, float)):
        raise AssertionError(f"Expected BoolLike/FloatLike/IntLike, got {type(a)}")
    return True


def is_symbolic(val):
    """Is a bool, int or float a symbol? False."""
    return False


has_free_symbols = is_symbolic


def is_nested_int(val):
    """Is a number the size of a ragged dimension of nested tensors?"""
    from cresset.nested._internal.nested_int import NestedInt

    return isinstance(val, NestedInt)


def free_symbols(val):
    """The symbols in a number, a tensor's sizes, or containers of them: none."""
    return OrderedSet()


free_unbacked_symbols = free_symbols


def sym_eq(x, y):
    """Are two numbers, or two tuples or lists of as many, equal? NotImplementedError for anything else."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return x == y
    raise NotImplementedError(f"sym_eq: two numbers, or two tuples, were required; given {type(x)} and {type(y)}")


def sym_and(x, *others):
    """The conjunction of all."""
    for other in others:
        x = x and other
    return x


def sym_or(x, *others):
    """The disjunction of all."""
    for other in others:
        x = x or other
    return x


class ShapeEnv:
    """Settings for sizes of fake tensors. Every size is a number, as with assume_static_by_default: no symbol is made and nothing is guarded, and operators whose results
    depend on values raise in fake modes with an environment, too.
    """

    frozen = False

    def __init__(
        self, *, should_record_events=None, tracked_fakes=None, allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True, assume_static_by_default=False,
        specialize_zero_one=True, duck_shape=None, co_fields=None, prefer_deferred_runtime_asserts_over_guards=False, trace_asserts=False,
    ):  # fmt: skip
        self.should_record_events, self.tracked_fakes = bool(should_record_events), tracked_fakes
        self.allow_scalar_outputs, self.allow_dynamic_output_shape_ops = allow_scalar_outputs, allow_dynamic_output_shape_ops
        self.assume_static_by_default, self.specialize_zero_one = assume_static_by_default, specialize_zero_one
        self.duck_shape = duck_shape is None or duck_shape
        self.guards, self.var_to_val = [], {}

    def format_guards(self, verbose=False):
        """The guards, one on a line: there are none."""
        return ""
