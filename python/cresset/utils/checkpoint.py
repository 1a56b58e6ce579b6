"""Checkpointing: backward computes parts of the forward pass again instead of keeping their tensors."""

import contextlib
import enum
import warnings
import weakref
from collections import defaultdict

import cresset
from cresset.autograd.graph import saved_tensors_hooks

__all__ = [
    "checkpoint", "checkpoint_sequential", "CheckpointFunction", "CheckpointError", "set_checkpoint_early_stop", "set_checkpoint_debug_enabled",
    "get_device_states", "set_device_states", "check_backward_validity", "noop_context_fn", "detach_variable",
    "DefaultDeviceType", "GraphExecGroup", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts", "SAC_IGNORED_OPS",
]  # fmt: skip

_DEFAULT_DETERMINISM_MODE = "default"
_early_stop = True
_debug = None


class CheckpointError(RuntimeError):
    """The function did not do the same when it was computed again."""


class _StopRecomputation(Exception):
    """All that was needed has been computed again."""


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """For a block: should a second computation stop as soon as the last tensor that is needed exists? (Default: yes.)"""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """For a block: the `debug` argument of every checkpoint; None leaves it to the calls."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


class DefaultDeviceType:
    """The kind of device whose state a checkpoint keeps when no argument says one: that of the accelerator, "cpu" without one."""

    _chosen = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose it."""
        DefaultDeviceType._chosen = device

    @staticmethod
    def get_device_type() -> str:
        """The present one."""
        if DefaultDeviceType._chosen is not None:
            return DefaultDeviceType._chosen
        accelerator = cresset.accelerator.current_accelerator()
        return "cpu" if accelerator is None else accelerator.type


class GraphExecGroup:
    """Context manager around several backward passes over different parts of a graph: what a checkpoint without reentrance computes again for
    one of them serves the others, too. RuntimeError inside of another one."""

    _current = None

    def __enter__(self) -> "GraphExecGroup":
        if GraphExecGroup._current is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup._current}")
        GraphExecGroup._current = self
        return self

    def __exit__(self, *exception) -> None:
        GraphExecGroup._current = None

    @classmethod
    def _get_current_group(cls):
        return cls._current


def noop_context_fn():
    """No contexts around the two computations."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs):
    """The inputs without their history; requires_grad stays."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    out = []
    for value in inputs:
        if isinstance(value, cresset.Tensor):
            requires_grad = value.requires_grad
            value = value.detach()
            value.requires_grad = requires_grad
        out.append(value)
    return tuple(out)


def check_backward_validity(inputs):
    """Warn when no input requires grad: the results of a reentrant checkpoint would have no gradients."""
    if not any(isinstance(i, cresset.Tensor) and i.requires_grad for i in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args):
    """(device indices, random states) of the devices of the arguments; only the CPU has a random state, and it is kept apart."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Restores what get_device_states gave."""


@contextlib.contextmanager
def _random_state(state):
    """For a block: the random state that was kept, or just the present one."""
    if state is None:
        yield
        return
    with cresset.random.fork_rng():
        cresset.set_rng_state(state)
        yield


def _autocast_settings(args):
    """Arguments of autocast that repeat its present state, for the CPU and the devices of the arguments."""
    types = {"cpu": None, **{a.device.type: None for a in args if isinstance(a, cresset.Tensor)}}
    return [
        {"device_type": t, "enabled": cresset.is_autocast_enabled(t), "dtype": cresset.get_autocast_dtype(t),
         "cache_enabled": cresset.is_autocast_cache_enabled()}
        for t in types if cresset.amp.is_autocast_available(t)
    ]  # fmt: skip


