"""`CustomOp`: an operator whose kernels and gradient are registered one by one. `cresset.library.custom_op` is the interface for new code."""

import collections
import inspect

import cresset
from cresset import _C
from cresset._library.autograd import make_kernel
from cresset._library.custom_op import parse_name
from cresset._library.fake import get_ctx
from cresset._library.infer_schema import infer_schema
from cresset._library.utils import lookup_op

__all__ = ["CustomOp", "custom_op", "get_ctx", "get_op", "infer_schema"]

RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}

global_registry = {}  # "ns::name" → CustomOp


def get_op(qualname):
    """The operator "ns::name" as an overload; AttributeError when there is none."""
    return lookup_op(qualname)


class CustomOp:
    """An operator that is built up by registrations; made by `custom_op`, callable."""

    def __init__(self, lib, cpp_ns, schema, operator_name, ophandle, *, _private_access=False):
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private and we do not guarantee BC for it. Please use custom_op(...) to create a CustomOp object")
        self._lib, self._cpp_ns, self._schema, self._opname, self._opoverload = lib, cpp_ns, schema, operator_name, ophandle
        self._qualname, self.__name__ = f"{cpp_ns}::{operator_name}", operator_name
        self._save_for_backward = self._backward = self._differentiable = None
        self._formula_registered = False
        global_registry[self._qualname] = self

    def __repr__(self):
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def _destroy(self):
        """Undo the operator and what was registered for it."""
        self._lib._destroy()
        del global_registry[self._qualname]

    def impl(self, device_types, _stacklevel=2):
        """A decorator: the kernel for "cpu", "cuda" or both. RuntimeError when there is one already."""
        kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in {SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}.")

        def register(f):
            for kind in kinds:
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                for found in (key, "CompositeImplicitAutograd", "CompositeExplicitAutograd"):
                    if self._has_kernel(found):
                        raise RuntimeError(
                            f"impl(...): the operator {self._qualname} already has an implementation for this device type via a pre-existing "
                            f"registration to DispatchKey::{found}."
                        )
                self._lib.impl(self._opname, f, key)
            return f

        return register

    def _has_kernel(self, key):
        # What answers for devices without a kernel is no implementation.
        return self._opoverload.has_kernel_for_dispatch_key(key) and not (key == "CompositeExplicitAutograd" and hasattr(self, "_answers"))

    def impl_factory(self):
        """A decorator: the kernel of an operator that takes no tensors."""

        def register(f):
            self._lib.impl(self._opname, f, "BackendSelect")
            return f

        return register

    def impl_abstract(self, _stacklevel=2):
        """A decorator: what the operator does on meta and fake tensors."""
        return lambda f: cresset.library.register_fake(self._qualname, f, lib=self._lib)

    def impl_save_for_backward(self, _stacklevel=2):
        """A decorator: f(inputs, output), inputs a namedtuple of the arguments, returns what the gradient needs."""

        def register(f):
            self._register_formula()
            self._save_for_backward = f
            return f

        return register

    def impl_backward(self, output_differentiability=None, _stacklevel=2):
        """A decorator: f(ctx, saved, *grads) returns {argument: gradient} with all tensor arguments.

        output_differentiability: for each result, whether it has a gradient; all that are tensors have when left out.
        """
        if output_differentiability is not None:
            returns = self._opoverload._schema.returns
            if not isinstance(output_differentiability, (list, tuple)) or not all(isinstance(b, bool) for b in output_differentiability):
                raise RuntimeError(f"impl_backward(output_differentiability): expected output_differentiability to be a list of bools, got {type(output_differentiability)}")
            if len(output_differentiability) != len(returns):
                raise RuntimeError(
                    f"impl_backward(output_differentiability): for {self._qualname} output_differentiability has {len(output_differentiability)} "
                    f"entries, and the operator has {len(returns)} results. Give one for each."
                )

        def register(f):
            self._register_formula()
            self._backward, self._differentiable = f, output_differentiability
            return f

        return register

    # --- the gradient ---

    def _register_formula(self):
        if self._formula_registered:
            return
        schema, name = self._opoverload._schema, self._qualname
        if any(r.alias and not r.is_write for r in schema.returns):
            raise RuntimeError(f"Cannot register autograd formula for operator that returns views: {name} with schema {schema}.")
        if schema.is_mutable:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {name} with schema {schema}.")
        if not schema.returns:
            raise RuntimeError(f"Cannot register autograd formula for operator with no returns: {name} with schema {schema}.")
        for key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"):
            if self._opoverload.has_kernel_for_dispatch_key(key) and not (key == "Autograd" and hasattr(self, "_answers")):
                raise RuntimeError(f"impl_backward/impl_save_for_backward: the operator {name} already has an implementation for DispatchKey::{key}.")
        self._formula_registered = True
        if not hasattr(self, "_answers"):
            self._lib._impl(self._opname, self._recorded(), "Autograd", with_keyset=True, role="formula")

    def _recorded(self):
        """The kernel of calls that are recorded: the gradient, or a refusal while there is none."""
        kernel = make_kernel(self._opoverload, lambda: (self._gradients, self._keep))

        def run(keys, *args, **kwargs):
            if not self._formula_registered:
                raise RuntimeError(f"Autograd has not been implemented for operator {self._qualname}. Use impl_save_for_backward and impl_backward, or torch.no_grad().")
            return kernel(keys, *args, **kwargs)

        return run

    def _keep(self, ctx, inputs, output, keyword_only_inputs=None):
        for missing, given, other in ((self._save_for_backward, "save_for_backward", "backward"), (self._backward, "backward", "save_for_backward")):
            if missing is None:
                raise RuntimeError(f"We found a '{other}' registration for {self._qualname} but were unable to find a '{given}' registration. Please use the CustomOp API to register it.")
        names = [a.name for a in self._opoverload._schema.arguments]
        values = {**dict(zip(names, inputs)), **(keyword_only_inputs or {})}
        saved = self._save_for_backward(collections.namedtuple(f"{self._opname}_args", names)(**values), output)
        leaves, ctx._structure = cresset.utils._pytree.tree_flatten(saved)
        ctx._tensor_at = [isinstance(leaf, cresset.Tensor) for leaf in leaves]
        ctx._others = [None if tensor else leaf for leaf, tensor in zip(leaves, ctx._tensor_at)]
        ctx.save_for_backward(*(leaf for leaf, tensor in zip(leaves, ctx._tensor_at) if tensor))
        if self._differentiable is None:
            return
        results = output if isinstance(output, tuple) else (output,)
        for result, differentiable in zip(results, self._differentiable):
            tensors = result if isinstance(result, (list, tuple)) else (result,)
            if not differentiable:
                ctx.mark_non_differentiable(*(t for t in tensors if isinstance(t, cresset.Tensor)))
            elif not all(isinstance(t, cresset.Tensor) for t in tensors):
                raise RuntimeError(
                    f"With output_differentiability={self._differentiable}. At idx 0, we received an object of type {type(result)} that "
                    "is not a Tensor, so it cannot have be marked as differentiable in output_differentiability."
                )

    def _gradients(self, ctx, *grads):
        tensors = iter(ctx.saved_tensors)
        leaves = [next(tensors) if tensor else other for tensor, other in zip(ctx._tensor_at, ctx._others)]
        found = self._backward(ctx, cresset.utils._pytree.tree_unflatten(leaves, ctx._structure), *grads)
        return self._in_order(found, ctx._call.inputs)

    def _in_order(self, found, layout):
        """Gradients by position from {argument: gradient}; RuntimeError for what has another form."""
        name = f"the backward function of {self._qualname}"
        if not isinstance(found, dict):
            raise RuntimeError(f"Expected the output of {name} to be a dict of gradients, got {type(found)}.")
        arguments = [a for a in self._opoverload._schema.arguments if not a.kwarg_only]
        wanted = {a.name for a in arguments if str(a.type).startswith(("Tensor", "Optional[Tensor", "List[Tensor", "List[Optional[Tensor"))}
        if set(found) != wanted:
            more = " The gradients must not be given for arguments of non-Tensor-like types." if wanted < set(found) else " All Tensor-like arguments need one, which may be None."
            raise RuntimeError(f"Expected the output of {name} to be a dict of gradients, to have keys {wanted}, got {set(found)}.{more}")
        ordered = []
        for argument, size in zip(arguments, layout.sizes):
            gradient = found.get(argument.name)
            what = f"for input '{argument.name}' {name}"
            if size is None:
                if gradient is not None and not isinstance(gradient, cresset.Tensor):
                    raise RuntimeError(f"{what} must return either None or a Tensor, got {type(gradient)}.")
            else:
                if not isinstance(gradient, (list, tuple)):
                    raise RuntimeError(f"{what} must return a list of gradients, got {type(gradient)}.")
                if len(gradient) != size:
                    raise RuntimeError(f"{what} must return a list of {size} gradients but got {len(gradient)}.")
                for g in gradient:
                    if g is not None and not isinstance(g, cresset.Tensor):
                        raise RuntimeError(f"{what} must return a list of None or Tensor, got {type(g)} in it.")
            ordered.append(gradient)
        return tuple(ordered)

    # --- calls without a kernel ---

    def _answer(self):
        """Register what a call without a kernel, and a recorded call without a gradient, answer."""
        self._answers = True

        def no_kernel(*args, **kwargs):
            tensors = [t for t in cresset.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, cresset.Tensor)]
            if not tensors:
                raise NotImplementedError(f"{self}: There were no Tensor inputs to this operator (e.g. you passed an empty list of Tensors). If your operator is a factory function, use impl_factory.")
            device = tensors[0].device.type
            if device == "meta":
                raise NotImplementedError(f"{self}: when running with device='Meta' tensors: there is no fake impl or Meta kernel registered for this operator. Use impl_abstract.")
            raise NotImplementedError(f"{self}: when running with device='{device}' tensors: there is no {device} impl registered for this operator. Use impl.")

        self._lib._impl(self._opname, no_kernel, "CompositeExplicitAutograd")
        self._lib._impl(self._opname, self._recorded(), "Autograd", with_keyset=True, role="formula")


