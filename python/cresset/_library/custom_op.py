"""`custom_op`: an operator from one Python function."""

import contextlib
import functools
import inspect
import logging
import warnings

import cresset
from cresset import _C
from cresset._tags import name_of

from .autograd import make_kernel
from .fake import MissingFake, fake_impls
from .infer_schema import infer_schema
from .library import Library
from .tagged import Tagged, check_given, way_of, with_results
from .utils import lookup_op
from .vmap import make_vmap_kernel

__all__ = ["CustomOpDef", "custom_op", "custom_ops"]

_log = logging.getLogger("torch._library.custom_ops")  # PyTorch's name, which programs listen to
custom_ops = {}  # "ns::name" → CustomOpDef


def device_key(device_type):
    """The dispatch key of a device type; None is CompositeExplicitAutograd, every device."""
    if device_type is None or device_type == "default":
        return "CompositeExplicitAutograd"
    cresset.device(device_type)  # raises and lists the valid types
    known = {"cpu": "CPU", "cuda": "CUDA", "xla": "XLA", "meta": "Meta"}
    if device_type in known:
        return known[device_type]
    key = _C._dispatch_key_parse(device_type)
    return key if isinstance(key, str) else key.name


def parse_name(qualname):
    """ "ns::name" in its two parts."""
    namespace, separator, name = qualname.partition("::")
    if not separator or not namespace or not name or "::" in name:
        raise ValueError(f"Expected `qualname` to be of the form 'namespace::name', but got {qualname}. ")
    return namespace, name


def check_functional(schema, what):
    """Raises for operators that autograd formulas are not for: those that mutate, return nothing or return views."""
    if schema.is_mutable or not schema.returns or any(r.alias for r in schema.returns):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {what} with schema {schema}. Please create a functional operator and "
            "register an autograd formula for that."
        )


