"""How this library works: `show()` and `parallel_info()`, in PyTorch's words."""

from . import _C, _build_info
from ._C import get_num_threads

__all__ = ["show", "parallel_info"]


def show():
    """A description of the build."""
    target = _C._jit_native_target() if hasattr(_C, "_jit_native_target") else "none: the graph part is not built"
    return f"Cresset {_build_info.version}\n  - built with {_build_info.cxx_compiler}\n  - native code of scripts: {target}\n"


def parallel_info():
    """A description of threads."""
    return f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\nATen parallel backend: native thread pool\n"
