"""Operators and kernels registered from Python."""

import functools
from contextlib import contextmanager

from . import _C
from ._library.custom_op import CustomOpDef, custom_op, custom_ops, device_key
from ._library.fake import get_ctx
from ._hints import with_hint
from ._library.infer_schema import infer_schema
from ._library.vmap import make_vmap_kernel
from ._library.library import Library, _impls  # noqa: F401
from ._ops import OpOverload, OpOverloadPacket

__all__ = [
    "Library", "define", "impl", "fallthrough_kernel", "impl_abstract", "register_autocast", "register_fake", "register_torch_dispatch", "register_vmap",
    "get_ctx", "get_kernel", "custom_op", "triton_op", "wrap_triton", "infer_schema",
]  # fmt: skip

_BAD_NAME = (
    'Expected `qualname` to be of the form "namespace::name", but got {}. The qualname passed to the cresset.library APIs must consist of a '
    "namespace and a name, e.g. aten::sin"
)
_DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xla": "XLA", "meta": "Meta", "default": "CompositeExplicitAutograd"}

fallthrough_kernel = _C._fallthrough_kernel


_kept = []  # libraries of the module-level functions live as long as the process, or as the `lib` they are given


def define(qualname, schema=None, alias_analysis="", *, lib=None, tags=()):
    """Declare the operator "ns::name" with a schema like "(Tensor x) -> Tensor".

    `define(library, "name(Tensor x) -> Tensor", alias_analysis="")` is the older form: a decorator that also makes the function the
    operator's kernel for every device, differentiable through its parts (or for the library's dispatch key).
    """
    if isinstance(qualname, Library):
        library = qualname

        def old_form(f):
            library.impl(library._define(schema, alias_analysis, tags), f)
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
    """custom_op for a function that may call kernels of Triton by `wrap_triton`; the function also computes shapes of tensors without data.

    Kernels of Triton need a GPU, so here such a function can only compute in another way; programs choose one by the device of the arguments.
    """

    def make(f):
        made = custom_op(name, f, mutates_args=mutates_args, schema=schema)
        made.register_fake(f)
        return made

    return make if fn is None else make(fn)


def wrap_triton(triton_kernel, /):
    """NotImplementedError: there is no Triton backend."""
    raise NotImplementedError("wrap_triton: this package has no Triton backend. Use custom_op around the launch of the kernel.")


def opcheck(op, args, kwargs=None, **options):
    """Test an operator's registrations; see `cresset._library.opcheck.opcheck`."""
    from ._library.opcheck import opcheck as run

    return run(op, args, kwargs, **options)
