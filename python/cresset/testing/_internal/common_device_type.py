"""Tests that are written once and run on every device: instantiate_device_type_tests and its decorators, by PyTorch's names.

    class TestAdd(TestCase):
        @dtypes(cresset.float32, cresset.int64)
        def test_add(self, device, dtype): …

    instantiate_device_type_tests(TestAdd, globals())   # TestAddCPU.test_add_cpu_float32, TestAddMETA.…, TestAddPRIVATEUSE1.…

| variable (also with TORCH_ or PYTORCH_ for CRESSET_) | meaning |
|---|---|
| CRESSET_TEST_DEVICES | with ':' between them: Python files that set TEST_CLASS to a base class, libraries of backends, devices |
| CRESSET_TESTING_DEVICE_ONLY_FOR, …_EXCEPT_FOR | device types with commas between them |
| CRESSET_TEST_CAPABILITIES | tables for devices without a base class of their own: name=file.toml, with commas between them |
"""

import enum
import functools
import os
import re
import runpy
import unittest
from collections import namedtuple
from pathlib import Path

import cresset
from cresset import _C
from cresset.testing.capabilities import Capabilities
from cresset.testing.devices import load_backend, out_of_tree_devices
from cresset.testing._internal.common_utils import NATIVE_DEVICES, TestCase, _TestParametrizer, add_test, dtype_suffix, expand

PRIVATEUSE1 = "privateuse1"
_NO_VALUES = re.compile(r"\bmeta\b", re.IGNORECASE)


def _canonical(device_type):
    """'privateuse1' for the reserved device under whichever name, the name itself otherwise."""
    return PRIVATEUSE1 if device_type in ("privateuseone", PRIVATEUSE1, _C._get_privateuse1_backend_name()) else device_type


# --- a base class for each device ---------------------------------------------------------------------------------------------------


class DeviceTypeTestBase(TestCase):
    """What all tests of one device type have. A backend's own base sets device_type, and capabilities where it has limits.

    `_stop_test_suite` set by a test makes the rest of its class be skipped: a device that broke gives no more answers.
    """

    device_type = "generic_device_type"
    capabilities = Capabilities()
    _stop_test_suite = False

    @classmethod
    def get_primary_device(cls):
        """The device that tests get: the current one of its type."""
        return cls.device_type

    @classmethod
    def get_all_devices(cls):
        """All devices of the type, the primary one first."""
        return [cls.get_primary_device()]

    @classmethod
    def _init_and_get_primary_device(cls):
        return cls.get_primary_device()

    @classmethod
    def _dtypes_of(cls, test):
        by_device = getattr(test, "dtypes", None)
        if not by_device:
            return None
        return by_device.get(_canonical(cls.device_type), by_device.get(cls.device_type, by_device.get("all")))

    @classmethod
    def instantiate_test(cls, name, test, *, generic_cls=None):
        """Adds to the class the tests that a generic one stands for: one for each dtype and set of arguments."""
        for suffix, arguments, function in expand(test, generic_cls, cls):
            choices = cls._dtypes_of(function)
            if choices is None:
                cls._add(name, suffix, arguments, function)
                continue
            if "dtype" in arguments or "dtypes" in arguments:
                raise RuntimeError(f"test {name}: its dtypes come from a parametrizer and from @dtypes; one of the two is to be removed.")
            for dtype in choices:
                key = "dtypes" if isinstance(dtype, (tuple, list)) else "dtype"
                cls._add(name, suffix, {**arguments, key: dtype}, function)

    @classmethod
    def _add(cls, generic_name, suffix, arguments, function):
        name = "_".join(n for n in (generic_name, suffix, cls.device_type, dtype_suffix(arguments)) if n)

        @functools.wraps(function)
        def instantiated(self):
            self._run_generic(generic_name, function, arguments)

        instantiated.__dict__.pop("parametrize_fn", None)
        add_test(cls, name, instantiated)

    def _run_generic(self, name, function, arguments):
        if type(self)._stop_test_suite:
            self.skipTest("an earlier test broke the device")
        dtype, operator = arguments.get("dtype"), arguments.get("op")
        for subject in [name, f"{type(self).__name__}.{name}"] + ([operator.full_name] if hasattr(operator, "full_name") else []):
            reason = self.capabilities.reason_to_skip(subject, dtype) if subject != name or self.capabilities.only is None else None
            if reason:
                self.skipTest(reason)
        self._set_tolerances(function, dtype, getattr(operator, "full_name", name))
        device = self.get_all_devices() if hasattr(function, "num_required_devices") else self.get_primary_device()
        try:
            function(self, device, **arguments)
        except unittest.SkipTest:
            raise
        except RuntimeError as error:
            if not self._has_values(error):
                self.skipTest(f"needs values, which {self.device_type} tensors do not have")
            raise

    def _has_values(self, error):
        """Was the error one that says nothing about the test, because tensors of the device hold no values?"""
        return True

    def _set_tolerances(self, function, dtype, name):
        self.precision, self.rel_tol = type(self).precision, type(self).rel_tol
        table = self.capabilities.tolerances(name, dtype) if dtype is not None else None
        if table is not None:
            self.rel_tol, self.precision = table
        self.precision = max(self.precision, getattr(function, "precision_overrides", {}).get(dtype, 0.0))
        override = getattr(function, "tolerance_overrides", {}).get(dtype)
        if override is not None:
            self.precision, self.rel_tol = override.atol, override.rtol


