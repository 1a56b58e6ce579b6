"""The backward graph: nodes, edges, hooks, tensors saved for backward."""

import abc
import contextlib
import functools
import weakref
from collections import OrderedDict, namedtuple

import cresset
from cresset import _C

__all__ = [
    "Node", "GradientEdge", "get_gradient_edge", "saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors", "increment_version", "region_activation_memory_budget", "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip


class GradientEdge(namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])):
    """Where a gradient goes: into the gradient of output `output_nr` of the forward operation of `node`. backward and grad take edges in
    place of tensors."""

    __slots__ = ()


class Node(abc.ABC):
    """A step of the backward graph; tensor.grad_fn is one. What it is made of is not among the bases of its class: isinstance and issubclass ask here."""

    @abc.abstractmethod
    def name(self):
        """The name of the node's kind, as "MulBackward0"."""

    @property
    @abc.abstractmethod
    def next_functions(self):
        """(node, place among its inputs) for each input of the forward operation."""

    @abc.abstractmethod
    def metadata(self):
        """A dict that goes with the node."""

    @abc.abstractmethod
    def register_hook(self, fn):
        """Call fn(grad_inputs, grad_outputs) after the node ran; a tuple that it returns replaces grad_inputs. Gives a handle with remove()."""

    @abc.abstractmethod
    def register_prehook(self, fn):
        """Call fn(grad_outputs) before the node runs; a tuple that it returns replaces grad_outputs. Gives a handle with remove()."""

    @abc.abstractmethod
    def _sequence_nr(self):
        """When the node was made, among those of its thread."""

    @classmethod
    def __subclasshook__(cls, subclass):
        return True if cls is Node and issubclass(subclass, _C._Node) else NotImplemented


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


_C._Node.register_hook = _register_hook
_C._Node.register_prehook = _register_prehook


def get_gradient_edge(tensor):
    """Where the gradient of a tensor that requires grad goes."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn if tensor.grad_fn is not None else _C._grad_accumulator(tensor)
    return GradientEdge(node, tensor.output_nr)


def increment_version(tensor):
    """Tell autograd that the memory of a tensor, or of each of several, was written by other means than its operators."""
    _C._increment_version([tensor] if isinstance(tensor, cresset.Tensor) else list(tensor))


class _MultiHandle:
    """Removes the hooks of several tensors together."""

    def __init__(self, handles):
        self._handles = tuple(handles)

    def remove(self):
        for handle in self._handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


def _expected(tensors):
    """How many of the tensors get a gradient in the backward pass that runs now."""
    return sum(_C._will_engine_execute_node(get_gradient_edge(t).node) for t in tensors)


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call fn once in each backward pass: mode "all" when the gradients of all tensors that take part are there, with the list of all of
    them (None for those that take no part); mode "any" with the first gradient. Gives a handle with remove()."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    import threading

    tensors = tuple(tensors)
    lock = threading.Lock()
    passes = {}

    def any_hook(grad):
        task = _C._current_graph_task_id()
        with lock:
            first = task not in passes
            passes[task] = True
        if first:
            _C._queue_callback(lambda: passes.pop(task, None))
            fn(grad)

    def hook_for(place):
        def hook(grad):
            task = _C._current_graph_task_id()
            if task == -1:
                raise RuntimeError("expected this hook to be called inside a backward call")
            with lock:
                entry = passes.get(task)
                if entry is None:
                    entry = passes[task] = [_expected(tensors), [None] * len(tensors)]
                entry[0] -= 1
                entry[1][place] = grad
                complete = entry[0] == 0
                if complete:
                    del passes[task]
            if complete:
                fn(entry[1])

        return hook

    if mode == "any":
        return _MultiHandle([t.register_hook(any_hook) for t in tensors if t.requires_grad])
    if not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    return _MultiHandle([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])


class saved_tensors_hooks:
    """For a block: keep pack_hook(tensor) in place of each tensor saved for backward, and unpack_hook(that) when it is needed."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        for name, hook in (("pack_hook", self.pack_hook), ("unpack_hook", self.unpack_hook)):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks: {name} must be callable; a {type(hook).__name__} was given.")
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc_info):
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """For a block: tensors saved for backward wait on the CPU and go back to their device when they are needed."""

    def __init__(self, pin_memory=False, device_type=None):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks(contextlib.ContextDecorator):
    """For a block: using saved_tensors_hooks raises RuntimeError with this message."""

    def __init__(self, error_message):
        self._message = error_message

    def __enter__(self):
        self._before = _C._disable_saved_tensors_hooks(self._message)

    def __exit__(self, *exc_info):
        _C._disable_saved_tensors_hooks(self._before)


