"""The hooks of Module: registration, global hooks, and the call that runs them around forward."""

import functools
import threading
import warnings
from collections import OrderedDict

import cresset
from cresset.utils.hooks import BackwardHook, RemovableHandle, _first_tensor

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_MIXED = "Cannot use both regular backward hooks and full backward hooks on a {}. Please use only one of them."

# Who sees the calls of modules while a thread traces (cresset.jit), by thread: tracer(module, call, args, kwargs).
module_tracers = {}
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook = None
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()


def _add(hooks, hook, *extras, prepend=False):
    """Put `hook` into `hooks`, its id into the dictionaries of `extras`; returns the handle."""
    handle = RemovableHandle(hooks, extra_dict=list(extras))
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook):
    """Call `hook(module, args)` before every module's forward; may return new args. Returns a handle."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call `hook(module, args, output)` after every module's forward; may return a new output. Returns a handle."""
    handle = _add(_global_forward_hooks, hook, _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called)
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook):
    """Old-style global backward hook `hook(module, grad_input, grad_output)`; prefer the full one. Returns a handle."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is True:
        raise RuntimeError(_MIXED.format("global Module"))
    _global_is_full_backward_hook = False
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before any module's backward; may return new gradients. Returns a handle."""
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` after any module's backward; may return new gradients. Returns a handle."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is False:
        raise RuntimeError(_MIXED.format("global Module"))
    _global_is_full_backward_hook = True
    return _add(_global_backward_hooks, hook)


def register_module_buffer_registration_hook(hook):
    """Call `hook(module, name, buffer)` at each register_buffer; may return a replacement. Returns a handle."""
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call `hook(module, name, submodule)` at each registration of a child; may return a replacement. Returns a handle."""
    return _add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call `hook(module, name, param)` at each register_parameter; may return a replacement. Returns a handle."""
    return _add(_global_parameter_registration_hooks, hook)


def registered(hooks, module, name, value):
    """What a module keeps under `name`: `value`, or what the last of the registration hooks gave in its place."""
    for hook in hooks.values():
        result = hook(module, name, value)
        if result is not None:
            value = result
    return value


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _forward_unimplemented(self, *input):
    """The computation; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class _HookedModule:
    """The part of Module that keeps hooks and calls forward."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call `hook(module, args)` (or `(module, args, kwargs)`) before forward; may return new args (and kwargs). Returns a handle."""
        handle = _add(self._forward_pre_hooks, hook, self._forward_pre_hooks_with_kwargs, prepend=prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call `hook(module, args, output)` (or `(module, args, kwargs, output)`) after forward; may return a new output.

        With `always_call` it runs even when forward raises. Returns a handle.
        """
        handle = _add(
            self._forward_hooks,
            hook,
            self._forward_hooks_with_kwargs,
            self._forward_hooks_always_called,
            prepend=prepend,
        )
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_backward_hook(self, hook):
        """Old-style backward hook on the last node of forward; prefer register_full_backward_hook. Returns a handle."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED.format("single Module"))
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call `hook(module, grad_output)` before this module's backward; may return new gradients. Returns a handle."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are known; may replace them.

        Returns a handle.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED.format("single Module"))
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend=prepend)

    forward = _forward_unimplemented

    _compiled_call_impl = None  # what compile() of this module left, or _call_replaced

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "_call_impl" in cls.__dict__ and cls._compiled_call_impl is None:
            cls._compiled_call_impl = _HookedModule._call_replaced

    def _call_replaced(self, *args, **kwargs):
        """A call of a module that has a _call_impl of its own, or had one."""
        own = self.__dict__
        if "_call_impl" not in own and "_compiled_call_impl" in own:  # no longer
            del own["_compiled_call_impl"]
            return self(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        """The call, with hooks. Libraries replace it, in a module or in a class, to surround the calls of modules."""
        return self._call_uncompiled(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        if not (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_pre_hooks
            or _global_forward_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
            or module_tracers
        ):
            return self.forward(*args, **kwargs)
        return self._call_uncompiled(*args, **kwargs)

    def _call_uncompiled(self, *args, **kwargs):
        tracer = module_tracers.get(threading.get_ident())
        if tracer is not None:
            return tracer(self, self._call_with_hooks, args, kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args, kwargs):
        called = set()
        try:
            return self._run_with_hooks(args, kwargs, called)
        except Exception:
            self._run_remaining_always_called(args, kwargs, called)
            raise

    def _run_remaining_always_called(self, args, kwargs, called):
        # The call has failed: hooks that asked for it still run; their own errors only warn.
        for hooks, always, with_kwargs, who in (
            (
                _global_forward_hooks,
                _global_forward_hooks_always_called,
                _global_forward_hooks_with_kwargs,
                "global module",
            ),
            (self._forward_hooks, self._forward_hooks_always_called, self._forward_hooks_with_kwargs, "module"),
        ):
            for hook_id, hook in list(hooks.items()):
                if hook_id not in always or hook_id in called:
                    continue
                try:
                    if hook_id in with_kwargs:
                        hook(self, args, kwargs, None)
                    else:
                        hook(self, args, None)
                except Exception as e:
                    warnings.warn(
                        f"{who} forward hook with ``always_call=True`` raised an exception that was silenced as another error was raised in forward: {e}",
                        stacklevel=3,
                    )

    def _run_with_hooks(self, args, kwargs, called):
        for hook in list(_global_forward_pre_hooks.values()):
            result = hook(self, args)
            if result is not None:
                args = _as_tuple(result)
        for hook_id, hook in list(self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                        )
                    args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = _as_tuple(result)

        full, old = self._get_backward_hooks()
        pre = self._get_backward_pre_hooks()
        backward_hook = None
        if full or pre:
            backward_hook = BackwardHook(self, full, pre)
            args = backward_hook.setup_input_hook(args)

        output = self.forward(*args, **kwargs)

        for hooks, with_kwargs in (
            (_global_forward_hooks, _global_forward_hooks_with_kwargs),
            (self._forward_hooks, self._forward_hooks_with_kwargs),
        ):
            for hook_id, hook in list(hooks.items()):
                called.add(hook_id)
                result = hook(self, args, kwargs, output) if hook_id in with_kwargs else hook(self, args, output)
                if result is not None:
                    output = result

        if backward_hook is not None:
            if not isinstance(output, (cresset.Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                    f"{type(output)}",
                    stacklevel=3,
                )
            output = backward_hook.setup_output_hook(output)
        if old:
            self._attach_old_backward_hooks(old, args, output)
        return output

    def _get_backward_hooks(self):
        """Backward hooks that apply to this module: (full ones, old-style ones)."""
        full, old = [], []
        (full if _global_is_full_backward_hook else old).extend(_global_backward_hooks.values())
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _attach_old_backward_hooks(self, hooks, inputs, output):
        tensor = _first_tensor(output)
        node = None if tensor is None else tensor.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(functools.partial(hook, self))
        self._maybe_warn_non_full_backward_hook(inputs, output, node)

    def _maybe_warn_non_full_backward_hook(self, inputs, output, node):
        for value, what in ((output, "outputs"), (inputs, "inputs")):
            if not (
                isinstance(value, cresset.Tensor)
                or (isinstance(value, tuple) and all(isinstance(v, cresset.Tensor) for v in value))
            ):
                does, missing = ("take as input", "grad_input") if what == "inputs" else ("return", "grad_output")
                warnings.warn(
                    f"Using non-full backward hooks on a Module that does not {does} a single Tensor or a tuple of Tensors is deprecated and will be "
                    f"removed in future versions. This hook will be missing some of the {missing}. Please use register_full_backward_hook to get the "
                    "documented behavior.",
                    FutureWarning,
                    stacklevel=4,
                )
                return
        outputs, inputs = _as_tuple(output), _as_tuple(inputs)
        if {t.grad_fn for t in outputs if t.grad_fn is not None} != {node}:
            warnings.warn(
                "Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated and will be "
                "removed in future versions. This hook will be missing some grad_output. Please use "
                "register_full_backward_hook to get the documented behavior.",
                FutureWarning,
                stacklevel=4,
            )
            return
        input_nodes = {t.grad_fn for t in inputs if t.grad_fn is not None}
        next_nodes = {n[0] for n in node.next_functions}
        if input_nodes != next_nodes:
            warnings.warn(
                "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and will be removed "
                "in future versions. This hook will be missing some grad_input. Please use register_full_backward_hook to get "
                "the documented behavior.",
                FutureWarning,
                stacklevel=4,
            )
