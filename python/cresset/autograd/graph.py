"""The backward graph: nodes and their hooks."""

from collections import OrderedDict
from collections import namedtuple

from cresset import _C

__all__ = ["Node", "GradientEdge", "get_gradient_edge"]

GradientEdge = namedtuple("GradientEdge", ["node", "output_nr"])

# A step of the backward graph; tensor.grad_fn is one.
Node = _C._Node


def _register(node, hook, kind, install):
    from cresset.utils.hooks import RemovableHandle

    # The dicts live with the node, not with this object.
    hooks = node.metadata.get(kind)
    if hooks is None:
        hooks = node.metadata[kind] = OrderedDict()
        install(node, hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register_hook(self, fn):
    """Call fn(grad_inputs, grad_outputs) after the node ran; a tuple that it returns replaces grad_inputs."""
    return _register(self, fn, "__post_hooks__", _C._add_node_hooks)


def _register_prehook(self, fn):
    """Call fn(grad_outputs) before the node runs; a tuple that it returns replaces grad_outputs."""
    return _register(self, fn, "__pre_hooks__", _C._add_node_pre_hooks)


Node.register_hook = _register_hook
Node.register_prehook = _register_prehook


def get_gradient_edge(tensor):
    """Where the gradient of a tensor that requires grad goes."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn if tensor.grad_fn is not None else _C._grad_accumulator(tensor)
    return GradientEdge(node, tensor.output_nr)
