"""Settings of compile(), which reads `recompile_limit`, or `cache_size_limit` where that alone was set; the others are for libraries that write them.
`patch(name=value)` sets some within a block."""

from .._setting_blocks import patch_of

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = verbose = capture_scalar_outputs = capture_dynamic_output_shape_ops = guard_nn_modules = compiled_autograd = False
fake_tensor_cache_enabled = fake_tensor_cache_crosscheck_enabled = False  # results of fake tensors are computed each time, and so the same
use_numpy_random_stream = False  # do numbers of _numpy.random come from NumPy's generator?
optimize_ddp = inline_inbuilt_nn_modules = force_nn_module_property_static_shapes = force_parameter_static_shapes = True
assume_static_by_default, automatic_dynamic_shapes, dynamic_shapes, allow_unspec_int_on_nn_module = True, True, True, False

patch = patch_of(globals(), "_dynamo.config")