class CustomOpDef:
    """An operator made by `custom_op`: callable, with methods that register kernels, gradients and fakes."""

    def __init__(self, namespace, name, schema, fn, tags=()):
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._qualname = f"{namespace}::{name}"
        functools.update_wrapper(self, fn)
        self._backend_fns, self._disabled = {}, set()
        self._abstract_fn = self._backward_fn = self._setup_context_fn = self._vmap_fn = None
        self._autocast, self._by_device = {}, False
        previous = custom_ops.pop(self._qualname, None)
        if previous is not None:
            previous._lib._destroy()
        self._lib = Library(namespace, "FRAGMENT")
        self._lib.define(name + schema, tags=tuple(dict.fromkeys(("pt2_compliant_tag", *map(name_of, tags)))))
        self._opoverload = lookup_op(self._qualname)
        way = way_of(tags)
        self._tagged = Tagged(way, self._opoverload) if way else None
        if way != "out" and any(a.kwarg_only and a.type.startswith("Tensor") for a in self._opoverload._schema.arguments):
            self._lib._destroy()
            raise NotImplementedError(f"custom_op with kwarg-only Tensor args is not supported: {self._qualname}{schema}. Make them positional.")
        self._lib._impl(name, self._fake, "Meta")
        fake_impls[self._qualname] = self._fake
        if self._is_functional() or way == "inplace":
            kernel = make_kernel(self._opoverload, lambda: (self._backward_fn, self._setup_context_fn))
            self._lib._impl(name, kernel, "Autograd", with_keyset=True, role="formula")
        elif way == "out":
            self._lib._impl(name, self._tagged.refuse_gradients, "Autograd", with_keyset=True)
        custom_ops[self._qualname] = self

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def _is_functional(self):
        try:
            check_functional(self._opoverload._schema, self)
        except RuntimeError:
            return False
        return bool(self._opoverload._schema.arguments)

    def _fake(self, *args, **kwargs):
        if self._abstract_fn is None:
            schema = self._opoverload._schema
            if self._tagged:
                return self._tagged.results(*args, **kwargs)
            if schema.is_mutable and not schema.returns:
                return None  # writing its arguments is all that it does, and they have no values
            raise MissingFake(
                f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. Please use "
                f"`{self._init_fn.__name__}.register_fake` to add an fake impl."
            )
        from .fake import FakeContext

        with FakeContext(self._qualname):
            return self._abstract_fn(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """Give the operator a kernel for a device type, several, or None for all; a decorator when fn is left out."""
        kinds = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
        keys = [(kind, device_key(kind)) for kind in kinds]
        if device_types is not None and not any("Tensor" in a.type for a in self._opoverload._schema.arguments):
            self._dispatch_by_device()

        def register(f):
            for kind, key in keys:
                known = kind in self._backend_fns
                self._backend_fns[kind] = f
                if known:
                    continue

                def kernel(*args, _kind=kind, **kwargs):
                    if _kind in self._disabled:
                        return self._init_fn(*args, **kwargs)
                    return self._backend_fns[_kind](*args, **kwargs)

                if self._tagged:  # the other role forbids to return an argument
                    self._lib._impl(self._name, self._tagged.kernel(kernel), key)
                else:
                    self._lib._impl(self._name, kernel, key, role="custom")
            return f

        return register if fn is None else register(fn)

    def _dispatch_by_device(self):
        """An operator without tensors runs the kernel of its argument `device`."""
        arguments = self._opoverload._schema.arguments
        place = next((i for i, a in enumerate(arguments) if a.name == "device" and a.type == "Device"), None)
        if place is None:
            raise ValueError(f"Functions without tensor inputs are required to have a `device: torch.device` argument; {self} has none.")
        if self._by_device:
            return
        self._by_device = True

        def kernel(*args, **kwargs):
            device = cresset.device(kwargs["device"] if "device" in kwargs else args[place])
            function = self._backend_fns.get(device.type, self._backend_fns.get(None))
            if function is None:
                raise RuntimeError(f"{self._name} does not have a kernel registered for {device.type}. Please use register_kernel to do so.")
            return function(*args, **kwargs)

        self._lib._impl(self._name, kernel, "BackendSelect")

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Use the kernel of a device type, or in its place the function that custom_op was given, for a block."""
        before = device_type in self._disabled
        if device_type not in self._backend_fns:
            _log.warning("set_kernel_enabled(%s, %s): no kernel was registered for this device type; nothing changes.", device_type, self)
        elif before == (not enabled):
            _log.warning("set_kernel_enabled(%s, %s): the kernel is already %s.", device_type, self, "enabled" if enabled else "disabled")
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            (self._disabled.add if before else self._disabled.discard)(device_type)

    def register_fake(self, fn, /):
        """What the operator does on meta tensors: sizes and dtypes without values. A second one replaces the first."""
        if self._tagged:
            warnings.warn(
                f"The fake registration for {self} is unnecessary. Custom ops tagged with torch.Tag.{self._tagged.way} already get an autogenerated fake "
                "kernel. The provided fake impl will be used instead.",
                stacklevel=2,
            )
        self._abstract_fn = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """The gradient: backward(ctx, *grads), after setup_context(ctx, inputs, output) has kept what it needs."""
        if self._tagged and self._tagged.way == "out":
            raise RuntimeError(f"Cannot register autograd formula for operator tagged with torch.Tag.out: {self}. Out variants do not support autograd.")
        check_functional(self._opoverload._schema, self)
        self._backward_fn, self._setup_context_fn = backward, setup_context

    def register_vmap(self, func=None, /):
        """The rule for vmap: func(info, in_dims, *args) → (output, out_dims). A second one replaces the first."""

        def register(f):
            known, self._vmap_fn = self._vmap_fn is not None, f
            if not known:
                self._lib._impl(self._name, make_vmap_kernel(lambda: self._vmap_fn), "FuncTorchBatched")

        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What a subclass or mode does with this operator: fn(cls or mode, func, types, args, kwargs)."""

        def register(f):
            _C._register_torch_dispatch_rule(self._opoverload, torch_dispatch_class, f)
            return f

        return register if fn is None else register(fn)

    def register_autocast(self, device_type, cast_inputs):
        """Under autocast for the device type, floating-point arguments become `cast_inputs`, and autocast is off inside."""
        from . import autocast

        key = autocast.check_device_type(device_type)
        known, self._autocast[device_type] = device_type in self._autocast, cast_inputs
        kernel = autocast.make_kernel(self._opoverload, device_type, lambda: self._autocast[device_type])
        if not known:
            self._lib._impl(self._name, kernel, key, with_keyset=True)
        return kernel


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make an operator "ns::name" from a function; a decorator when fn is left out.

    mutates_args: names of the tensor arguments that the function writes to, or "unknown". device_types: for which devices the
    function is the kernel; all when left out. schema: inferred from the annotations (`infer_schema`) when left out. tags: with Tag.inplace the
    function writes to its first argument and returns it, with Tag.out to keyword-only tensors, which it returns.

    >>> @custom_op("mylib::numpy_sin", mutates_args=())
    ... def numpy_sin(x: cresset.Tensor) -> cresset.Tensor:
    ...     return cresset.from_numpy(numpy.sin(x.numpy()))
    """

    def make(f):
        text = infer_schema(f, mutates_args=mutates_args) if schema is None else schema
        namespace, short = parse_name(name)
        given = () if tags is None else (tags,) if isinstance(tags, str) else tuple(tags)
        way = way_of(given)
        if way and schema is None:
            text = with_results(text, f, way, mutates_args)
        elif way:
            check_given(schema, short, way)
        if schema is not None:
            _check_given(f, schema, mutates_args)
        made = CustomOpDef(namespace, short, text, f, given)
        made.register_kernel(device_types, f)
        return made

    return make if fn is None else make(fn)


def _check_given(fn, schema, mutates_args):
    """A schema that was written must mutate what mutates_args says and take the function's parameters."""
    parsed = _C._schema_parts("_::_" + schema)
    mutated = {a[0] for a in parsed[2] if a[-1]}
    if mutates_args != "unknown" and mutated != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests that the op mutates "
            f"{mutated} which is different from what was provided to us in `mutates_args`. Please make these consistent."
        )
    parameters = inspect.signature(fn).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    names, given = [p.name for p in parameters], [a[0] for a in parsed[2]]
    if len(names) != len(given):
        raise ValueError(f"custom_op: the schema {schema} has the arguments {given}, the function has {names}. They must be as many.")