class CPUTestBase(DeviceTypeTestBase):
    device_type = "cpu"


class MetaTestBase(DeviceTypeTestBase):
    """Shapes, dtypes and strides without values: a test runs up to the place where it needs a value, and counts as skipped there."""

    device_type = "meta"

    def _has_values(self, error):
        return not _NO_VALUES.search(str(error))


class _BackendTestBase(DeviceTypeTestBase):
    """A device from outside of the tree."""

    @classmethod
    def _module(cls):
        return getattr(cresset, cls.device_type, None)

    @classmethod
    def get_primary_device(cls):
        current = getattr(cls._module(), "current_device", None)
        return f"{cls.device_type}:{current() if current else 0}"

    @classmethod
    def get_all_devices(cls):
        primary = cls.get_primary_device()
        count = getattr(cls._module(), "device_count", None)
        names = [f"{cls.device_type}:{i}" for i in range(count() if count else 1)]
        return [primary, *(n for n in names if n != primary)]


class PrivateUse1TestBase(_BackendTestBase):
    """The device on the key PrivateUse1, whatever its name. Class and test names say PRIVATEUSE1, `device` the name."""

    device_type = PRIVATEUSE1

    @classmethod
    def setUpClass(cls):
        cls.device_type = _C._get_privateuse1_backend_name()
        super().setUpClass()


def _capabilities_of(device_type):
    for entry in _variable("TEST_CAPABILITIES").split(","):
        name, _, path = entry.partition("=")
        if path and name in (device_type, _canonical(device_type)):
            return Capabilities.load(path)
    return Capabilities()


def _variable(name, torch_prefix="TORCH_"):
    return os.environ.get(f"CRESSET_{name}") or os.environ.get(torch_prefix + name) or ""


def _names(which):
    """Device types in CRESSET_TESTING_DEVICE_<which>."""
    return [n.strip() for n in _variable(f"TESTING_DEVICE_{which}", "PYTORCH_").split(",") if n.strip()]


