"""What a job answers: show(name, value) with tensors, numbers, texts and containers of them, kept as JSON."""

import math

values = []


def plain(value):
    """A value as JSON: long tensors as their shape, sums and some of their elements."""
    import numpy
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.is_complex():
            value = torch.view_as_real(value)
        value = value.to_dense() if value.layout != torch.strided else value
        kind = str(value.dtype).split(".")[-1]
        if value.numel() <= 64:
            return [kind, list(value.shape), value.double().flatten().tolist()]
        flat = value.double().flatten()
        some = flat[:: max(1, flat.numel() // 32)][:32]
        return [kind, list(value.shape), flat.mean().item(), flat.abs().mean().item(), some.tolist()]
    if isinstance(value, numpy.ndarray):
        return plain(torch.from_numpy(numpy.ascontiguousarray(value)))
    if isinstance(value, dict):
        return [[str(k), plain(v)] for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, int, str, type(None))):
        return value
    if isinstance(value, (float, numpy.floating, numpy.integer)):
        return float(value) if math.isfinite(value) else str(float(value))
    return str(value).replace("cresset", "torch")


def show(name, value):
    values.append([name, plain(value)])