@contextlib.contextmanager
def _surroundings(state, autocasts):
    """For a block: random state and autocast as they were in the first computation."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_random_state(state))
        for settings in autocasts:
            stack.enter_context(cresset.autocast(**settings))
        yield


class CheckpointFunction(cresset.autograd.Function):
    """The reentrant form: forward runs without recording, backward runs it again and calls backward inside."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state, ctx.autocasts = cresset.get_rng_state() if preserve_rng_state else None, _autocast_settings(args)
        ctx.plain = [None if isinstance(a, cresset.Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, cresset.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with cresset.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not cresset.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward(). "
                "To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.plain)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor
        detached = detach_variable(tuple(inputs))
        with _surroundings(ctx.state, ctx.autocasts), cresset.enable_grad():
            outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, cresset.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, cresset.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        cresset.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(d.grad if isinstance(d, cresset.Tensor) else None for d in detached))


def _infer_device_type(*args):
    """The kind of device of the tensors among the arguments, inside of containers as well; the default one without a tensor of a device with
    memory of its own, and the first with a warning where there are several."""
    from cresset.utils._pytree import tree_map

    kinds = []
    tree_map(lambda a: kinds.append(a.device.type) if isinstance(a, cresset.Tensor) and not a.is_cpu else None, args)
    kinds = list(dict.fromkeys(kinds))
    if len(kinds) > 1:
        warnings.warn(f"Tensors of several kinds of devices: {sorted(kinds)}. The state of {kinds[0]} devices is kept.", stacklevel=2)
    return kinds[0] if kinds else DefaultDeviceType.get_device_type()


def _get_device_module(device="cuda"):
    """What `cresset` has under the name of a kind of device; the device "meta" is a word for itself, since nothing is kept of it."""
    return cresset.device("meta") if device == "meta" else getattr(cresset, device)


def _get_autocast_kwargs(device_type="cuda"):
    """Keyword arguments of autocast that repeat its present state for a kind of device (None where it has no autocast), and for the CPU."""

    def settings(kind):
        return {
            "enabled": cresset.is_autocast_enabled(kind), "dtype": cresset.get_autocast_dtype(kind), "cache_enabled": cresset.is_autocast_cache_enabled(),
        }  # fmt: skip

    return settings(device_type) if cresset.amp.is_autocast_available(device_type) else None, settings("cpu")


def _metadata(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _Handle:
    """Stands for one saved tensor; recomputed tensors hang on it until they are used."""


class _Frame:
    """One call of a checkpoint that does not reenter backward.

    In the first computation every tensor that autograd saves is replaced by a _Handle; the first use of a handle in a backward pass
    computes the function again, which saves the same tensors in the same order. A pass uses each of them once, and another pass over a
    graph that was kept computes it again. Outside of a pass every look at a saved tensor does. The function may go backward itself: then
    it runs again before its first computation has saved all (is_complete).
    """

    is_complete = False

    def __init__(self, recompute, early_stop, check):
        self.recompute, self.early_stop, self.check = recompute, early_stop, check
        self.handles = []  # weak references: handles live in the graph
        self.metadata = []
        self.recomputed = {}  # by backward pass: handle → tensor

    def pack(self, tensor):
        handle = _Handle()
        self.handles.append(weakref.ref(handle))
        self.metadata.append(self.check(tensor))
        return handle

    def unpack(self, handle):
        task = GraphExecGroup._current or cresset._C._current_graph_task_id()
        if task == -1 or task not in self.recomputed:
            self.recomputed = {t: tensors for t, tensors in self.recomputed.items() if tensors}
            self.recomputed[task] = self.current = weakref.WeakKeyDictionary()
            self._run_again()
        if handle not in self.recomputed[task]:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
                "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your use case."
            )
        tensor = self.recomputed[task].pop(handle)
        if task == -1:
            del self.recomputed[task]
        return tensor

    def _run_again(self):
        self.count, self.found = 0, []
        with _Recomputation(self), cresset.enable_grad():
            try:
                self.recompute()
            except _StopRecomputation:
                pass
        if self.count > len(self.handles) and self.is_complete and not self.early_stop:
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass: "
                f"{self.count}, and {len(self.handles)} in forward. The function must compute the same both times."
            )
        if self.count < len(self.handles):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.handles)}\nNumber of tensors saved during recomputation: {self.count}."
            )
        self._compare()

    def keep(self, tensor):
        """The next tensor that the second computation saves; one without a gradient is found again as the same object."""
        place = self.count
        self.count += 1
        kept = tensor.detach() if tensor.requires_grad else tensor
        if place < len(self.handles):
            handle = self.handles[place]()
            if handle is not None:
                self.current[handle] = kept
            self.found.append(self.check(tensor))
        if self.early_stop and self.count == len(self.handles):
            raise _StopRecomputation
        return kept

    def _compare(self):
        differ = [place for place, found in enumerate(self.found) if found != self.metadata[place]]
        if differ:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                + "\n".join(
                    f"tensor at position {place}:\nsaved metadata: {self.metadata[place]}\nrecomputed metadata: {self.found[place]}" for place in differ
                )
            )


