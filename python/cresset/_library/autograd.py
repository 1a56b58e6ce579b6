"""Gradients of operators registered from Python: an autograd.Function made from the operator's formula."""

import cresset
from cresset import _C
from cresset.utils import _pytree as pytree

__all__ = ["make_kernel", "supports_tensorlist"]

_below = _C._dispatch_keyset_full_after(_C.DispatchKey.AutogradOther)
_autograd_keys = _C.DispatchKeySet("AutogradOther", "AutogradCPU")


class _Layout:
    """How arguments or results with lists of tensors are laid flat, so that every tensor stands on its own."""

    def __init__(self, values):
        self.sizes = [len(v) if _is_tensor_list(v) else None for v in values]

    def flat(self, values):
        out = []
        for value, size in zip(values, self.sizes):
            out.extend(value) if size is not None else out.append(value)
        return out

    def nested(self, flat):
        out, at = [], 0
        for size in self.sizes:
            if size is None:
                out.append(flat[at])
                at += 1
            else:
                out.append(list(flat[at : at + size]))
                at += size
        return tuple(out)


def _is_tensor_list(value):
    return isinstance(value, (list, tuple)) and bool(value) and any(isinstance(v, cresset.Tensor) for v in value)


class _Call:
    """What of one call is no tensor of its own: the layouts of arguments and results, the keys, keyword-only arguments."""

    __slots__ = ("inputs", "keys", "kwargs", "numbers", "outputs", "single")


def _add_keyword_defaults(op, kwargs):
    return {a.name: kwargs.get(a.name, a.default_value) for a in op._schema.arguments if a.kwarg_only}


def _default_count(positional, call):
    """How many arguments at the end of a call are their defaults."""
    count = 0
    for argument, value in zip(reversed(positional), reversed(call.numbers)):
        if not argument.has_default_value() or value is None or isinstance(argument.default_value, cresset.Tensor) or value != argument.default_value:
            break
        count += 1
    return count


def _flat_gradients(op, positional, call, gradients):
    """A gradient for each tensor among the arguments, from one for each argument, which may be a list."""
    sizes = call.inputs.sizes
    if len(sizes) - _default_count(positional, call) <= len(gradients) < len(sizes):  # those of defaults at the end may be left out
        gradients += (None,) * (len(sizes) - len(gradients))
    if len(gradients) != len(sizes):
        raise RuntimeError(
            f"{op}: Expected the return from backward to be of the same structure as the inputs: {len(sizes)} gradients, one for each argument. "
            f"Got: {len(gradients)}."
        )
    flat = []
    for position, (gradient, size) in enumerate(zip(gradients, sizes)):
        if size is None:
            flat.append(gradient)
        elif gradient is None:
            flat.extend([None] * size)
        elif isinstance(gradient, (list, tuple)) and len(gradient) == size:
            flat.extend(gradient)
        else:
            raise RuntimeError(
                f"{op}: Expected the return from backward to be of the same structure as the inputs: for argument {position} a list of {size} "
                f"gradients or None. Got: {type(gradient).__name__}."
            )
    return flat


