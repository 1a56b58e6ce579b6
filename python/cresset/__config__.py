"""How this library works: `show()` and `parallel_info()`, in PyTorch's words."""

from . import _build_info
from ._C import _jit_native_target, get_num_threads

__all__ = ["show", "parallel_info"]


def show():
    """A description of the build."""
    return f"Cresset {_build_info.version}\n  - built with {_build_info.cxx_compiler}\n  - native code of scripts: {_jit_native_target()}\n"


def parallel_info():
    """A description of threads."""
    return f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\nATen parallel backend: native thread pool\n"
