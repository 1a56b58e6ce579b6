"""The backward of a stage: as a whole, or first for its inputs and later for its weights."""

import cresset
from cresset.utils import _pytree as pytree

__all__ = []


def _pairs(outputs, gradients):
    """Tensors that need gradients and theirs, of nested values."""
    found, theirs = [], []
    leaves = pytree.tree_leaves(outputs)
    given = [None] * len(leaves) if gradients is None else pytree.tree_leaves(gradients, is_leaf=lambda v: v is None)
    for leaf, gradient in zip(leaves, given):
        if isinstance(leaf, cresset.Tensor) and leaf.requires_grad:
            found.append(leaf)
            theirs.append(gradient)
    return found, theirs


def stage_backward(stage_output, output_grads, input_values, outputs_with_grads_idxs=None):
    """Backward from a stage's outputs, or its loss; the gradients of its inputs, None for those that need none. Weights gather theirs."""
    outputs, gradients = _pairs(stage_output, output_grads)
    if outputs:
        cresset.autograd.backward(outputs, grad_tensors=gradients)
    return tuple(v.grad if isinstance(v, cresset.Tensor) else None for v in input_values)


def stage_backward_input(stage_outputs_or_loss, output_grads, input_values, weights):
    """(gradients of the inputs, what stage_backward_weight needs); weights gather nothing yet."""
    outputs, gradients = _pairs(stage_outputs_or_loss, output_grads)
    inputs = [v for v in input_values if isinstance(v, cresset.Tensor) and v.requires_grad]
    found = iter(cresset.autograd.grad(outputs, inputs, gradients, retain_graph=True, allow_unused=True) if inputs and outputs else ())
    results = []
    for value in input_values:
        gradient = next(found, None) if isinstance(value, cresset.Tensor) and value.requires_grad else None
        if gradient is not None:
            value.grad = gradient if value.grad is None else value.grad + gradient
        results.append(gradient)
    return tuple(results), [{"outputs": outputs, "gradients": gradients}]


def stage_backward_weight(weights, param_groups, retain_graph=False):
    """The gradients of the weights, which gather them. The graph between outputs and weights is walked again."""
    weights = [w for w in weights if w.requires_grad]
    found = [None] * len(weights)
    for group in param_groups:
        if not group["outputs"]:
            continue
        gradients = cresset.autograd.grad(group["outputs"], weights, group["gradients"], retain_graph=retain_graph, allow_unused=True)
        for n, (weight, gradient) in enumerate(zip(weights, gradients)):
            if gradient is not None:
                weight.grad = gradient if weight.grad is None else weight.grad + gradient
                found[n] = weight.grad
    return tuple(found)
