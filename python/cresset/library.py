"""Operators and kernels registered from Python."""

import functools
import sys
import weakref
from contextlib import contextmanager

from . import _C
from ._library.custom_op import CustomOpDef, custom_op, custom_ops, device_key
from ._library.fake import get_ctx
from ._hints import with_hint
from ._library.infer_schema import infer_schema
from ._library.vmap import make_vmap_kernel
from ._ops import OpOverload, OpOverloadPacket, _forget, declared_in_python
from ._tags import name_of

__all__ = [
    "Library", "define", "impl", "fallthrough_kernel", "impl_abstract", "register_autocast", "register_fake", "register_torch_dispatch", "register_vmap",
    "get_ctx", "get_kernel", "custom_op", "triton_op", "wrap_triton", "infer_schema",
]  # fmt: skip

_RESERVED = ("prim",)
_BAD_NAME = (
    'Expected `qualname` to be of the form "namespace::name", but got {}. The qualname passed to the cresset.library APIs must consist of a '
    "namespace and a name, e.g. aten::sin"
)
_DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xla": "XLA", "meta": "Meta", "default": "CompositeExplicitAutograd"}

fallthrough_kernel = _C._fallthrough_kernel


def _place(depth):
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno


_impls = set()  # "ns/name/key" of every kernel that a Library has registered


def _undo(block, definitions, kernels, all_kernels):
    block.reset()
    for qualname in definitions:
        _forget(qualname)
        declared_in_python.discard(qualname)
    all_kernels -= kernels


class Library:
    """A block of registrations; they are undone when the object dies or `_destroy()` is called.

    kind "DEF" declares a namespace's operators (one block a namespace), "FRAGMENT" adds to a namespace from anywhere, "IMPL"
    gives kernels; `dispatch_key` is the key of kernels that are given without one.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise with_hint(ValueError(f"Unsupported kind: {kind}"), "Use 'DEF', 'FRAGMENT' or 'IMPL'.")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        filename, line = _place(1)
        self._made_at = f"{filename}:{line}"
        # Kernels name their key at impl; the block itself has none, so that one library can serve several.
        self.m = _C._Library(kind, ns, "", filename, line)
        if dispatch_key:
            _C._dispatch_key_parse(dispatch_key)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs, self._op_impls = set(), set()
        self._finalizer = weakref.finalize(self, _undo, self.m, self._op_defs, self._op_impls, _impls)

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declare an operator by its schema text, without namespace; returns its name, with the namespace."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        written = schema.split("(")[0]
        if self.kind == "IMPL":
            error = RuntimeError(
                f'def("{written}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should be placed in '
                "the (unique) TORCH_LIBRARY block for their namespace.  (Error occurred while processing TORCH_LIBRARY_IMPL block at "
                f"{self._made_at})"
            )
            raise with_hint(error, "Use Library(ns, 'DEF') or Library(ns, 'FRAGMENT').")
        tags = (tags,) if isinstance(tags, str) else tuple(tags)
        qualname = self.m.define(schema, alias_analysis, [name_of(t) for t in tags])
        self._op_defs.add(qualname)
        declared_in_python.add(qualname)
        return qualname

    def _operator_name(self, op_name):
        if isinstance(op_name, OpOverload):
            return op_name.name().partition("::")[2], op_name.namespace
        if isinstance(op_name, OpOverloadPacket):
            return op_name.__name__, op_name._namespace
        if isinstance(op_name, str):
            name, ns = op_name, None
            if "::" in name:
                ns, name = name.split("::")
            return name, ns
        raise RuntimeError(f"impl should be passed either a name or an OpOverload object as the first argument, got {type(op_name)}")

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Give an operator (a name with overload, or an overload object) a kernel for a dispatch key."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name, ns = self._operator_name(op_name)
        key = self._key("impl", name, dispatch_key)
        if ns is not None and ns != self.ns:
            error = RuntimeError(
                f'impl("{ns}::{name}", ...): Explicitly provided namespace ({ns}) in operator name does not match namespace of enclosing '
                f"TORCH_LIBRARY_IMPL block ({self.ns}).  Move this definition to the TORCH_LIBRARY_IMPL block corresponding to this namespace (and "
                "consider deleting the namespace from your schema string.)  (Error occurred while processing TORCH_LIBRARY_IMPL block at "
                f"{self._made_at})"
            )
            raise with_hint(error, f"Use Library('{ns}', 'IMPL').")
        entry = f"{self.ns}/{name}/{key}"
        if not allow_override and entry in _impls:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s behavior for {key} dispatch key "
                f"and {self.ns} namespace."
            )
        self._impl(name, fn, key, with_keyset=with_keyset, depth=2)
        self._op_impls.add(entry)
        _impls.add(entry)

    def _key(self, call, name, given):
        """The dispatch key of a registration: the given one or the block's; an IMPL block has one for good."""
        own = self.dispatch_key
        if given and own and self.kind == "IMPL" and _C._dispatch_key_parse(given) != _C._dispatch_key_parse(own):
            what = f'{call}("{name}", ...)' if name else f"{call}(...)"
            raise RuntimeError(
                f"{what}: Explicitly provided dispatch key ({given}) is inconsistent with the dispatch key of the enclosing "
                f"TORCH_LIBRARY_IMPL block ({own}). Make a Library('{self.ns}', 'IMPL', '{given}') for it."
            )
        return given or own

    def _impl(self, name, fn, key, *, with_keyset=False, role="", depth=1):
        """Register without the questions of `impl`. role "formula": asked only when something is recorded; "custom": results must be fresh."""
        filename, line = _place(depth)
        self.m.impl(name, fn, key, with_keyset, f"registered at {filename}:{line}", role)

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        """What a subclass or mode does with one operator of this namespace; see `register_torch_dispatch`."""
        register_torch_dispatch(f"{self.ns}::{op_name}", torch_dispatch_class, fn)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """A kernel for every operator that has none for the key; needs the namespace "_". Called as fn(op, *args, **kwargs)."""
        key = self._key("fallback", "", dispatch_key)
        if self.ns != "_":
            raise RuntimeError(f'Fallback can only be registered using library fragment on the global namespace "_" but it is {self.ns}')
        if not key:
            raise RuntimeError("fallback: a dispatch key is required. Pass it here or to Library.")
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        self.m.fallback(fn, key, with_keyset)

    def _destroy(self):
        """Undo the registrations now."""
        self._finalizer()