def get_device_type_test_bases():
    """A base class for the CPU, for meta, and for each backend that is loaded; classes of CRESSET_TEST_DEVICES replace those."""
    bases = {"cpu": CPUTestBase, "meta": MetaTestBase}
    given = []
    for path in filter(None, _variable("TEST_DEVICES").split(":")):
        if path.endswith(".py"):
            given.append(runpy.run_path(path, init_globals=globals())["TEST_CLASS"])
        else:
            load_backend(path)
    for name in _names("ONLY_FOR"):
        try:
            cresset.device(name)  # an installed backend loads when it is named
        except RuntimeError:
            continue
    for name in out_of_tree_devices():
        members = {"capabilities": _capabilities_of(name)}
        if _canonical(name) == PRIVATEUSE1:
            bases[PRIVATEUSE1] = type("PrivateUse1TestBase", (PrivateUse1TestBase,), members)
        else:
            bases[name] = type(f"{name.title()}TestBase", (_BackendTestBase,), {**members, "device_type": name})
    for base in given:
        bases[_canonical(base.device_type)] = base
    return list(bases.values())


def filter_desired_device_types(bases, except_for=None, only_for=None):
    """Those base classes whose device type is not excluded, and is chosen when there is a choice."""

    def among(base, names):
        return _canonical(base.device_type) in {_canonical(n) for n in names}

    if except_for and only_for and any(among(b, only_for) and among(b, except_for) for b in bases):
        raise RuntimeError(f"a device type is chosen or excluded, not both; only_for={only_for}, except_for={except_for}.")
    return [b for b in bases if not (except_for and among(b, except_for)) and (not only_for or among(b, only_for))]


def _listed(value):
    return [value] if isinstance(value, str) else value


def get_desired_device_type_test_bases(except_for=None, only_for=None, include_lazy=False, allow_mps=False, allow_xpu=False):
    bases = filter_desired_device_types(get_device_type_test_bases(), _listed(except_for), _listed(only_for))
    return filter_desired_device_types(bases, _names("EXCEPT_FOR"), _names("ONLY_FOR"))


def get_all_device_types():
    """['cpu', …]: every type on which tensors with values can be made."""
    return ["cpu", *out_of_tree_devices()]


def instantiate_device_type_tests(generic_test_class, scope, except_for=None, only_for=None, include_lazy=False, allow_mps=False,
                                  allow_xpu=False):
    """Puts a class for each device into `scope`, the caller's globals(), and takes the generic class away.

    Its tests get the device as first argument, and dtype and other arguments as their decorators say. except_for and only_for are device
    types; variables of the environment narrow the choice further.
    """
    del scope[generic_test_class.__name__]
    generic_tests = {name: test for name, test in vars(generic_test_class).items() if name.startswith("test") and callable(test)}
    for name in generic_tests:
        delattr(generic_test_class, name)
    for base in get_desired_device_type_test_bases(except_for, only_for):
        class_name = generic_test_class.__name__ + base.device_type.upper()
        made = type(class_name, (base, generic_test_class), {"__module__": generic_test_class.__module__, "__doc__": generic_test_class.__doc__})
        for name, test in generic_tests.items():
            made.instantiate_test(name, test, generic_cls=generic_test_class)
        scope[class_name] = made


# --- operators and modules as arguments ---------------------------------------------------------------------------------------------


class OpDTypes(enum.Enum):
    """Which dtypes `ops` makes tests for."""

    supported = 0
    unsupported = 1
    supported_backward = 2
    unsupported_backward = 3
    any_one = 4
    none = 5
    any_common_cpu_cuda_one = 6


_ANY_ONE = (cresset.float32, cresset.float64, cresset.complex64, cresset.complex128, cresset.float16, cresset.bfloat16, cresset.int64, cresset.int32,
            cresset.int16, cresset.int8, cresset.uint8, cresset.bool)


