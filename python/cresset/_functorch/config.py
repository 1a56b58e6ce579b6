"""Settings that `FakeTensorMode` reads when it is made."""

# May fake tensors be on the device meta?
fake_tensor_allow_meta = True

# Does every fake tensor carry a real one, `real_tensor`, on which the operators run as well?
fake_tensor_propagate_real_tensors = False