def _check_functional(schema, qualname):
    """Refuses operators that this interface is not for."""
    parts = _C._schema_parts("_::" + schema)
    if any(a[0] == "self" for a in parts[2]):
        raise ValueError(f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {schema}")
    parsed = _C.parse_schema(schema)
    if parsed.is_mutable or any(r.alias for r in parsed.returns) or not parsed.returns:
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of the inputs, and "
            f"have at least one return). Got the following non-functional schema for {qualname}: {schema}"
        )


def _check_signature(schema, function):
    """ValueError unless the parameters of a function are the arguments of a schema."""
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): positional-only args, varargs, and kwargs are not supported. Please rewrite `func` "
            f"to not have them. Got `func` with signature: {signature}"
        )
    if any(p.default is not p.empty for p in parameters):
        raise ValueError(f"custom_op(..., manual_schema)(func): `func` must not have default arguments; put them into the schema. Got `func` with signature: {signature}")
    if [(p.name, p.kind == p.KEYWORD_ONLY) for p in parameters] != [(a.name, a.kwarg_only) for a in schema.arguments]:
        raise ValueError(
            "custom_op(..., manual_schema)(func): When passing in `manual_schema`, we expect `func`'s signature to match "
            f"`manual_schema` (aside from type annotations). func's signature: {signature}, manual_schema: {schema}"
        )