class ops(_TestParametrizer):
    """A test for each operator of a list and each of its dtypes: arguments `op` and `dtype`. dtypes is an OpDTypes or a list of dtypes that
    the operator's own are cut down to; allowed_dtypes cuts further."""

    def __init__(self, op_list, *, dtypes=OpDTypes.supported, allowed_dtypes=None, skip_if_dynamo=True):
        self.op_list, self.dtypes = list(op_list), dtypes
        self.allowed_dtypes = None if allowed_dtypes is None else set(allowed_dtypes)

    def _dtypes(self, op, device_type):
        choice = self.dtypes
        if choice is OpDTypes.none:
            return [None]
        if not isinstance(choice, OpDTypes):
            found = [d for d in choice if d in op.supported_dtypes(device_type)]
        elif choice in (OpDTypes.supported, OpDTypes.any_one, OpDTypes.any_common_cpu_cuda_one):
            found = op.supported_dtypes(device_type)
        elif choice is OpDTypes.supported_backward:
            found = op.supported_backward_dtypes(device_type)
        else:
            own = op.supported_dtypes(device_type) if choice is OpDTypes.unsupported else op.supported_backward_dtypes(device_type)
            found = set(_ANY_ONE) - set(own)
        found = [d for d in _ANY_ONE if d in found and (self.allowed_dtypes is None or d in self.allowed_dtypes)]
        return found[:1] if choice in (OpDTypes.any_one, OpDTypes.any_common_cpu_cuda_one) else found

    def _parametrize_test(self, test, generic_cls, device_cls):
        if device_cls is None:
            raise RuntimeError("The @ops decorator is only intended to be used in a device-specific context; use it with "
                               "instantiate_device_type_tests() instead of instantiate_parametrized_tests()")
        for op in self.op_list:
            for dtype in self._dtypes(op, device_cls.device_type):
                arguments = {"op": op} if dtype is None else {"dtype": dtype, "op": op}

                def decorators(_, op=op, dtype=dtype):
                    return op.get_decorators(generic_cls.__name__, test.__name__, device_cls.device_type, dtype, {})

                yield test, op.formatted_name, arguments, decorators


# --- decorators ----------------------------------------------------------------------------------------------------------------------


def _wrapped(fn, before):
    """fn, with before(self) run in front of each call."""

    @functools.wraps(fn)
    def guarded(self, *args, **kwargs):
        before(self)
        return fn(self, *args, **kwargs)

    return guarded


class skipIf:
    """Skips on a device type (None: on all) when dep is true; dep may be a function of the test, or a name of an attribute of it."""

    def __init__(self, dep, reason, device_type=None):
        self.dep, self.reason, self.device_type = dep, reason, device_type

    def __call__(self, fn):
        def before(test):
            if self.device_type is not None and _canonical(test.device_type) != _canonical(self.device_type):
                return
            dep = getattr(test, self.dep, True) if isinstance(self.dep, str) else self.dep
            if dep(test) if callable(dep) else dep:
                raise unittest.SkipTest(self.reason)

        return _wrapped(fn, before)


def _skip_if_on(device_type):
    def decorator(dep, reason):
        return skipIf(dep, reason, device_type=device_type)

    decorator.__doc__ = f"Skips on {device_type} when the condition holds."
    return decorator


skipCPUIf, skipMetaIf, skipPRIVATEUSE1If = map(_skip_if_on, ("cpu", "meta", PRIVATEUSE1))
skipCUDAIf, skipXPUIf, skipMPSIf, skipHPUIf, skipXLAIf, skipLazyIf = map(_skip_if_on, ("cuda", "xpu", "mps", "hpu", "xla", "lazy"))


def skipGPUIf(dep, reason):
    return skipIf(dep, reason, device_type="cuda")


def skipMeta(fn):
    return skipMetaIf(True, "test doesn't work with meta tensors")(fn)


def skipPRIVATEUSE1(fn):
    return skipPRIVATEUSE1If(True, "test doesn't work on privateuse1 backend")(fn)


def skipXLA(fn):
    return skipXLAIf(True, "Marked as skipped for XLA")(fn)


