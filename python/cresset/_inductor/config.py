"""Settings of a code generator: libraries write them; nothing reads them here."""

max_autotune = max_autotune_pointwise = max_autotune_gemm = coordinate_descent_tuning = freezing = cpp_wrapper = epilogue_fusion = False
conv_1x1_as_mm = coordinate_descent_check_all_directions = force_fuse_int_mm_with_mul = use_mixed_mm = False
fx_graph_cache = True


class _Settings:
    """Settings of one of its targets, any names."""


triton, cpp, cuda, rocm, aot_inductor, trace, eager_numerics = (_Settings() for _ in range(7))
