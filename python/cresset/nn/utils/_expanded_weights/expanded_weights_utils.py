"""Helpers of functions that give a gradient for each sample."""

from .expanded_weights_impl import ExpandedWeight, check_batch, unpack_expanded_weight_or_tensor

__all__ = ["forward_helper", "maybe_scale_by_batch_size", "set_grad_sample_if_exists", "standard_kwargs", "sum_over_all_but_batch_and_last_n", "unpack_expanded_weight_or_tensor"]


def standard_kwargs(kwarg_names, expanded_args):
    """(the arguments, the keywords) of a call whose last arguments have these names."""
    count = len(kwarg_names)
    return expanded_args[: len(expanded_args) - count], dict(zip(kwarg_names, expanded_args[len(expanded_args) - count :]))


def forward_helper(func, expanded_args, expanded_kwargs):
    """The function's result on the weights themselves. RuntimeError where the first argument has no batch, or not that of the expanded weights."""
    check_batch(func, expanded_args, expanded_kwargs)
    args = [_original(a) for a in expanded_args]
    return func(*args, **{name: _original(a) for name, a in expanded_kwargs.items()})


def _original(value):
    return value.orig_weight if isinstance(value, ExpandedWeight) else value


def maybe_scale_by_batch_size(grad_sample, expanded_weight):
    """The gradients of samples of a mean, as they are of each sample's own loss."""
    return grad_sample * expanded_weight.batch_size if expanded_weight.loss_reduction == "mean" else grad_sample


def set_grad_sample_if_exists(maybe_expanded_weight, per_sample_grad_fn):
    """Puts `per_sample_grad_fn(weight)` into, or adds it to, the field grad_sample of an expanded weight's tensor. RuntimeError for another tensor with a gradient."""
    unpacked = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        found = maybe_scale_by_batch_size(per_sample_grad_fn(unpacked), maybe_expanded_weight)
        known = getattr(unpacked, "grad_sample", None)
        unpacked.grad_sample = found if known is None else known + found


def sum_over_all_but_batch_and_last_n(tensor, n_dims):
    """The sum over all dimensions but the first and the last n_dims."""
    dims = tuple(range(1, tensor.dim() - n_dims))
    return tensor.sum(dims) if dims else tensor
