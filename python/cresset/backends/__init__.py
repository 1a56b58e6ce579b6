"""What the build computes with: one small module for each library or device. Settings of absent ones can be written and change nothing."""

import enum as _enum
import os as _os
import sys as _sys
from contextlib import contextmanager as _contextmanager
from importlib.machinery import ModuleSpec as _Spec
from importlib.util import module_from_spec as _module_of

from . import _cuda, _precision, _quantized
from ._precision import disable_global_flags, flags_frozen  # noqa: F401

__all__ = ["cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack"]


def _cpu_capability():
    """The best instruction set that kernels use: "AVX512", "AVX2" or "DEFAULT" (also on other processors than x86-64)."""
    if _os.uname().machine != "x86_64":  # under an emulator /proc/cpuinfo is that of the machine around
        return "DEFAULT"
    if lowered := {"baseline": "DEFAULT", "avx2": "AVX2"}.get(_os.environ.get("CRESSET_ISA", "")):
        return lowered
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        flags = []
    return "AVX512" if "avx512vl" in flags else "AVX2" if "avx2" in flags else "DEFAULT"


def _no():
    return False


def _yes():
    """True: what PyTorch has by this library (sparse products and solutions, tensors of the layout `_mkldnn`) is there, computed by Cresset's own kernels."""
    return True


def _module(name, **values):
    """A module that `import cresset.backends.NAME` finds."""
    module = _module_of(_Spec(f"{__name__}.{name}", None))
    module.__dict__.update(values)
    _sys.modules[module.__name__] = module
    return module


def _settings(module, **defaults):
    """Adds set_flags (answers what was set before) and flags (the settings within a block; what is not named is the default)."""

    def set_flags(**flags):
        before = {f"_{name}": getattr(module, name) for name in defaults}
        for name, value in flags.items():
            if name.removeprefix("_") not in defaults or not name.startswith("_"):
                raise TypeError(f"set_flags() got an unexpected keyword argument '{name}'")
            if value is not None:
                setattr(module, name[1:], value)
        return tuple(before.values())

    @_contextmanager
    def flags(**given):
        wrong = [name for name in given if name not in defaults]
        if wrong:
            raise TypeError(f"flags() got an unexpected keyword argument '{wrong[0]}'")
        before = {name: getattr(module, name) for name in defaults}
        module.__dict__.update(defaults | given)
        try:
            yield
        finally:
            module.__dict__.update(before)

    module.__dict__.update({**defaults, **module.__dict__}, set_flags=set_flags, flags=flags)
    module.__class__ = _precision.Settings
    return module


def _planned(set_flags):
    """set_flags of the planner of contractions, which is absent: einsum goes from left to right, so nothing else can be asked for."""

    def checked(_enabled=None, _strategy=None):
        for name, value in (("enabled", _enabled), ("strategy", _strategy)):
            if value:
                raise ValueError(f"opt_einsum is not available, so setting `{name}` to {value} will not be meaningful: einsum contracts from left to right.")
        return set_flags(_enabled=_enabled)

    return checked


def _preference(title, **known):
    """A function that sets and tells which library CUDA would use: `known` maps names to the members of an enumeration."""
    kind = _enum.Enum(title, list(dict.fromkeys(known.values())))
    chosen = [kind[known["default"]]]

    def prefer(backend=None):
        if isinstance(backend, str):
            if backend not in known:
                raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
            chosen[0] = kind[known[backend]]
        elif isinstance(backend, kind):
            chosen[0] = backend
        elif backend is not None:
            raise RuntimeError("Unknown input value type.")
        return chosen[0]

    return prefer


class _Verbose:
    """A context in which the library prints what it does: RuntimeError for a level, since the library is not part of this build."""

    def __init__(self, level=None, enable=None):
        self.level = enable if level is None else level

    def __enter__(self):
        if self.level:
            raise RuntimeError("backends.verbose: this library is not part of the build, so it has nothing to print.")
        return self

    def __exit__(self, *error):
        return False


def _no_mps(*args):
    """Raises RuntimeError: there is no MPS device."""
    raise RuntimeError("MPS is not available: it is not part of this build.")


_fastpath = [True]

cpu = _module("cpu", get_cpu_capability=_cpu_capability)
cuda = _module(
    "cuda", is_built=_no, matmul=_cuda.cuBLASModule(),
    preferred_linalg_library=_preference("_LinalgBackend", default="Default", cusolver="Cusolver", magma="Magma"),
    preferred_blas_library=_preference("_BlasBackend", default="Cublas", cublas="Cublas", hipblas="Cublas", cublaslt="Cublaslt", hipblaslt="Cublaslt", ck="Ck"),
)  # fmt: skip
cudnn = _settings(
    _module("cudnn", is_available=_no, is_acceptable=lambda tensor: False, version=lambda: None, enabled=True, benchmark=False, deterministic=False, allow_tf32=True),
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
)  # fmt: skip
for _name in _cuda.__all__:
    setattr(cuda, _name, getattr(_cuda, _name))
mkl = _module("mkl", is_available=_yes, VERBOSE_OFF=0, VERBOSE_ON=1, verbose=_Verbose)
mkldnn = _settings(_module("mkldnn", is_available=_yes, enabled=True), enabled=True, deterministic=False, allow_tf32=True)
mkldnn.verbose, mkldnn.VERBOSE_OFF, mkldnn.VERBOSE_ON, mkldnn.VERBOSE_ON_CREATION = _Verbose, 0, 1, 2
mps = _module("mps", is_available=_no, is_built=_no, is_macos_or_newer=lambda major, minor: False, is_macos13_or_newer=lambda minor=0: False,
              get_name=_no_mps, get_core_count=_no_mps)  # fmt: skip
mha = _module("mha", get_fastpath_enabled=lambda: _fastpath[0], set_fastpath_enabled=lambda value: _fastpath.__setitem__(0, value))
miopen = _settings(_module("miopen"), immediate=False)
nnpack = _settings(_module("nnpack", is_available=_no), enabled=False)
xnnpack = _module("xnnpack", enabled=False)
quantized = _module("quantized")
quantized.__class__ = _quantized.QuantizedModule
openmp = _module("openmp", is_available=_no)
opt_einsum = _settings(_module("opt_einsum", is_available=_no, enabled=False), enabled=False, strategy=None)
opt_einsum.set_flags = _planned(opt_einsum.set_flags)
kleidiai = _module("kleidiai", is_available=_no)
cusparselt = _module("cusparselt", is_available=_no, version=lambda: None, get_max_alg_id=lambda: None)
_precision.install(__name__, mkldnn, cudnn, cuda)
globals()["__allow_nonbracketed_mutation"] = _precision.allow_nonbracketed_mutation
