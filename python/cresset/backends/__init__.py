"""What the build computes with: one small namespace for each library or device."""

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


cpu = _Namespace(get_cpu_capability=_cpu_capability)
cuda = _Namespace(is_built=_no, matmul=_Namespace(allow_tf32=False))
cudnn = _Namespace(is_available=_no, version=lambda: None, enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
mkl = _Namespace(is_available=_no)
mkldnn = _Namespace(is_available=_no, enabled=False)
mps = _Namespace(is_available=_no, is_built=_no)
openmp = _Namespace(is_available=_no)
opt_einsum = _Namespace(is_available=_no, enabled=False)
