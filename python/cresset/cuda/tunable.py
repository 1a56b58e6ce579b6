"""The choice between matrix kernels of CUDA devices by trying them: none is built in, so each call says so."""

from ._absent import refusal as _refusal

__all__ = [
    "enable", "is_enabled", "tuning_enable", "tuning_is_enabled", "record_untuned_enable", "record_untuned_is_enabled", "set_max_tuning_duration",
    "get_max_tuning_duration", "set_max_tuning_iterations", "get_max_tuning_iterations", "set_filename", "get_filename", "get_results", "get_validators",
    "read_file", "tune_gemm_in_file", "mgpu_tune_gemm_in_file", "set_rotating_buffer_size", "get_rotating_buffer_size", "set_numerical_check_tolerances",
]  # fmt: skip

(
    enable, is_enabled, tuning_enable, tuning_is_enabled, record_untuned_enable, record_untuned_is_enabled, set_max_tuning_duration,
    get_max_tuning_duration, set_max_tuning_iterations, get_max_tuning_iterations, set_filename, get_filename, get_results, get_validators,
    read_file, tune_gemm_in_file, mgpu_tune_gemm_in_file, set_rotating_buffer_size, get_rotating_buffer_size,
    set_numerical_check_tolerances,
) = map(_refusal, __all__)  # fmt: skip