class _Recomputation(saved_tensors_hooks):
    """Takes what the second computation saves."""

    def __init__(self, frame):
        super().__init__(frame.keep, lambda tensor: tensor)


@contextlib.contextmanager
def _recording(frame):
    with saved_tensors_hooks(frame.pack, frame.unpack):
        yield


def _checks(determinism_check):
    if determinism_check == _DEFAULT_DETERMINISM_MODE:
        return _metadata
    if determinism_check == "none":
        return lambda tensor: None
    raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")


@contextlib.contextmanager
def _first_run(function, args, kwargs, preserve_rng_state, context_fn, determinism_check, early_stop):
    """A block in which function(*args, **kwargs) is computed: what it would keep for backward is computed again there."""
    forward_context, recompute_context = context_fn()
    state, autocasts = cresset.get_rng_state() if preserve_rng_state else None, _autocast_settings((*args, *kwargs.values()))

    def recompute():
        with _surroundings(state, autocasts), recompute_context:
            function(*args, **kwargs)

    if not cresset.is_grad_enabled():
        yield
        return
    frame = _Frame(recompute, early_stop, _checks(determinism_check))
    with _recording(frame), forward_context:
        yield
    frame.is_complete = True


def _without_reentrance(function, args, kwargs, preserve_rng_state, context_fn, determinism_check, early_stop):
    with _first_run(function, args, kwargs, preserve_rng_state, context_fn, determinism_check, early_stop):
        return function(*args, **kwargs)


