"""Custom functions: forward and backward written by the user."""

from __future__ import annotations

import functools
import sys
import warnings
from _thread import _local

import cresset
from cresset import _C
from cresset._hints import with_hint

TYPE_CHECKING = False  # typing is not loaded for `import cresset`
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Function", "FunctionCtx", "FunctionMeta", "BackwardCFunction", "InplaceFunction", "NestedIOFunction", "once_differentiable"]

_NEEDS_SETUP_CONTEXT = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context "
    "staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
)


class _Transforms(_local):
    """How many transforms of `func` a thread is in: a function that reads its ctx in forward cannot be differentiated there."""

    depth = 0


_transforms = _Transforms()


class FunctionCtx:
    """What a Function's methods find on their ctx. A node of the graph has these methods from its own type; one made by hand, as tests of a
    forward do, keeps what it is told as attributes: to_save, saved_for_forward, dirty_tensors, non_differentiable, materialize_grads."""

    def save_for_backward(self, *tensors: cresset.Tensor):
        """Keep tensors for backward, which finds them in `saved_tensors`. Once, in forward or setup_context."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: cresset.Tensor):
        """Keep tensors for jvp. Once, in forward or setup_context."""
        for tensor in tensors:
            assert isinstance(tensor, cresset.Tensor) or tensor is None, (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
            )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: cresset.Tensor):
        """Say which inputs forward changes in place. Each is an output, too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: cresset.Tensor):
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool):
        """Whether backward gets zeros (True, as when nothing is said) or None for outputs without a gradient."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs):
        """Older programs call this; it has nothing to do."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The node of a Function in the graph, and the ctx of its methods."""

    @property
    def saved_variables(self):
        """The older name of saved_tensors."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors


class FunctionMeta(type):
    """Gives each Function the class of its nodes: NAMEBackward."""

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class to create custom `autograd.Function`: a differentiable operation with a backward of its own.

    Define the static methods `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`, and
    `backward(ctx, *grad_outputs)`, which returns a gradient (or None) for each argument of forward; `jvp(ctx, *tangents)` for
    forward mode. Call `Name.apply(*args)`.
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class "
            "itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward "
            "method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation itself; runs unrecorded."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keeps for backward what it needs, when forward does not take ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """A gradient, or None, for each argument of forward."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """A tangent for each output."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        """The function on a batch: gives (results, their batch dimensions)."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def _resolve_backward(cls):
        own_backward = cls.backward is not Function.backward
        own_vjp = cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
        return cls.vjp if own_vjp else cls.backward

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward and connect its results to backward."""
        separate = cls.setup_context is not Function.setup_context
        if _transforms.depth and not separate:
            raise RuntimeError(_NEEDS_SETUP_CONTEXT)
        if kwargs:
            args = cls._bind(args, kwargs, separate)
        elif separate:
            args = cls._bind(args, {}, separate)
        if _C._has_torch_function(args):
            opaque = sys.modules.get("cresset._mkldnn_tensor")
            if opaque is not None and opaque.among(args):
                return opaque.apply_function(cls, args)
        return _C._function_apply(cls, cls._backward_cls, separate, cls.jvp is not Function.jvp, *args)

    @classmethod
    def _bind(cls, args, kwargs, separate):
        """All arguments by position, defaults filled in."""
        signature = cls.__dict__.get("_forward_signature")
        if signature is None:
            import inspect

            signature = cls._forward_signature = inspect.signature(cls.forward)
        try:
            bound = signature.bind(*args, **kwargs) if separate else signature.bind(None, *args, **kwargs)
        except TypeError:
            cls.forward(*(args if separate else (None, *args)), **kwargs)  # raises with Python's own words
            raise
        given = {}  # for parameters that have no position; left out, they keep their defaults
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            given.update({name: value} if kind is kind.KEYWORD_ONLY else value if kind is kind.VAR_KEYWORD else {})
        if given:
            named = any(isinstance(v, _C.TensorBase) for v in given.values())
            if named and any(isinstance(v, _C.TensorBase) and _C._functorch.is_batchedtensor(v) for v in (*args, *given.values())):
                raise NotImplementedError(
                    "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to autograd.Function. "
                    f"Got: {given}"
                )
            error = TypeError(f"forward() got an unexpected keyword argument '{next(iter(given))}'")
            raise with_hint(error, f"{cls.__name__}: forward has keyword-only parameters ({', '.join(given)}); make them positional.")
        bound.apply_defaults()
        return bound.args if separate else bound.args[1:]


class InplaceFunction(Function):
    """A Function that may be told to work in place; only its constructor knows of that."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """The older base class for functions of nested lists and tuples. With static methods it is a Function like others."""

    def save_for_backward(self, *args: Any) -> None:
        """Keep nested lists and tuples of tensors."""
        self.to_save = tuple(_tensors_of(args))
        self._to_save_nested = args

    def mark_dirty(self, *args: Any) -> None:
        """Say which tensors among nested ones forward changes in place."""
        self.dirty_tensors = tuple(_tensors_of(args))

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which tensors among nested ones have no gradient."""
        self.non_differentiable = tuple(_tensors_of(args))

    def forward_extended(self, *input: Any) -> None:
        """User-defined forward."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """User-defined backward."""
        raise NotImplementedError


def _tensors_of(nested):
    from ..utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(nested) if isinstance(leaf, cresset.Tensor)]


def _nested_map(condition, fn, condition_msg=None):
    """A function that puts `fn(part)` in place of every part of nested lists, tuples and dicts for which `condition(part)` holds. ValueError for
    other leaves than None; the name is PyTorch's, for libraries that walk the arguments of functions."""

    def walk(value):
        if condition(value):
            return fn(value)
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            parts = [walk(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {key: walk(part) for key, part in value.items()}
        accepted = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
        raise ValueError(f"Auto nesting doesn't know how to process an input object of type {cresset.typename(value)}{accepted}")

    return walk


def once_differentiable(fn):
    """Decorator of backward: its result cannot be differentiated again; trying raises."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with cresset.no_grad():
            outputs = fn(ctx, *args)
        if not cresset.is_grad_enabled():
            return outputs
        requires_grad = any(isinstance(arg, cresset.Tensor) and arg.requires_grad for arg in args)
        if not requires_grad:
            return outputs
        single = not isinstance(outputs, tuple)
        outputs = (outputs,) if single else outputs
        fakes = [o.detach() if o is not None and (o.is_floating_point() or o.is_complex()) else None for o in outputs]
        for fake in fakes:
            if fake is not None:
                fake.requires_grad = True  # requires_grad_() is refused inside of function transforms
        failing = _C._delayed_error(
            "trying to differentiate twice a function that was marked with @once_differentiable", fakes
        )
        result = tuple(o if f is None else f for o, f in zip(outputs, failing))
        return result[0] if single else result

    return wrapper
