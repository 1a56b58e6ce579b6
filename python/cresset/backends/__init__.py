"""What the build computes with: one small module for each library or device. Settings of absent ones can be written and change nothing."""

import enum as _enum
import sys as _sys
from contextlib import contextmanager as _contextmanager
from importlib.machinery import ModuleSpec as _Spec
from importlib.util import module_from_spec as _module_of
from types import SimpleNamespace as _Namespace

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def _cpu_capability():
    """The best instruction set that kernels use: "AVX512", "AVX2" or "DEFAULT"."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        flags = []
    return "AVX512" if "avx512vl" in flags else "AVX2" if "avx2" in flags else "DEFAULT"


def _no():
    return False


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
    return module


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


cpu = _module("cpu", get_cpu_capability=_cpu_capability)
cuda = _module(
    "cuda", is_built=_no, matmul=_Namespace(allow_tf32=False),
    preferred_linalg_library=_preference("_LinalgBackend", default="Default", cusolver="Cusolver", magma="Magma"),
    preferred_blas_library=_preference("_BlasBackend", default="Cublas", cublas="Cublas", hipblas="Cublas", cublaslt="Cublaslt", hipblaslt="Cublaslt", ck="Ck"),
)  # fmt: skip
cudnn = _settings(
    _module("cudnn", is_available=_no, version=lambda: None, enabled=False, benchmark=False, deterministic=True, allow_tf32=False),
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
)  # fmt: skip
mkl = _module("mkl", is_available=_no)
mkldnn = _settings(_module("mkldnn", is_available=_no, enabled=False), enabled=False, deterministic=False, allow_tf32=True)
mps = _module("mps", is_available=_no, is_built=_no)
openmp = _module("openmp", is_available=_no)
opt_einsum = _module("opt_einsum", is_available=_no, enabled=False)
