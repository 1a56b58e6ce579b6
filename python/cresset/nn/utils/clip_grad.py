"""Clipping of gradients."""

import warnings

import cresset

__all__ = ["clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _grads(parameters):
    if isinstance(parameters, cresset.Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors seen as one vector (a 0-dimensional tensor); 0 for none.

    `foreach` is accepted and makes no difference.
    """
    with cresset.no_grad():
        tensors = [tensors] if isinstance(tensors, cresset.Tensor) else list(tensors)
        norm_type = float(norm_type)
        if not tensors:
            return cresset.tensor(0.0)
        norms = [cresset.linalg.vector_norm(t, norm_type) for t in tensors]
        first = norms[0].device
        total = cresset.linalg.vector_norm(cresset.stack([n.to(first) for n in norms]), norm_type)
        if error_if_nonfinite and bool(cresset.logical_or(total.isnan(), total.isinf())):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients by max_norm / total_norm, in place, when that is less than 1."""
    with cresset.no_grad():
        grads = _grads(parameters)
        if not grads:
            return
        # Always multiplied: a comparison would wait for a device.
        factor = cresset.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for g in grads:
            g.mul_(factor.to(g.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients, in place, so that their total norm is at most `max_norm`; returns the norm before."""
    if not isinstance(parameters, cresset.Tensor):
        was_generator = hasattr(parameters, "__next__")
        parameters = list(parameters)
        if was_generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Older name of clip_grad_norm_."""
    warnings.warn(
        "`cresset.nn.utils.clip_grad_norm` is now deprecated in favor of `cresset.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clip every element of the gradients to [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    with cresset.no_grad():
        for g in _grads(parameters):
            g.clamp_(min=-clip_value, max=clip_value)