skipLazy = skipMPS = skipHPU = skipXPU = lambda fn: fn
skipCPUIfNoLapack = skipCPUIfNoFFT = skipCPUIfNoMkl = skipCPUIfNoMkldnn = lambda fn: fn
skipCUDAIfNoMagma = skipCUDAIfNoCusolver = skipCUDAIfNoMagmaAndNoCusolver = skipCUDAIfRocm = skipCUDAIfNoCudnn = lambda fn: fn
disablecuDNN = disableMkldnn = lambda fn: fn


class onlyOn:
    """Runs on one device type, or on those of a list."""

    def __init__(self, device_type):
        self.device_type = device_type

    def __call__(self, fn):
        wanted = {_canonical(d) for d in _listed(self.device_type)}

        def before(test):
            if _canonical(test.device_type) not in wanted:
                raise unittest.SkipTest(f"Only runs on {self.device_type}")

        return _wrapped(fn, before)


def onlyCPU(fn):
    return onlyOn("cpu")(fn)


def onlyCUDA(fn):
    return onlyOn("cuda")(fn)


def onlyMPS(fn):
    return onlyOn("mps")(fn)


def onlyXPU(fn):
    return onlyOn("xpu")(fn)


def onlyHPU(fn):
    return onlyOn("hpu")(fn)


def onlyMeta(fn):
    return onlyOn("meta")(fn)


def onlyPRIVATEUSE1(fn):
    return onlyOn(PRIVATEUSE1)(fn)


def onlyCUDAAndPRIVATEUSE1(fn):
    return onlyOn(["cuda", PRIVATEUSE1])(fn)


def onlyAccelerator(fn):
    """Runs on devices that are neither the CPU nor meta."""

    def before(test):
        if test.device_type in ("cpu", "meta"):
            raise unittest.SkipTest("onlyAccelerator: doesn't run on CPU or meta devices")

    return _wrapped(fn, before)


def onlyNativeDeviceTypes(fn):
    return onlyNativeDeviceTypesAnd([])(fn)


def onlyNativeDeviceTypesAnd(devices=None):
    """Runs on PyTorch's own device types, the reserved device, and those of the list."""

    def decorator(fn):
        def before(test):
            if _canonical(test.device_type) not in (*NATIVE_DEVICES, *map(_canonical, devices or [])):
                raise unittest.SkipTest(f"onlyNativeDeviceTypesAnd {devices} : doesn't run on {test.device_type}" if devices
                                        else f"onlyNativeDeviceTypes: doesn't run on {test.device_type}")

        return _wrapped(fn, before)

    return decorator


class deviceCountAtLeast:
    """Skips with fewer devices; the test gets the list of all of them."""

    def __init__(self, num_required_devices):
        self.num_required_devices = num_required_devices

    def __call__(self, fn):
        if hasattr(fn, "num_required_devices"):
            raise RuntimeError(f"deviceCountAtLeast redefinition for {fn.__name__}")

        def guarded(test, devices, *args, **kwargs):
            if len(devices) < self.num_required_devices:
                raise unittest.SkipTest(f"fewer than {self.num_required_devices} devices detected")
            return fn(test, devices, *args, **kwargs)

        guarded = functools.wraps(fn)(guarded)
        guarded.num_required_devices = self.num_required_devices
        return guarded


class dtypes:
    """A test for each dtype, or for each tuple of dtypes (argument `dtypes`); for one device type only with device_type."""

    def __init__(self, *args, device_type="all"):
        if len(args) == 1 and isinstance(args[0], (list, tuple)) and not all(isinstance(d, cresset.dtype) for d in args[0]):
            args = args[0]
        tuples = [isinstance(a, (list, tuple)) for a in args]
        if any(tuples) and not all(tuples):
            raise RuntimeError("When one dtype variant is a tuple or list, all dtype variants must be. Received non-list non-tuple dtype")
        self.args, self.device_type = args, device_type

    def __call__(self, fn):
        known = dict(getattr(fn, "dtypes", {}))
        if self.device_type in known:
            raise RuntimeError(f"dtypes redefinition for {self.device_type}")
        known[self.device_type] = self.args
        fn.dtypes = known
        return fn