_kept = []  # libraries of the module-level functions live as long as the process, or as the `lib` they are given


def define(qualname, schema=None, alias_analysis="", *, lib=None, tags=()):
    """Declare the operator "ns::name" with a schema like "(Tensor x) -> Tensor".

    `define(library, "name(Tensor x) -> Tensor", alias_analysis="")` is the older form: a decorator that also makes the function the
    operator's kernel for every device, differentiable through its parts (or for the library's dispatch key).
    """
    if isinstance(qualname, Library):
        library = qualname

        def old_form(f):
            library.impl(library.define(schema, alias_analysis, tags=tags), f)
            return f

        return old_form
    if alias_analysis:
        raise TypeError("define(): alias_analysis belongs to the form define(library, schema, alias_analysis).")
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    ns, separator, name = qualname.partition("::")
    if not separator or not ns or not name:
        raise ValueError(_BAD_NAME.format(qualname))
    if schema is None or not schema.lstrip().startswith("("):
        raise ValueError(f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"')
    if lib is None:
        lib = Library(ns, "FRAGMENT")
        _kept.append(lib)
    lib.define(name + schema, tags=tags)


def impl(qualname, types, func=None, *, lib=None):
    """A kernel for "ns::name" on device types ("cpu", "default", …, or several) or for dispatch keys ("CPU", "Meta",
    "CompositeExplicitAutograd", …); as a decorator when func is left out.

    `impl(library, name, dispatch_key="")` is the older form, a decorator.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, "" if func is None else func

        def old_form(f):
            library.impl(name, f, key)
            return f

        return old_form
    types = (types,) if isinstance(types, str) else tuple(types)
    keys = []
    for kind in types:
        if kind in _DEVICE_KEYS or kind in _C.DispatchKey.__members__:
            keys.append(_DEVICE_KEYS.get(kind, kind))
            continue
        try:
            keys.append("PrivateUse1" if kind == "privateuseone" else _backend_key(kind))  # also once that has another name
        except RuntimeError as error:
            raise with_hint(RuntimeError(str(error)), "For every device type write 'default'.") from None

    def register(f):
        nonlocal lib
        if not callable(f):
            raise TypeError(f"impl: a callable was required; got {type(f).__name__}.")
        ns, separator, name = qualname.partition("::")
        if not separator or not ns or not name:
            raise ValueError(_BAD_NAME.format(qualname))
        target = lib
        if target is None:
            target = Library(ns, "FRAGMENT")
            _kept.append(target)
        for key in dict.fromkeys(keys):
            target.impl(name, f, key)
        return f

    return register if func is None else register(func) and None


def _backend_key(device_type):
    import cresset

    cresset.device(device_type)  # raises for unknown names
    return _C._dispatch_key_parse(device_type)


@contextmanager
def _scoped_library(*args, **kwargs):
    """A library for a block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


def _entry(op, what):
    """(CustomOpDef or None, overload) of an operator given by name, overload, packet or CustomOpDef."""
    if isinstance(op, CustomOpDef):
        return op, op._opoverload
    if isinstance(op, OpOverloadPacket):
        op = op.default
    if isinstance(op, OpOverload):
        return custom_ops.get(op.name()), op
    if not isinstance(op, str):
        raise ValueError(f"{what}(op): got unexpected type for op: {type(op)}")
    ns, separator, name = op.partition("::")
    if not separator or not ns or not name:
        raise ValueError(_BAD_NAME.format(op))
    base, _, overload = name.partition(".")
    found = _C._find_overload(f"{ns}::{base}", "" if overload == "default" else overload)
    if found is None:
        if what == "register_fake":
            raise RuntimeError(f"operator {op} does not exist")
        import cresset

        getattr(getattr(cresset.ops, ns), base)  # raises the words of the attribute that is not there
        raise AttributeError(f"The underlying op of '{ns}.{base}' has no overload name '{overload}'")
    return custom_ops.get(op), found


def _keep(lib, ns):
    if lib is None:
        lib = Library(ns, "FRAGMENT")
        _kept.append(lib)
    elif lib.ns != ns:
        raise RuntimeError(f"The operator belongs to the namespace '{ns}', the library to '{lib.ns}'. Pass a library of '{ns}', or none.")
    return lib


def _short_name(overload):
    return overload.name().partition("::")[2]


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """A kernel for an operator on a device type, several, or None for all; a decorator when func is left out."""
    custom, overload = _entry(op, "register_kernel")
    if custom is not None:
        return custom.register_kernel(device_types, func) if func is not None else custom.register_kernel(device_types)
    kinds = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
    keys = dict.fromkeys(map(device_key, kinds))

    def register(f):
        target = _keep(lib, overload.namespace)
        for key in keys:
            target.impl(_short_name(overload), f, key)
        return f

    return register if func is None else register(func) and None


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1):
    """What an operator does on meta tensors: sizes and dtypes of the results, no values. A second one replaces the first.

    Inside of the function `get_ctx()` gives its context.
    """
    custom, overload = _entry(op, "register_fake")

    def register(f):
        if custom is not None:
            return custom.register_fake(f)
        if overload.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
            raise RuntimeError(
                f"We should not register a meta kernel directly to the operator '{overload.name()}', because it has a CompositeImplicitAutograd "
                "kernel. Instead we should let the operator decompose, and ensure that we have meta kernels for the base ops that it decomposes into."
            )
        from ._library.fake import FakeContext, fake_impls

        @functools.wraps(f)
        def kernel(*args, **kwargs):
            with FakeContext(overload.name()):
                return f(*args, **kwargs)

        _keep(lib, overload.namespace).impl(_short_name(overload), kernel, "Meta")
        fake_impls[overload.name()] = kernel
        return f

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The older name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The gradient of an operator: backward(ctx, *grads) gives one for each argument.

    setup_context(ctx, inputs, output), or (ctx, inputs, keyword_only_inputs, output), keeps for backward what it needs. Operators that
    write to arguments, return views or return nothing are refused.
    """
    from ._library.autograd import make_kernel
    from ._library.custom_op import check_functional

    custom, overload = _entry(op, "register_autograd")
    if custom is not None:
        custom.register_autograd(backward, setup_context=setup_context)
        return
    schema = overload._schema
    check_functional(schema, overload)
    if any(a.kwarg_only and a.type.startswith("Tensor") for a in schema.arguments):
        raise NotImplementedError(
            f"register_autograd with kwarg-only Tensor args is not supported: {overload.name()} with schema {schema}. Make them positional."
        )
    kernel = make_kernel(overload, lambda: (backward, setup_context))
    _keep(lib, overload.namespace)._impl(_short_name(overload), kernel, "Autograd", with_keyset=True, role="formula", depth=2)


_vmap_rules = {}  # operator name → rule


def register_vmap(op, func=None, /, *, lib=None):
    """Give an operator the rule that vmap uses: func(info, in_dims, *args, **kwargs) → (output, out_dims). A second one replaces the first.

    info has batch_size and randomness; in_dims says for each argument which dimension holds the examples (None: shared by all).
    """
    custom, overload = _entry(op, "register_vmap")
    if any(a.kwarg_only and a.type.startswith("Tensor") for a in overload._schema.arguments):
        raise NotImplementedError(f"register_vmap with kwarg-only Tensor args is not supported: {overload.name()}. Make them positional.")

    def register(f):
        if custom is not None:
            return custom.register_vmap(f)
        known = overload.name() in _vmap_rules
        _vmap_rules[overload.name()] = f
        if not known:
            kernel = make_vmap_kernel(lambda: _vmap_rules[overload.name()])
            _keep(lib, overload.namespace)._impl(_short_name(overload), kernel, "FuncTorchBatched", depth=2)
        return f

    return register if func is None else register(func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """In an autocast block for the device type, floating-point arguments of an operator become `cast_inputs` and it runs with autocast off.

    For operators of any namespace; for one of PyTorch's that has a rule already, this one comes in its place.
    """
    from ._library import autocast

    custom, overload = _entry(op, "register_autocast")
    if custom is not None:
        return custom.register_autocast(device_type, cast_inputs)
    key = autocast.check_device_type(device_type)
    kernel = autocast.make_kernel(overload, device_type, lambda: cast_inputs)
    _keep(lib, overload.namespace)._impl(_short_name(overload), kernel, key, with_keyset=True, depth=2)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """What a subclass or mode does with one operator, in place of its __torch_dispatch__: func(cls or mode, func, types, args, kwargs)."""
    _, overload = _entry(op, "register_torch_dispatch")

    def register(f):
        _C._register_torch_dispatch_rule(overload, torch_dispatch_class, f)
        return f

    return register if func is None else register(func)


class _Kernel:
    """The kernel that an operator has for a dispatch key now."""

    def __init__(self, overload, key):
        self._overload, self._keys = overload, _C.DispatchKeySet(key)

    def call_boxed(self, *args, **kwargs):
        """Run it."""
        keys = args[0] if args and isinstance(args[0], _C.DispatchKeySet) else None
        return self._overload.redispatch(self._keys, *(args[1:] if keys is not None else args), **kwargs)

    __call__ = call_boxed

    def __repr__(self):
        return f"SafeKernelFunction({self._overload.name()}, {self._keys})"


def get_kernel(op, dispatch_key):
    """The kernel of an operator for a dispatch key; RuntimeError when it has none."""
    _, overload = _entry(op, "get_kernel")
    name = dispatch_key if isinstance(dispatch_key, str) else dispatch_key.name
    if not _C._dispatch_has_computed_kernel_for_dispatch_key(overload.name(), name):
        raise RuntimeError(f"no kernel for {name} for {overload.name()}")
    return _Kernel(overload, name)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """Refused: there is no Triton backend."""
    raise NotImplementedError(f"triton_op: '{name}' cannot be made, since this package has no Triton backend. Use custom_op.")


def wrap_triton(triton_kernel, /):
    """Refused: there is no Triton backend."""
    raise NotImplementedError("wrap_triton: this package has no Triton backend. Use custom_op around the launch of the kernel.")


def opcheck(op, args, kwargs=None, **options):
    """Test an operator's registrations; see `cresset._library.opcheck.opcheck`."""
    from ._library.opcheck import opcheck as run

    return run(op, args, kwargs, **options)
