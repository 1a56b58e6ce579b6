"""Settings that `FakeTensorMode` reads when it is made, and some for libraries that write them. `patch(name=value)` sets some within a block."""

from .._setting_blocks import patch_of

# May fake tensors be on the device meta?
fake_tensor_allow_meta = True

# Does every fake tensor carry a real one, `real_tensor`, on which the operators run as well?
fake_tensor_propagate_real_tensors = False

# Checks and prints of PyTorch's own recorder: aot_function has none to turn on.
debug_assert = debug_partitioner = False

patch = patch_of(globals(), "_functorch.config")
