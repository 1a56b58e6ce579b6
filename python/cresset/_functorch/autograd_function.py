"""What the rules of `autograd.Function` under vmap are made of."""

import cresset

__all__ = ["reductify_leaf"]


def reductify_leaf(grad_input, grad_input_bdim, input_bdim, batch_size, target_shape_without_bdim_to_reduce_to=None):
    """The gradient of one input of a batched function, with the examples where the input has them: summed over them for an input that has none, and
    over what a broadcast to the target sizes (those of one example) added."""
    if grad_input is None:
        return None
    if input_bdim is None:
        return grad_input if grad_input_bdim is None else grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        grad_input, grad_input_bdim = grad_input.unsqueeze(input_bdim).expand(*grad_input.shape[:input_bdim], batch_size, *grad_input.shape[input_bdim:]), input_bdim
    if target_shape_without_bdim_to_reduce_to is not None:
        return cresset.vmap(cresset.Tensor.sum_to_size, in_dims=(grad_input_bdim, None), out_dims=input_bdim)(
            grad_input, tuple(target_shape_without_bdim_to_reduce_to)
        )
    return grad_input.movedim(grad_input_bdim, input_bdim)
