"""TestCase with comparisons of tensors, parametrized tests, and small helpers, by PyTorch's names."""

import contextlib
import functools
import gc
import os
import random
import sys
import tempfile
import unittest
import warnings

import cresset
from cresset.testing import make_tensor  # noqa: F401  (PyTorch offers it here as well)
from cresset.testing._comparison import Options, compare
from cresset.testing.capabilities import dtype_name

SEED = 1234
IS_ARM64 = os.uname().machine == "aarch64"
IS_LINUX, IS_WINDOWS, IS_MACOS = sys.platform == "linux", sys.platform == "win32", sys.platform == "darwin"
IS_FBCODE = IS_SANDCASTLE = IS_CI = False
TEST_WITH_ROCM = TEST_WITH_CROSSREF = TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = TEST_CUDA = TEST_MPS = TEST_XPU = False
TEST_WITH_SLOW = os.environ.get("PYTORCH_TEST_WITH_SLOW", "0") == "1"
NATIVE_DEVICES = ("cpu", "cuda", "xpu", "meta", "mps", "mtia", "privateuseone", "privateuse1")
TEST_PRIVATEUSE1_DEVICE_TYPE = "privateuse1"


def _importable(name):
    try:
        return __import__(name) is not None
    except ImportError:
        return False


TEST_NUMPY, TEST_SCIPY = _importable("numpy"), _importable("scipy")


def set_rng_seed(seed=None):
    """Seeds Cresset, Python and NumPy."""
    seed = SEED if seed is None else seed
    cresset.manual_seed(seed)
    random.seed(seed)
    if TEST_NUMPY:
        import numpy

        numpy.random.seed(seed)


@contextlib.contextmanager
def disable_gc():
    """Python's garbage collector does not run in the block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def freeze_rng_state(*args, **kwargs):
    """The state of the random numbers is after the block what it was before."""
    state = cresset.get_rng_state()
    try:
        yield
    finally:
        cresset.set_rng_state(state)


@contextlib.contextmanager
def set_default_dtype(dtype):
    """Another default dtype for a block."""
    before = cresset.get_default_dtype()
    cresset.set_default_dtype(dtype)
    try:
        yield
    finally:
        cresset.set_default_dtype(before)


try:
    from expecttest import TestCase as _PlainCase  # with assertExpectedInline, for those who have the package
except ImportError:
    _PlainCase = unittest.TestCase


class TestCase(_PlainCase):
    """unittest.TestCase whose assertEqual knows tensors. Each test starts with the same seed.

    `precision` and `rel_tol` are the least tolerances of its comparisons; device-generic tests set them for a dtype.
    """

    precision = 0.0
    rel_tol = 0.0
    _default_dtype_check_enabled = False

    def setUp(self):
        super().setUp()
        set_rng_seed(SEED)

    def _relaxed(self, actual, expected):
        """Objects that are not numbers or tensors: unittest's own comparison, its text."""
        if isinstance(actual, (set, frozenset)) and isinstance(expected, (set, frozenset)):
            what, check = "Set comparison failed: ", super().assertSetEqual
        elif isinstance(actual, str) and isinstance(expected, str):
            what, check = "String comparison failed: ", super().assertEqual
        else:
            if actual == expected:
                return None
            return f"Object comparison failed: {actual!r} != {expected!r}"
        try:
            check(actual, expected)
        except AssertionError as error:
            return what + str(error)
        return None

    def assertEqual(self, x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=True, exact_device=False, exact_layout=False,
                    exact_stride=False, exact_is_coalesced=False):
        """x and y are equal, tensors within the tolerances of their dtype; a number may stand for a tensor of one element, a list for a
        tensor. msg is appended to the generated text, or is a function of it."""
        options = Options(rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=exact_device, check_dtype=exact_dtype, check_layout=exact_layout,
                          check_stride=exact_stride, relaxed=self._relaxed, least_rtol=self.rel_tol, least_atol=self.precision)
        numbers = [isinstance(v, (int, float, complex)) for v in (x, y)]
        options.check_dtype = exact_dtype and not all(numbers)
        problem = compare(_relax(x), _relax(y), options)
        if problem is not None:
            raise self.failureException(msg(problem) if callable(msg) else f"{problem}\n{msg}" if msg else problem)

    def assertNotEqual(self, x, y, msg=None, *, atol=None, rtol=None, **kwargs):
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **kwargs)

    def assertEqualIgnoreType(self, *args, **kwargs):
        return self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualTypeString(self, x, y):
        """The same device, dtype and class."""
        self.assertEqual((x.device, x.dtype, type(x)), (y.device, y.dtype, type(y)))

    def assertEqualBroadcasting(self, x, y, *args, **kwargs):
        """x equals y broadcast to it; y may be a number."""
        y = cresset.as_tensor(y, dtype=x.dtype, device=x.device) if not isinstance(y, cresset.Tensor) else y
        return self.assertEqual(x, y.broadcast_to(x.shape), *args, **kwargs)

    def assertObjectIn(self, obj, iterable):
        if not any(obj is other for other in iterable):
            raise AssertionError("object not found in iterable")

    @contextlib.contextmanager
    def assertNotWarn(self, msg=""):
        """No warning in the block."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
        self.assertTrue(not seen, msg or f"warnings: {[str(w.message) for w in seen]}")

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category, regex=""):
        """At least one warning of the category whose text matches."""
        with self.assertWarnsRegex(category, regex):
            yield


def _relax(value):
    """Generators and dictionary views as lists, so that they compare element by element."""
    return list(value) if isinstance(value, (type({}.keys()), type({}.values()), range)) else value


def run_tests(argv=None):
    """unittest's main for the module that calls it: `if __name__ == "__main__": run_tests()`."""
    unittest.main(argv=argv or sys.argv)


