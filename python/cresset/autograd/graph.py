"""The backward graph: nodes and their hooks."""

from collections import OrderedDict
from collections import namedtuple

from cresset import _C

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks"]

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


class saved_tensors_hooks:
    """For a block: keep pack_hook(tensor) in place of each tensor saved for backward, and unpack_hook(that) when it is needed."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc_info):
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """For a block: tensors saved for backward wait on the CPU and go back to their device when they are needed."""

    def __init__(self, pin_memory=False, device_type=None):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks:
    """For a block: using saved_tensors_hooks raises RuntimeError with this message."""

    def __init__(self, error_message):
        self._message = error_message

    def __enter__(self):
        self._before = _C._disable_saved_tensors_hooks(self._message)

    def __exit__(self, *exc_info):
        _C._disable_saved_tensors_hooks(self._before)