def find(qualname, also_check_torch_library=False):
    """The CustomOp of a name; with also_check_torch_library one for an operator that was declared in another way. RuntimeError when there is none."""
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f"Could not find custom op '{qualname}'. Did you register it via the torch._custom_ops API?")
    overload = lookup_op(qualname)
    namespace, name = parse_name(qualname)
    return CustomOp(cresset.library.Library(namespace, "FRAGMENT"), namespace, overload._schema, name, overload, _private_access=True)


def create(qualname, schema):
    """A new operator of a schema without name, like "(Tensor x) -> Tensor"."""
    namespace, name = parse_name(qualname)
    if "." in name:
        raise ValueError(f"custom_op: the name '{qualname}' has an overload; these operators have none. Choose a name without a dot.")
    if namespace in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns={namespace!r}): {namespace} is a reserved namespace, please choose something else.")
    try:
        parsed = _C.parse_schema(f"{name}{schema}")
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {name}{schema}") from error
    _check_functional(f"{name}{schema}", qualname)
    if qualname in global_registry:
        raise RuntimeError(f"Tried to register an operator ({qualname}) multiple times. Destroy the other one first.")
    lib = cresset.library.Library(namespace, "FRAGMENT")
    lib.define(f"{name}{schema}")
    made = CustomOp(lib, namespace, parsed, name, lookup_op(qualname), _private_access=True)
    made._answer()
    return made


def custom_op(qualname, manual_schema=None):
    """A decorator: an operator with the signature of a function that is never called, as a CustomOp."""

    def make(function):
        _, name = parse_name(qualname)
        if not inspect.isfunction(function):
            raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
        if function.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got '{function.__name__}'. "
                "Please either change the name of `func` or the qualname that is passed to `custom_op`"
            )
        schema = infer_schema(function, mutates_args=()) if manual_schema is None else manual_schema
        if manual_schema is not None:
            _check_signature(_C.parse_schema(f"{name}{schema}"), function)
        return create(qualname, schema)

    return make
