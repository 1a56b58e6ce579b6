"""Settings of CUDA's libraries and of the forms of attention. Attention has one form here, "math", and the settings are kept for who asks."""

import contextlib
import enum

from ._precision import Settings, matmul_precision, set_matmul_precision

__all__ = [
    "SDPAParams", "allow_fp16_bf16_reduction_math_sdp", "blas_workspace_size", "can_use_cudnn_attention", "can_use_efficient_attention",
    "can_use_flash_attention", "cuBLASModule", "cuFFTPlanCache", "cuFFTPlanCacheAttrContextProp", "cuFFTPlanCacheManager", "cublas_workspace_size",
    "cublaslt_workspace_size", "cudnn_sdp_enabled", "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
    "enable_mem_efficient_sdp", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed", "is_ck_sdpa_available", "is_flash_attention_available",
    "math_sdp_enabled", "mem_efficient_sdp_enabled", "preferred_rocm_fa_library", "sdp_kernel",
]  # fmt: skip


class SDPAParams:
    """The arguments of an attention, as questions about its forms take them."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa=False):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def _switch(title):
    state = [True]

    def enabled():
        return state[0]

    def enable(enabled):
        state[0] = bool(enabled)

    enabled.__doc__ = f"The setting for {title}."
    enable.__doc__ = f"Allow {title} where a device has it."
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash attention")
math_sdp_enabled, enable_math_sdp = _switch("attention by its definition")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("attention that saves memory")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cuDNN's attention")
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _switch("sums of half precision in attention by its definition")
allow_fp16_bf16_reduction_math_sdp(False)


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The four settings within a block."""
    switches = (enable_flash_sdp, enable_math_sdp, enable_mem_efficient_sdp, enable_cudnn_sdp)
    before = flash_sdp_enabled(), math_sdp_enabled(), mem_efficient_sdp_enabled(), cudnn_sdp_enabled()
    for switch, value in zip(switches, (enable_flash, enable_math, enable_mem_efficient, enable_cudnn)):
        switch(value)
    try:
        yield
    finally:
        for switch, value in zip(switches, before):
            switch(value)


def _no(params=None, debug=False):
    """False: no CUDA device."""
    return False


can_use_cudnn_attention = can_use_efficient_attention = can_use_flash_attention = is_ck_sdpa_available = is_flash_attention_available = _no


def _needs_cuda(*args, **kwargs):
    """Raises AssertionError: there is no CUDA device."""
    raise AssertionError("Torch not compiled with CUDA enabled")


blas_workspace_size = cublas_workspace_size = cublaslt_workspace_size = _needs_cuda


class cuBLASModule:
    """Settings of matrix products: kept, and read by no one here."""

    allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = Settings.fp32_precision

    @property
    def allow_tf32(self):
        """The older form of `set_float32_matmul_precision`: True is "high", False "highest"."""
        return matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value):
        set_matmul_precision("high" if value else "highest", "cuda")


class cuFFTPlanCacheAttrContextProp:
    """A property of a cache of plans: AssertionError, since there is no device to have one."""

    def __get__(self, obj, kind):
        _needs_cuda()

    def __set__(self, obj, value):
        _needs_cuda()


class cuFFTPlanCache:
    """The plans of a device's Fourier transforms: there is no device."""

    size, max_size = cuFFTPlanCacheAttrContextProp(), cuFFTPlanCacheAttrContextProp()

    def __init__(self, device_index):
        self.device_index = device_index

    def clear(self):
        """Raises AssertionError: there is no device."""
        _needs_cuda()


class cuFFTPlanCacheManager:
    """The caches of all devices, by index: RuntimeError for any index."""

    size, max_size = cuFFTPlanCacheAttrContextProp(), cuFFTPlanCacheAttrContextProp()

    def __getitem__(self, device):
        raise RuntimeError(f"cufft_plan_cache: expected 0 <= device index < 0, but got device with index {device}")

    def clear(self):
        """Raises AssertionError: there is no device."""
        _needs_cuda()


cufft_plan_cache = cuFFTPlanCacheManager()


class _ROCmFABackend(enum.Enum):
    Default = 0
    AOTriton = 1
    Ck = 2


_rocm = [_ROCmFABackend.Default]


def preferred_rocm_fa_library(backend=None):
    """Set and tell which library AMD's devices would take attention from: "default", "aotriton" or "ck"."""
    if isinstance(backend, str):
        known = {"default": _ROCmFABackend.Default, "aotriton": _ROCmFABackend.AOTriton, "ck": _ROCmFABackend.Ck}
        if backend not in known:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
        backend = known[backend]
    if backend is not None:
        _rocm[0] = backend
    return _rocm[0]
