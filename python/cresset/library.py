"""Operators and kernels registered from Python."""

import sys
import weakref
from contextlib import contextmanager

from . import _C
from ._ops import OpOverload, OpOverloadPacket, _forget

__all__ = ["Library", "define", "impl", "fallthrough_kernel"]

_RESERVED = ("prim",)
_DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xla": "XLA", "meta": "Meta", "default": "CompositeExplicitAutograd"}

fallthrough_kernel = _C._fallthrough_kernel


def _place(depth):
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno


def _undo(block, definitions):
    block.reset()
    for qualname in definitions:
        _forget(qualname)


class Library:
    """A block of registrations; they are undone when the object dies or `_destroy()` is called.

    kind "DEF" declares a namespace's operators (one block a namespace), "FRAGMENT" adds to a namespace from anywhere, "IMPL"
    gives kernels; `dispatch_key` is the key of kernels that are given without one.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}. Use 'DEF', 'FRAGMENT' or 'IMPL'.")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        filename, line = _place(1)
        # Kernels name their key at impl; the block itself has none, so that one library can serve several.
        self.m = _C._Library(kind, ns, "", filename, line)
        if dispatch_key:
            _C._dispatch_key_parse(dispatch_key)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs, self._op_impls = set(), set()
        self._finalizer = weakref.finalize(self, _undo, self.m, self._op_defs)

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declare an operator by its schema text, without namespace; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                "Library.define: cannot define an operator inside of an IMPL library. Use Library(ns, 'DEF') or Library(ns, 'FRAGMENT')."
            )
        tags = (tags,) if isinstance(tags, str) else tuple(tags)
        qualname = self.m.define(schema, alias_analysis, [str(t) for t in tags])
        self._op_defs.add(qualname)
        return qualname.partition("::")[2]

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
        raise RuntimeError("impl should be passed either a name or an OpOverload object as the first argument")

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Give an operator (a name with overload, or an overload object) a kernel for a dispatch key."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        name, ns = self._operator_name(op_name)
        if ns is not None and ns != self.ns:
            raise RuntimeError(
                f"Library.impl: the operator belongs to the namespace '{ns}', the library to '{self.ns}'. Use Library('{ns}', 'IMPL')."
            )
        filename, line = _place(1)
        debug = f"registered at {filename}:{line}"
        if not allow_override and f"{self.ns}::{name}/{key}" in self._op_impls:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s behavior for {key} dispatch key "
                f"and {self.ns} namespace."
            )
        self.m.impl(name, fn, key, with_keyset, debug)
        self._op_impls.add(f"{self.ns}::{name}/{key}")

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """A kernel for every operator that has none for the key; needs the namespace "_". Called as fn(op, *args, **kwargs)."""
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(f"fallback: only a library of the namespace '_' can register a fallback; this one is '{self.ns}'.")
        if not key:
            raise RuntimeError("fallback: a dispatch key is required. Pass it here or to Library.")
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        self.m.fallback(fn, key, with_keyset)

    def _destroy(self):
        """Undo the registrations now."""
        self._finalizer()


_kept = []  # libraries of the module-level functions live as long as the process, or as the `lib` they are given


def define(qualname, schema=None, *, lib=None, tags=()):
    """Declare the operator "ns::name" with a schema like "(Tensor x) -> Tensor"."""
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be an instance of str, got {type(qualname)}")
    ns, separator, name = qualname.partition("::")
    if not separator or not ns or not name:
        raise ValueError(f"Expected `qualname` to be of the form 'namespace::name', but got {qualname}. ")
    if schema is None or not schema.lstrip().startswith("("):
        raise ValueError(f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"')
    if lib is None:
        lib = Library(ns, "FRAGMENT")
        _kept.append(lib)
    lib.define(name + schema, tags=tags)


def impl(qualname, types, func=None, *, lib=None):
    """A kernel for "ns::name" on device types ("cpu", "default", …, or several); as a decorator when func is left out.

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
        if kind in _DEVICE_KEYS:
            keys.append(_DEVICE_KEYS[kind])
            continue
        try:
            keys.append(_backend_key(kind))
        except RuntimeError:
            raise ValueError(
                f"Unknown device type '{kind}': use 'default' or one of {', '.join(k for k in _DEVICE_KEYS if k != 'default')} or a registered device."
            ) from None

    def register(f):
        nonlocal lib
        if not callable(f):
            raise TypeError(f"impl: a callable was required; got {type(f).__name__}.")
        ns, _, name = qualname.partition("::")
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