# --- writing to saved tensors -----------------------------------------------------------------------------------------------------

_mutation_context = None


class _Saved:
    """Stands for a tensor that was saved, once or more often, between two writes; None once there is a clone."""

    def __init__(self, tensor):
        self.tensor = tensor


class _MutationContext:
    """The saved tensors of one block. Graphs hold what stands for them, so what no graph needs any more is not cloned."""

    def __init__(self):
        self.open = True
        self.cloned = weakref.WeakKeyDictionary()  # _Saved → its values before the write
        self.tid_to_weakhandle = weakref.WeakValueDictionary()  # view and version of a tensor → _Saved
        self._by_memory = {}

    def clear(self):
        """Forget all saved tensors: backward through them is not possible any more."""
        self._by_memory.clear()
        self.cloned.clear()
        self.tid_to_weakhandle.clear()
        self.open = False

    def pack(self, tensor):
        memory = _memory(tensor)
        view = (memory, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg(), tensor._version)
        saved = self.tid_to_weakhandle.get(view)
        if saved is None:
            saved = self.tid_to_weakhandle[view] = _Saved(tensor)
            self._by_memory.setdefault(memory, weakref.WeakSet()).add(saved)
        return saved

    def unpack(self, saved):
        if not self.open:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally "
                                 "recorded.")  # fmt: skip
        return self.cloned.get(saved, saved.tensor)

    def before_write(self, tensor):
        """A tensor is about to be written: what was saved of its memory is cloned."""
        for saved in self._by_memory.pop(_memory(tensor), ()):
            if saved not in self.cloned:
                self.cloned[saved] = saved.tensor.detach().clone()
                saved.tensor = None


def _memory(tensor):
    """What tells one memory from another; wrappers without memory stand for themselves."""
    try:
        return tensor.untyped_storage()._cdata
    except RuntimeError:
        return tensor._cdata


@functools.cache
def _write_mode_class():
    from cresset.utils._python_dispatch import TorchDispatchMode

    class WriteMode(TorchDispatchMode):
        """Tells the context of every tensor that an operator is about to write, as its schema says."""

        def __init__(self, context):
            super().__init__()
            self._context = context

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            for place, name in _written_arguments(func):
                targets = args[place] if place < len(args) else kwargs.get(name)
                for target in targets if isinstance(targets, (tuple, list)) else (targets,):
                    if isinstance(target, cresset.Tensor):
                        self._context.before_write(target)
            return func(*args, **kwargs)

    return WriteMode


@functools.cache
def _written_arguments(func):
    return [(place, a.name) for place, a in enumerate(func._schema.arguments) if a.is_write]


class allow_mutation_on_saved_tensors:
    """For a block: tensors saved for backward may be written to in place; they are cloned when that happens. Backward has to run inside.

    Writes are seen below autograd, by the operators' schemas, wherever they are called from. Entering gives an object whose clear() drops
    all that was saved.
    """

    def __enter__(self):
        global _mutation_context
        if _mutation_context is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        _mutation_context = self._context = _MutationContext()
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(saved_tensors_hooks(self._context.pack, self._context.unpack))
        self._stack.enter_context(_write_mode_class()(self._context))
        return self._context

    def __exit__(self, *exc_info):
        global _mutation_context
        _mutation_context = None
        self._stack.close()
        self._context.clear()


_stream_settings = {"override_stale_capture_stream": False, "warn_on_accumulate_grad_stream_mismatch": True}


def set_override_stale_capture_stream(enabled: bool) -> None:
    """What backward does about nodes whose stream is not captured, while a graph of a CUDA stream is: put the capturing one in its place. Kept
    for backends that capture streams; the CPU has none."""
    _stream_settings["override_stale_capture_stream"] = bool(enabled)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether backward warns when a gradient comes from another stream than that of its leaf. Kept for backends with streams; on the CPU all
    work is in order."""
    _stream_settings["warn_on_accumulate_grad_stream_mismatch"] = bool(enabled)


def region_activation_memory_budget(budget: float):
    """Context manager for a stretch of a compiled function: which share (0 to 1) of its activations may be kept for backward. ValueError for
    other numbers; RuntimeError when it is entered outside of compiled code, and functions run as they are here."""
    if not 0 <= budget <= 1:
        raise ValueError(f"torch.autograd.graph.region_activation_memory_budget: must be in [0, 1], got {budget}")
    return _outside_of_compiled_code()


@contextlib.contextmanager
def _outside_of_compiled_code():
    raise RuntimeError(
        "torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; it has no effect in eager mode."
    )
    yield
