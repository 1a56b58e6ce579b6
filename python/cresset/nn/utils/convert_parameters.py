"""Parameters as one vector and back."""

import cresset

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(param, device):
    if device is not None and param.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters):
    """All parameters flattened and joined."""
    device, parts = None, []
    for param in parameters:
        device = _same_device(param, device)
        parts.append(param.view(-1))
    return cresset.cat(parts)


def vector_to_parameters(vec, parameters):
    """Set the parameters' data to the parts of `vec`."""
    if not isinstance(vec, cresset.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device, start = None, 0
    for param in parameters:
        device = _same_device(param, device)
        size = param.numel()
        param.data = vec[start : start + size].view_as(param).data
        start += size
