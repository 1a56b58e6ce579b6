"""The backward of a stage: as a whole, or first for its inputs and later for its weights.

In two parts no node computes the same twice. The first part goes along the paths from the outputs to the inputs and keeps what arrives at the nodes
from which a branch leaves towards the weights; the second part begins at these nodes and goes along the branches only.
"""

from collections import defaultdict

import cresset
from cresset.autograd.graph import GradientEdge, get_gradient_edge
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


def _add_gradient(tensor, gradient):
    if gradient is not None:
        tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


def stage_backward(stage_output, output_grads, input_values, outputs_with_grads_idxs=None):
    """Backward from a stage's outputs, or its loss; the gradients of its inputs, None for those that need none. Weights gather theirs."""
    outputs, gradients = _pairs(stage_output, output_grads)
    if outputs:
        cresset.autograd.backward(outputs, grad_tensors=gradients)
    return tuple(v.grad if isinstance(v, cresset.Tensor) else None for v in input_values)


class _Graph:
    """The nodes below some roots, each behind those that follow it, with the nodes in front of each."""

    def __init__(self, roots):
        self.order, self.parents, seen = [], defaultdict(set), set()
        waiting = [(root, False) for root in roots]
        while waiting:
            node, is_below_done = waiting.pop()
            if is_below_done:
                self.order.append(node)
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                for following in self.following(node):
                    self.parents[following].add(node)
                    waiting.append((following, False))

    @staticmethod
    def following(node):
        return [n for n, _ in node.next_functions if n is not None]

    def leading_to(self, targets):
        """Nodes from which a way leads to one of `targets`, these included."""
        found = set()
        for node in self.order:
            if node in targets or any(n in found for n in self.following(node)):
                found.add(node)
        return found


def _nodes(tensors):
    return [get_gradient_edge(t).node for t in tensors]


def _branches(outputs, inputs, weights):
    """(node on a way to `inputs` -> its edges that lead to weights and to no input, numbers of outputs without a way to inputs, weights for a second walk).

    A weight is for a second walk where a branch towards it is entered from several nodes, or where hooks in front of the node would see what they have
    made of a gradient.
    """
    roots, accumulators = _nodes(outputs), _nodes(weights)
    graph = _Graph(roots)
    to_inputs, to_weights = graph.leading_to(set(_nodes(inputs))), graph.leading_to(set(accumulators))
    branches, shared = {}, []
    for node in to_inputs:
        edges = [GradientEdge(n, place) for n, place in node.next_functions if n in to_weights and n not in to_inputs]
        several = {e.node for e in edges if node._has_pre_hooks() or len(graph.parents[e.node]) > 1 or e.node in roots}
        shared += several
        own = list(dict.fromkeys(e for e in edges if e.node not in several))
        if own:
            branches[node] = own
    below = set(_Graph(shared).order)
    again = [w for w, node in zip(weights, accumulators) if node in below]
    return branches, [n for n, root in enumerate(roots) if root not in to_inputs], again


def _keeper(group):
    def keep(gradients):
        group["gradients"] = gradients
    return keep


def stage_backward_input(stage_outputs_or_loss, output_grads, input_values, weights):
    """(gradients of the inputs, what stage_backward_weight needs); weights gather nothing yet."""
    outputs, gradients = _pairs(stage_outputs_or_loss, output_grads)
    inputs = [v for v in input_values if isinstance(v, cresset.Tensor) and v.requires_grad]
    weights = [w for w in weights if w.requires_grad]
    if not inputs or not outputs:
        return tuple(None for _ in input_values), [{"outputs": outputs, "gradients": gradients, "weights": weights}]
    branches, apart, again = _branches(outputs, inputs, weights)
    once = [w for w in weights if all(w is not other for other in again)]
    groups = [{"outputs": [outputs[n] for n in apart], "gradients": [gradients[n] for n in apart], "weights": once}]
    groups += [{"node": node, "edges": edges, "gradients": (), "weights": once} for node, edges in branches.items()]
    hooks = [group["node"].register_prehook(_keeper(group)) for group in groups[1:]]
    if again:
        groups.append({"outputs": outputs, "gradients": gradients, "weights": again})
    try:
        found = iter(cresset.autograd.grad(outputs, inputs, gradients, retain_graph=True, allow_unused=True))
    finally:
        for hook in hooks:
            hook.remove()
    results = []
    for value in input_values:
        gradient = next(found, None) if isinstance(value, cresset.Tensor) and value.requires_grad else None
        if gradient is not None:
            _add_gradient(value, gradient)
        results.append(gradient)
    return tuple(results), groups


def _begin(group):
    """Where the way to the weights begins, and the gradients there: ([tensors or edges], [gradients])."""
    if "outputs" in group:
        return group["outputs"], group["gradients"]
    arrived = [(GradientEdge(group["node"], n), g) for n, g in enumerate(group["gradients"]) if g is not None]
    if not arrived:
        return [], []
    found = cresset.autograd.grad([e for e, _ in arrived], group["edges"], [g for _, g in arrived], retain_graph=True, allow_unused=True)
    kept = [(edge, g) for edge, g in zip(group["edges"], found) if g is not None]
    return [e for e, _ in kept], [g for _, g in kept]


def stage_backward_weight(weights, param_groups, retain_graph=False):
    """The gradients of the weights, which gather them, from what stage_backward_input has left."""
    weights = [w for w in weights if w.requires_grad]
    begins = {}  # the weights of a walk, by their ids -> (weights, where it begins, gradients there)
    for group in param_groups:
        starts, gradients = _begin(group)
        walk = begins.setdefault(tuple(map(id, group["weights"])), (group["weights"], [], []))
        walk[1].extend(starts)
        walk[2].extend(gradients)
    reached = set()
    for n, (targets, starts, gradients) in enumerate(begins.values()):
        if not starts or not targets:
            continue
        kept = retain_graph or n + 1 < len(begins)
        for weight, gradient in zip(targets, cresset.autograd.grad(starts, targets, gradients, retain_graph=kept, allow_unused=True)):
            if gradient is not None:
                _add_gradient(weight, gradient)
                reached.add(id(weight))
    return tuple(weight.grad if id(weight) in reached else None for weight in weights)
