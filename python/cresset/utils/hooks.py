"""Handles that remove hooks, and the machinery behind a module's full backward hooks."""

import itertools
import warnings
import weakref
from collections import OrderedDict

import cresset

__all__ = ["RemovableHandle", "BackwardHook", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes one entry of a hook dictionary: by `remove()` or at the end of a `with` block.

    `extra_dict` names one dictionary, or a list of them, whose entry of the same id goes as well.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extras = ()
        elif isinstance(extra_dict, (list, tuple)):
            extras = extra_dict
        else:
            extras = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras)

    def remove(self):
        """Take the hook out; does nothing the second time."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        hooks, self.id, extras = state
        # A dead reference is stood in for by an empty dictionary: remove() then has nothing to do.
        self.hooks_dict_ref = weakref.ref(hooks if hooks is not None else OrderedDict())
        self.extra_dict_ref = tuple(weakref.ref(d if d is not None else OrderedDict()) for d in extras)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


def unserializable_hook(f):
    """Decorator: warn when a tensor that carries this hook is pickled."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warn about each hook of `tensor` that cannot be pickled."""
    hooks = tensor._backward_hooks
    for hook in (hooks or {}).values():
        if hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized..", stacklevel=2)


_identity_function = None


def _identity():
    # The autograd Function is made on first use, so that importing nn does not need autograd.Function.
    global _identity_function
    if _identity_function is None:

        class BackwardHookFunction(cresset.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
                return args

            @staticmethod
            def backward(ctx, *grads):
                return grads

        _identity_function = BackwardHookFunction
    return _identity_function


def _spread(indices, values, size):
    """Tuple of `size` entries with `values` at `indices` and None elsewhere."""
    out = [None] * size
    for i, value in zip(indices, values):
        out[i] = value
    return tuple(out)


class BackwardHook:
    """One forward call's full backward hooks: puts identity nodes around a module and calls the hooks from them."""

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.input_index = None
        self.output_index = None

    def _wrap(self, attach, args):
        """Pass the tensors of `args` through one identity node, `attach(node)`; returns new args and their positions."""
        index = [i for i, a in enumerate(args) if isinstance(a, cresset.Tensor)]
        if not (cresset.is_grad_enabled() and any(args[i].requires_grad for i in index)):
            return args, None
        fresh = _identity().apply(*[args[i] for i in index])
        node = next(
            t.grad_fn for t in fresh if t.grad_fn is not None and t.grad_fn.name() == "BackwardHookFunctionBackward"
        )
        attach(node)
        out = list(args)
        for i, t in zip(index, fresh):
            out[i] = t
        if type(args) is tuple:
            return tuple(out), index
        return type(args)(*out), index  # a named tuple

    def setup_input_hook(self, args):
        """Wrap the inputs of the module; returns the tuple to call forward with."""

        def attach(node):
            node.register_hook(self._on_grad_inputs)

        res, self.input_index = self._wrap(attach, args)
        self.n_inputs = len(args)
        return res

    def setup_output_hook(self, output):
        """Wrap the outputs of the module; returns what the call returns."""

        def attach(node):
            node.register_prehook(self._on_grad_outputs)

        single = not isinstance(output, tuple)
        res, self.output_index = self._wrap(attach, (output,) if single else output)
        self.n_outputs = len(res)
        return res[0] if single else res

    def _on_grad_inputs(self, grad_input, _):
        if self.grad_outputs is None:
            # A gradient that reaches the input without passing the output: in a second backward pass, or from tensors inside of an output
            # that the hooks do not look into (a dict, a list).
            return None
        grads = _spread(self.input_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            new = hook(self.module, grads, self.grad_outputs)
            if new is None:
                continue
            new = self._checked(new, self.n_inputs, "Backward hook", "grad_input")
            grads = new
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_index)

    def _on_grad_outputs(self, grad_output):
        grads = _spread(self.output_index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            new = hook(self.module, grads)
            if new is None:
                continue
            grads = self._checked(new, self.n_outputs, "Backward pre hook", "grad_output")
        self.grad_outputs = grads
        if self.input_index is None:
            # No input needs a gradient, so no input node will fire: the hooks run here.
            if self.user_hooks:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                    "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                    "#torch.nn.Module.register_full_backward_hook for more details.",
                    stacklevel=5,
                )
            for hook in self.user_hooks:
                new = hook(self.module, (None,) * self.n_inputs, grads)
                if new is not None and not (isinstance(new, tuple) and all(g is None for g in new)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                    )
            self.grad_outputs = None
        return tuple(grads[i] for i in self.output_index)

    @staticmethod
    def _checked(new, expected, who, what):
        if not isinstance(new, tuple):
            new = (new,)
        if len(new) != expected:
            raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(new)}, but expected {expected}")
        return new


def _first_tensor(result):
    """The tensor whose node carries an old-style backward hook, or None."""
    while not isinstance(result, cresset.Tensor):
        if isinstance(result, dict):
            result = next(itertools.chain((v for v in result.values() if isinstance(v, cresset.Tensor)), (None,)))
        elif isinstance(result, (tuple, list)) and result:
            result = result[0]
        else:
            return None
        if result is None:
            return None
    return result
