"""Gradients of each sample of a batch: what `torch.nn.utils._per_sample_grad` has, by vmap over a copy of the parameters for each sample."""

import functools

import cresset
from cresset.func import functional_call, vmap
from cresset.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence
from cresset.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """A function that is called as `module` is; backward from its result puts the gradient of every sample, (batch, *shape), into the field
    `grad_sample` of each parameter that requires one, and leaves `grad` as it is.

    All tensors of the call have the batch as their first dimension, with batch_first=False as their second, and the states of recurrent modules always as
    their second; with `batch_size` tensors of another size are the same for each sample. A module sees batches of one sample, and packed sequences of one. The loss
    adds up the samples' losses, or is their mean (`loss_reduction`). RuntimeError for other arguments, and for parameters whose `grad_sample` was not
    taken away.
    """
    if not isinstance(module, cresset.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                f"Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without clearing gradients. Please clear out the grad_sample parameter of {parameter}"
            )
    return functools.partial(_call, module, batch_size, loss_reduction == "mean", 0 if batch_first else 1)


def _call(module, batch_size, mean, dim, *args, **kwargs):
    recurrent = any(isinstance(m, cresset.nn.RNNBase) for m in module.modules())
    if any(isinstance(value, PackedSequence) for value in (*args, *kwargs.values())):
        return _call_packed(module, batch_size, mean, args, kwargs)
    leaves, structure = tree_flatten((args, kwargs))
    for value in (*args, *kwargs.values(), *leaves):
        if _hides_tensors(value):
            raise NotImplementedError(f"call_for_per_sample_grads: a {type(value).__name__} cannot be cut into samples. Pass its tensors, or register the class with utils._pytree.")
    size = _batch_size(leaves[:1] if recurrent else leaves, dim) if batch_size is None else batch_size

    def place(i):
        return 1 if recurrent and i else dim  # behind the first are states

    dims = [place(i) if _has_batch(leaf, size, place(i)) else None for i, leaf in enumerate(leaves)]
    if not any(d is not None for d in dims):
        raise RuntimeError(f"Expected ExpandedWeights to have batch size matching input but got no input with batch size {size}")
    copies = {name: _copies(p, size, mean) for name, p in module.named_parameters() if p.requires_grad}

    def one(parameters, *samples):
        batches = [s if d is None else s.unsqueeze(d) for s, d in zip(samples, dims)]
        args, kwargs = tree_unflatten(batches, structure)
        results, form = tree_flatten(functional_call(module, parameters, args, kwargs))
        one.form = form
        return tuple(r.select(place(i), 0) for i, r in enumerate(results))

    results = vmap(one, in_dims=(0, *dims), randomness="different")(copies, *leaves)
    return tree_unflatten([r.movedim(0, place(i)) for i, r in enumerate(results)], one.form)


def _call_packed(module, size, mean, args, kwargs):
    """Sample by sample, since sequences differ in length; the results of packed sequences are packed as those are, states are joined in their second dimension."""
    packed = next(value for value in (*args, *kwargs.values()) if isinstance(value, PackedSequence))
    size = int(packed.batch_sizes[0]) if size is None else size
    copies = {name: _copies(p, size, mean) for name, p in module.named_parameters() if p.requires_grad}

    def of(sample, value):
        if isinstance(value, PackedSequence):
            padded, lengths = pad_packed_sequence(value, batch_first=True)
            return pack_sequence([padded[sample, : lengths[sample]]])
        if isinstance(value, (tuple, list)):
            return type(value)(of(sample, part) for part in value)
        return value.narrow(1, sample, 1) if _has_batch(value, size, 1) else value

    def joined(values):
        if isinstance(values[0], PackedSequence):
            return pack_sequence([v.data for v in values], enforce_sorted=packed.sorted_indices is None)
        if isinstance(values[0], tuple):
            return tuple(map(joined, zip(*values)))
        return cresset.cat(values, 1)

    return joined([
        functional_call(module, {name: copy[i] for name, copy in copies.items()}, of(i, args), {k: of(i, v) for k, v in kwargs.items()}) for i in range(size)
    ])  # fmt: skip


def _copies(parameter, size, mean):
    """The parameter for each sample, a leaf that keeps its gradients with the parameter."""
    copies = parameter.detach().expand(size, *parameter.shape).requires_grad_()

    def keep(grad):
        # A mean over the batch has divided each sample's gradient by its size.
        grad = grad * size if mean else grad
        known = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = grad if known is None else known + grad

    copies.register_hook(keep)
    return copies


def _hides_tensors(value):
    parts = () if isinstance(value, (cresset.Tensor, cresset.nn.Module)) else getattr(value, "__dict__", {}).values()
    return any(isinstance(part, cresset.Tensor) for part in parts)


def _has_batch(leaf, size, dim):
    return isinstance(leaf, cresset.Tensor) and leaf.dim() > dim and leaf.shape[dim] == size


def _batch_size(leaves, dim):
    size = None
    for leaf in leaves:
        if isinstance(leaf, cresset.Tensor) and leaf.dim() > dim:
            if size is not None and leaf.shape[dim] != size:
                raise RuntimeError(
                    "When computing batch size, found at least one input with batch size "
                    f"{size} and one with batch size {leaf.shape[dim]}. Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
                )
            size = leaf.shape[dim]
    if size is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    return size
