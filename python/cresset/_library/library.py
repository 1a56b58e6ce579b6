"""Blocks of registrations of operators and kernels."""

import os
import sys
import weakref

from .. import _C
from .._hints import with_hint
from .._layout_kernels import KEYS, kernels
from .._ops import OpOverload, OpOverloadPacket, _forget, declared_by_programs, declared_in_python
from .._tags import name_of
from .utils import lookup_op

__all__ = ["Library"]

_RESERVED = ("prim",)


def _place(depth):
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_PUBLIC = (os.path.dirname(__file__) + os.sep, _PACKAGE + "library.py")  # where libraries are made for programs


_impls = set()  # "ns/name/key" of every kernel that a Library has registered


def _undo(block, definitions, own, all_kernels):
    block.reset()
    for qualname in definitions:
        _forget(qualname)
        declared_in_python.discard(qualname)
        declared_by_programs.discard(qualname)
    all_kernels -= own
    for entry in own:
        kernels.pop(entry, None)


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
        """Declare an operator by its schema text; returns its name as the schema writes it, without the overload."""
        self._define(schema, alias_analysis, tags)
        return schema.split("(")[0].split(".")[0].strip()

    def _define(self, schema, alias_analysis="", tags=()):
        """`define`, which returns the name with its overload, without namespace."""
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
        if not self._made_at.startswith(_PACKAGE) or self._made_at.startswith(_PUBLIC):
            declared_by_programs.add(qualname)
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
        if key in KEYS:
            kernels[entry] = fn

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
        _C._register_torch_dispatch_rule(lookup_op(f"{self.ns}::{op_name}"), torch_dispatch_class, fn)

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


Library.__module__ = "cresset.library"