def checkpoint(
    function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check=_DEFAULT_DETERMINISM_MODE, debug=False, early_stop=True,
    **kwargs,
):  # fmt: skip
    """function(*args, **kwargs), whose inner tensors are not kept for backward but computed again there.

    With use_reentrant=False (to be preferred) any function and any backward pass will do. use_reentrant=True runs a backward pass inside
    backward: keyword arguments, autograd.grad and inputs= are refused, and some input must require grad. preserve_rng_state (a keyword)
    repeats random numbers. context_fn gives two context managers, for the first and for the second computation;
    `create_selective_checkpoint_contexts` makes such a pair that keeps the results of some operators.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
            "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _without_reentrance(function, args, kwargs, preserve, context_fn, determinism_check, early_stop and _early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """The functions (or the children of an nn.Sequential) one after another, in `segments` checkpoints; the last part is kept as usual."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 we will raise "
            "an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need to preserve the current default "
            "behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if hasattr(functions, "children"):
        functions = list(functions.children())
    functions = list(functions)

    def segment(start, end):
        def run(value):
            for function in functions[start : end + 1]:
                value = function(value)
            return value

        return run

    size = len(functions) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(segment(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return segment(end + 1, len(functions) - 1)(input)


# --- keeping the results of some operators ---------------------------------------------------------------------------------------


class CheckpointPolicy(enum.Enum):
    """Whether the results of an operator are kept, kept on the CPU until they are needed, or computed again.

    MUST_: in any case; PREFER_: unless another system knows better.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told besides the call: is this the second computation (is_recompute)?"""

    def __init__(self, *, is_recompute):
        self.is_recompute = is_recompute


# Policies do not see these: how often they run depends on what is kept, and questions for sizes compute nothing.
SAC_IGNORED_OPS = {
    cresset.ops.prim.device.default, cresset.ops.aten.is_contiguous.memory_format,
    *(getattr(cresset.ops.aten, name).default for name in (
        "detach", "is_contiguous", "is_strides_like_format", "is_non_overlapping_and_dense", "size", "sym_size", "stride", "sym_stride",
        "storage_offset", "sym_storage_offset", "numel", "sym_numel", "dim",
    )),
}  # fmt: skip


def _policy_from_bool(b):
    """The policy that "keep it?" means."""
    return CheckpointPolicy.MUST_SAVE if b else CheckpointPolicy.PREFER_RECOMPUTE


def _as_function(policy_fn_or_list):
    """The policy as a function, with its answers as members of CheckpointPolicy."""
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, cresset._C.OpOverload):
                hint = (
                    " Please update the OpOverloadPacket to a specific OpOverload. For example, if you have `torch.ops.aten.mm`, change it to "
                    "`torch.ops.aten.mm.default`."
                    if type(op).__name__ == "OpOverloadPacket"
                    else ""
                )
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{hint}")
        saved = frozenset(policy_fn_or_list)
        return lambda ctx, op, *args, **kwargs: _policy_from_bool(op in saved)
    if not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")

    def policy(ctx, op, *args, **kwargs):
        answer = policy_fn_or_list(ctx, op, *args, **kwargs)
        return _policy_from_bool(answer) if isinstance(answer, bool) else answer

    return policy


class _VersionWrapper:
    """One value that was kept, with the version that it had; `on_cpu` keeps a tensor of another device as a copy on the CPU."""

    def __init__(self, val, on_cpu=False):
        self.device = None
        if on_cpu and isinstance(val, cresset.Tensor) and val.device.type != "cpu":
            self.device, val = val.device, val.cpu()
        self.val, self.version = val, val._version if isinstance(val, cresset.Tensor) else None

    def get_val(self, allow_cache_entry_mutation):
        """The value; RuntimeError when it was changed in place, unless that is allowed."""
        if self.device is not None:
            return self.val.to(self.device)
        if self.version is not None and self.val._version != self.version and not allow_cache_entry_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.val


def _detach_helper(x, is_view=False):
    """A tensor that can have a gradient, or is a view, without its history; anything else as it is."""
    return x.detach() if isinstance(x, cresset.Tensor) and (x.is_floating_point() or x.is_complex() or is_view) else x


_AGAIN, _GIVEN = object(), object()  # in the place of a kept result: none is kept; it has been given


def _selective_modes():
    from cresset.utils._python_dispatch import TorchDispatchMode
    from cresset.utils._pytree import tree_map

    offloads = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)
    saves = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, *offloads)

    class Keeping(TorchDispatchMode):
        """The first computation: keeps results as the policy says, and that the others are to be computed again."""

        def __init__(self, policy, storage):
            super().__init__()
            self._policy, self._storage = policy, storage

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func in SAC_IGNORED_OPS:
                return func(*args, **kwargs)
            policy = self._policy(SelectiveCheckpointContext(is_recompute=False), func, *args, **kwargs)
            out = func(*args, **kwargs)
            kept = _AGAIN
            if policy in saves:
                is_view, on_cpu = any(r.alias for r in func._schema.returns), policy in offloads
                kept = tree_map(lambda value: _VersionWrapper(_detach_helper(value, is_view), on_cpu), out)
            self._storage[func].append(kept)
            return out

    class Kept(TorchDispatchMode):
        """The second computation: does for each call of an operator what the first decided. A result that is kept is given once."""

        def __init__(self, storage, allow_mutation):
            super().__init__()
            self._storage, self._allow_mutation = storage, allow_mutation

        def __enter__(self):
            self._calls = defaultdict(int)
            return super().__enter__()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func in SAC_IGNORED_OPS:
                return func(*args, **kwargs)
            call = self._calls[func]
            self._calls[func] += 1
            if func not in self._storage or call >= len(self._storage[func]):
                which = f"{func} invocation index {call}" if func in self._storage else f"{func}"
                raise RuntimeError(
                    f"{which} encountered during backward but not found in storage. This can happen if the operations in the checkpointed region "
                    "are nondeterministic or depend on global state that changed between forward and backward."
                )
            kept = self._storage[func][call]
            if kept is _AGAIN:
                return func(*args, **kwargs)
            if kept is _GIVEN:
                raise RuntimeError(
                    "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation checkpoint."
                )
            self._storage[func][call] = _GIVEN
            return tree_map(lambda value: value.get_val(self._allow_mutation), kept)

    return Keeping, Kept


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """A pair of contexts for `context_fn` of `checkpoint`: results of some operators are kept in the first computation and not computed again.

    policy_fn_or_list: the operators to keep, as overloads, or a function policy(ctx, op, *args, **kwargs) that gives a CheckpointPolicy
    (or a bool: keep?). Operators are seen below autograd. Results that are kept must not be changed in place unless allow_cache_entry_mutation.

    >>> context_fn = functools.partial(create_selective_checkpoint_contexts, [cresset.ops.aten.mm.default])
    >>> checkpoint(f, x, use_reentrant=False, context_fn=context_fn)
    """
    policy, storage = _as_function(policy_fn_or_list), defaultdict(list)
    keeping, kept = _selective_modes()
    return keeping(policy, storage), kept(storage, allow_cache_entry_mutation)