def make_kernel(op, formula):
    """A kernel for the key Autograd. `formula()` gives (backward, setup_context), both may be None."""

    def forward(ctx, *values):
        *flat, call = values
        args = call.inputs.nested(flat)
        with _C._ExcludeDispatchKeyGuard(_autograd_keys):
            result = op.redispatch(call.keys & _below, *args, **call.kwargs)
        call.single = not isinstance(result, tuple)
        results = (result,) if call.single else result
        call.outputs = _Layout(results)
        backward, setup_context = formula()
        ctx._call, ctx._backward = call, backward
        flat_needs = ctx.needs_input_grad[:-1]
        ctx.needs_input_grad = call.inputs.nested(flat_needs)
        if setup_context is not None:
            if call.kwargs:
                setup_context(ctx=ctx, inputs=args, keyword_only_inputs=call.kwargs, output=result)
            else:
                setup_context(ctx=ctx, inputs=args, output=result)
        return tuple(call.outputs.flat(results))

    positional = [a for a in op._schema.arguments if not a.kwarg_only]

    def backward(ctx, *flat_gradients):
        if ctx._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use register_autograd to add one."
            )
        gradients = ctx._backward(ctx, *ctx._call.outputs.nested(flat_gradients))
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return (*_flat_gradients(op, positional, ctx._call, gradients), None)

    name = f"GeneratedBackwardFor_{op.namespace}_{op.__name__.replace('.', '_')}"
    function = type(name, (cresset.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    function._backward_cls.__module__ = "cresset.autograd.function"
    has_kwargs = any(a.kwarg_only for a in op._schema.arguments)

    def kernel(keys, *args, **kwargs):
        call = _Call()
        call.keys, call.kwargs = keys, _add_keyword_defaults(op, kwargs) if has_kwargs else {}
        call.inputs = _Layout(args)
        call.numbers = [None if isinstance(a, cresset.Tensor) or _is_tensor_list(a) else a for a in args]
        flat = function.apply(*call.inputs.flat(args), call)
        flat = flat if isinstance(flat, tuple) else (flat,)
        results = call.outputs.nested(flat)
        return results[0] if call.single else results

    return kernel


class _ListContext:
    """The context of a function as its class sees it: needs_input_grad has the structure of the arguments."""

    def __init__(self, ctx, needs_input_grad):
        vars(self).update(ctx=ctx, needs_input_grad=needs_input_grad)

    def __getattr__(self, name):
        return getattr(self.ctx, name)

    def __setattr__(self, name, value):
        setattr(self.ctx, name, value)


class _ListCall:
    """The structures of one call."""

    __slots__ = ("inputs", "outputs")


def _list_context(ctx, call):
    return _ListContext(ctx, pytree.tree_unflatten(list(ctx.needs_input_grad[1:]), call.inputs))


def _refuse(name, more):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"NYI: calling supports_tensorlist autograd.Function.{name} directly. {more}")

    return staticmethod(refuse)


def supports_tensorlist(cls):
    """A decorator of subclasses of autograd.Function: the tensors in lists, tuples and dicts among the arguments and results of `apply` have gradients, too. `backward`
    gets and gives lists in their places, as ctx.needs_input_grad has them; RuntimeError where it gives another structure than that of the inputs."""
    forward, backward, setup = cls.forward, cls.backward, cls.setup_context
    apart = setup is not cresset.autograd.Function.setup_context

    def flat_forward(ctx, call, *leaves):
        ctx.call, args = call, pytree.tree_unflatten(list(leaves), call.inputs)
        seen = _list_context(ctx, call)
        result = forward(*args) if apart else forward(seen, *args)
        if apart:
            setup(seen, args, result)
        outputs, call.outputs = pytree.tree_flatten(result)
        return tuple(outputs)

    def flat_backward(ctx, *gradients):
        call = ctx.call
        nested = pytree.tree_unflatten(list(gradients), call.outputs)
        given = backward(_list_context(ctx, call), *(nested if call.outputs.type is tuple else (nested,)))
        leaves, spec = pytree.tree_flatten(given if isinstance(given, tuple) else (given,))
        if spec != call.inputs:
            raise RuntimeError(f"Expected the return from backward to be of the same structure as the inputs. Got: {spec} (return from backward), {call.inputs} (inputs)")
        return None, *leaves

    flat = type(cls.__name__, (cresset.autograd.Function,), {"forward": staticmethod(flat_forward), "backward": staticmethod(flat_backward)})

    def apply(*args):
        call = _ListCall()
        leaves, call.inputs = pytree.tree_flatten(args)
        return pytree.tree_unflatten(list(flat.apply(call, *leaves)), call.outputs)

    cls.forward = _refuse("forward", "You should probably be calling .apply instead.")
    cls.backward = _refuse("backward", "It is called by autograd.")
    cls.apply = staticmethod(apply)
    return cls