def _dtypes_if(device_type):
    class DTypesIf(dtypes):
        def __init__(self, *args):
            super().__init__(*args, device_type=device_type)

    DTypesIf.__name__ = DTypesIf.__qualname__ = f"dtypesIf{device_type.upper()}"
    DTypesIf.__doc__ = f"`dtypes` for {device_type} in the place of those for all."
    return DTypesIf


dtypesIfCPU, dtypesIfCUDA, dtypesIfMPS, dtypesIfXPU, dtypesIfHPU, dtypesIfMETA, dtypesIfPRIVATEUSE1 = map(
    _dtypes_if, ("cpu", "cuda", "mps", "xpu", "hpu", "meta", PRIVATEUSE1))  # fmt: skip


class precisionOverride:
    """Absolute tolerances by dtype: `@precisionOverride({cresset.float16: 1e-2})`."""

    def __init__(self, d):
        if not isinstance(d, dict) or not all(isinstance(k, cresset.dtype) for k in d):
            raise TypeError("precisionOverride: a dictionary of dtypes was required")
        self.d = d

    def __call__(self, fn):
        fn.precision_overrides = self.d
        return fn


tol = namedtuple("tol", ["atol", "rtol"])


class toleranceOverride:
    """Both tolerances by dtype: `@toleranceOverride({cresset.float16: tol(atol=1e-3, rtol=1e-2)})`."""

    def __init__(self, d):
        if not isinstance(d, dict) or not all(isinstance(k, cresset.dtype) and isinstance(v, tol) for k, v in d.items()):
            raise TypeError("toleranceOverride: a dictionary from dtypes to tol(atol=…, rtol=…) was required")
        self.d = d

    def __call__(self, fn):
        fn.tolerance_overrides = self.d
        return fn


class expectedFailure:
    """The test must fail on a device type (None: on all), for one dtype or all."""

    def __init__(self, device_type, dtype=None):
        self.device_type, self.dtype = device_type, dtype

    def __call__(self, fn):
        @functools.wraps(fn)
        def guarded(test, *args, **kwargs):
            here = self.device_type is None or _canonical(test.device_type) == _canonical(self.device_type)
            if not here or (self.dtype is not None and kwargs.get("dtype") != self.dtype):
                return fn(test, *args, **kwargs)
            try:
                fn(test, *args, **kwargs)
            except unittest.SkipTest:
                raise
            except Exception:
                return None
            test.fail("expected test to fail, but it passed")

        return guarded


def expectedFailureCPU(fn):
    return expectedFailure("cpu")(fn)


def expectedFailureMeta(fn):
    return expectedFailure("meta")(fn)


def expectedFailurePRIVATEUSE1(fn):
    return expectedFailure(PRIVATEUSE1)(fn)


def expectedFailureCUDA(fn):
    return expectedFailure("cuda")(fn)


def expectedFailureXLA(fn):
    return expectedFailure("xla")(fn)


_UNITS = {"GB": 1024**3, "MB": 1024**2, "KB": 1024}


def largeTensorTest(size, device=None, inductor=False):
    """Skips unless so much memory is free: bytes, a text such as '12GB', or a function of the test that gives one."""
    if isinstance(size, str):
        if size[-2:] not in _UNITS:
            raise ValueError("size must end with GB, MB or KB")
        size = int(float(size[:-2]) * _UNITS[size[-2:]])

    def decorator(fn):
        def before(test):
            needed = size(test) if callable(size) else size
            free = _free_memory()
            if free is not None and needed > free:
                raise unittest.SkipTest(f"Insufficient memory: {needed} bytes were required; {free} are free")

        return _wrapped(fn, before)

    return decorator


def _free_memory():
    """Free memory of the machine in bytes, None where the system does not tell."""
    file = Path("/proc/meminfo")
    if not file.exists():
        return None
    lines = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    return int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else None

