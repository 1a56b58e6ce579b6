"""What the rules of `autograd.Function` under vmap are made of."""

import cresset

__all__ = ["CtxWithSavedTensors", "WrappedCtx", "reductify_leaf"]


class WrappedCtx:
    """The ctx of an `autograd.Function` in a wrapper: what is not the wrapper's own is read from it and written to it. RuntimeError where it has an attribute with a name of
    the wrapper's."""

    _pt_reserved_attrs = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx):
        if not isinstance(ctx, WrappedCtx):
            for name in self._pt_reserved_attrs:
                if hasattr(ctx, name):
                    raise RuntimeError(
                        f"{type(self).__name__}: name collision on attribute `{name}` of the ctx. Give the attribute that is saved in forward another name."
                    )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name):
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name, value):
        if name in type(self)._pt_reserved_attrs:
            self.__dict__[name] = value
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """A ctx with other saved tensors."""

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx, new_saved_tensors):
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self):
        """The tensors that the wrapper was given."""
        return self._pt_new_saved_tensors


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