# --- parametrized tests ---------------------------------------------------------------------------------------------------------


class subtest:
    """One value (or tuple of values) of parametrize with a name and decorators of its own."""

    __slots__ = ("arg_values", "name", "decorators")

    def __init__(self, arg_values, name=None, decorators=None):
        self.arg_values, self.name, self.decorators = arg_values, name, decorators or []


class _TestParametrizer:
    """A decorator that makes several tests of one.

    `_parametrize_test(test, generic_cls, device_cls)` yields (test, name suffix, arguments, decorator function) for each; the decorator
    function takes the arguments and returns decorators.
    """

    def _parametrize_test(self, test, generic_cls, device_cls):
        raise NotImplementedError

    def __call__(self, fn):
        inner = getattr(fn, "parametrize_fn", None)
        fn.parametrize_fn = self._parametrize_test if inner is None else functools.partial(_compose, self._parametrize_test, inner)
        return fn


def _compose(outer, inner, test, generic_cls, device_cls):
    """The product of two parametrizers: `outer` is the decorator further up."""
    for made, inner_name, inner_kwargs, inner_decorators in inner(test, generic_cls, device_cls):
        for final, outer_name, outer_kwargs, outer_decorators in outer(made, generic_cls, device_cls):
            both = sorted(set(inner_kwargs) & set(outer_kwargs))
            if both:
                raise RuntimeError(f"test {test.__name__}: each argument is parametrized once; {', '.join(both)} twice.")

            def decorators(kwargs, first=inner_decorators, second=outer_decorators):
                return [*first(kwargs), *second(kwargs)]

            yield final, "_".join(n for n in (outer_name, inner_name) if n), {**outer_kwargs, **inner_kwargs}, decorators


class parametrize(_TestParametrizer):
    """A test for each value: `@parametrize("x", [1, 2])`, `@parametrize("x,y", [(1, 2), subtest((3, 4), name="big")])`.

    Names end with argument and value, `test_f_x_1`; name_fn makes other suffixes of the values.
    """

    def __init__(self, arg_str, arg_values, name_fn=None):
        self.arg_names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.arg_values, self.name_fn = arg_values, name_fn

    def _name(self, values, index):
        if self.name_fn is not None:
            return self.name_fn(*values)
        return "_".join(_value_name(name, value, index) for name, value in zip(self.arg_names, values))

    def _parametrize_test(self, test, generic_cls, device_cls):
        if not self.arg_names:  # the values are for their decorators and names only
            self.arg_values = [v if isinstance(v, subtest) else subtest(v) for v in self.arg_values]
        made = 0
        for index, given in enumerate(self.arg_values):
            made += 1
            item = given if isinstance(given, subtest) else subtest(given)
            values = item.arg_values if len(self.arg_names) > 1 else (item.arg_values,) * len(self.arg_names)
            if len(values) != len(self.arg_names):
                raise RuntimeError(f"Expected # values == # arg names, but got: {len(values)} values and {len(self.arg_names)} names for test '{test.__name__}'")
            name = item.name if item.name is not None else self._name(values, index)
            yield test, name, dict(zip(self.arg_names, values)), lambda _, item=item: list(item.decorators)
        if not made:
            raise ValueError(f"{test}: An empty arg_values was passed to @parametrize. Note that this may result from reuse of a generator.")


def _value_name(name, value, index):
    if isinstance(value, cresset.dtype):
        return dtype_name(value)
    if isinstance(value, cresset.device):
        return str(value).replace(":", "_")
    if type(value) in (bool, int, float, str):
        return f"{name}_{str(value).replace('.', '_')}"
    if hasattr(value, "formatted_name"):
        return value.formatted_name
    return f"{name}{index}"


class reparametrize(_TestParametrizer):
    """Another parametrizer's tests, each adapted: adapter_fn(test, suffix, arguments, decorators) yields the same four."""

    def __init__(self, parametrizer, adapter_fn):
        self.parametrizer, self.adapter_fn = parametrizer, adapter_fn

    def _parametrize_test(self, test, generic_cls, device_cls):
        for made in self.parametrizer._parametrize_test(test, generic_cls, device_cls):
            yield from self.adapter_fn(*made)


class decorateIf(_TestParametrizer):
    """A decorator for those parametrized tests whose arguments satisfy predicate_fn(arguments)."""

    def __init__(self, decorator, predicate_fn):
        self.decorator, self.predicate_fn = decorator, predicate_fn

    def _parametrize_test(self, test, generic_cls, device_cls):
        yield test, None, {}, lambda kwargs: [self.decorator] if self.predicate_fn(kwargs) else []


def dtype_suffix(arguments):
    """'float32' of a test's arguments dtype or dtypes, '' without."""
    if "dtype" in arguments:
        return dtype_name(arguments["dtype"])
    return "_".join(map(dtype_name, arguments.get("dtypes", ())))


def expand(test, generic_cls, device_cls=None):
    """(suffix, arguments, function) of all tests that a parametrized function stands for; of itself when it is not."""
    make = getattr(test, "parametrize_fn", None)
    made = make(test, generic_cls, device_cls) if make else [(test, "", {}, lambda _: [])]
    for function, suffix, arguments, decorators in made:
        for decorator in decorators(arguments):
            function = decorator(function)
        yield suffix, arguments, function


def instantiate_parametrized_tests(generic_cls):
    """Replaces the parametrized tests of a class by one test for each set of arguments. Returns the class."""
    for name, test in list(vars(generic_cls).items()):
        if not name.startswith("test") or not hasattr(test, "parametrize_fn"):
            continue
        delattr(generic_cls, name)
        for suffix, arguments, function in expand(test, generic_cls):

            def instantiated(self, _function=function, _arguments=arguments):
                return _function(self, **_arguments)

            add_test(generic_cls, f"{name}_{suffix}" if suffix else name, functools.wraps(test)(instantiated))
    return generic_cls


def add_test(cls, name, function):
    """A method of a test class under a name that must be free."""
    if name in vars(cls):
        raise RuntimeError(f"Redefinition of test {name}")
    function.__name__ = name
    function.__qualname__ = f"{cls.__qualname__}.{name}"
    function.__dict__.pop("__wrapped__", None)  # test runners look at the signature of what stands behind it
    setattr(cls, name, function)


# --- decorators that do nothing here, or little -----------------------------------------------------------------------------------


def _unchanged(*args, **kwargs):
    """Takes the place of a decorator for parts that Cresset does not have; with and without arguments."""
    if len(args) == 1 and not kwargs and (callable(args[0]) or isinstance(args[0], type)):
        return args[0]
    return lambda fn: fn


def _never(msg="", *, condition=None):
    return lambda fn: fn


skipIfTorchDynamo = xfailIfTorchDynamo = skipIfTorchInductor = _never
skipIfCrossRef = skipIfRocm = skipIfMPS = skipIfXpu = skipIfHpu = skipIfWindows = skipIfRocmVersionLessThan = _unchanged
markDynamoStrictTest = unMarkDynamoStrictTest = skipIfLegacyJitExecutor = serialTest = wrapDeterministicFlagAPITest = _unchanged
skipIfNoLapack = suppress_warnings = skipIfSlowGradcheckEnv = _unchanged
skipIfNoSciPy = unittest.skipIf(not TEST_SCIPY, "test require SciPy, but SciPy not found")
gradcheck, gradgradcheck = cresset.autograd.gradcheck, cresset.autograd.gradgradcheck


def slowTest(fn):
    """Runs only with PYTORCH_TEST_WITH_SLOW=1."""
    return unittest.skipUnless(TEST_WITH_SLOW, "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test")(fn)


def slowTestIf(condition):
    return slowTest if condition else _unchanged


def skip_but_pass_in_sandcastle_if(condition, reason):
    return unittest.skipIf(condition, reason)


def raise_on_run_directly(file_to_call):
    raise RuntimeError(f"This test file is not meant to be run directly, use:\n\n\tpython {file_to_call} TESTNAME\n\ninstead.")


@contextlib.contextmanager
def TemporaryFileName(*args, **kwargs):
    """The name of a file that is gone after the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "file")


@contextlib.contextmanager
def TemporaryDirectoryName(suffix=None):
    with tempfile.TemporaryDirectory(suffix=suffix) as folder:
        yield folder


def noncontiguous_like(t):
    """A tensor with the same values and a gap between neighbours; a contiguous one when it has fewer than two elements."""
    if not t.is_contiguous():
        return t
    wide = cresset.repeat_interleave(t.detach().unsqueeze(-1), 2, dim=-1)
    wide[..., 1] = 0 if t.dtype in (cresset.bool,) or not t.is_floating_point() and not t.is_complex() else float("nan")
    return wide[..., 0].requires_grad_(t.requires_grad)


def is_iterable_of_tensors(iterable, include_empty=False):
    """Is it a list, tuple or other iterable (not a tensor) that holds tensors only?"""
    if isinstance(iterable, cresset.Tensor):
        return False
    try:
        items = list(iterable)
    except TypeError:
        return False
    return (bool(items) or include_empty) and all(isinstance(t, cresset.Tensor) for t in items)


def first_sample(self, samples):
    """The first sample; skips the test when there is none."""
    for sample in samples:
        return sample
    raise unittest.SkipTest("Skipped! Need at least 1 sample input")
