"""Modules from traces: the tree of objects that a trace records into, and the class of what it gives."""

import inspect
import threading

import cresset
from cresset.nn.modules._hooks import module_tracers

from .. import _C
from . import _marks
from ._classes import qualified_name
from ._record import parameter_names, record
from ._recursive import RecursiveScriptModule, _adopt, _wrappers, create_traced

__all__ = ["TracedModule", "TopLevelTracedModule", "traced"]


class TracedModule(RecursiveScriptModule):
    """A module inside of a traced one; its methods are what calls of it recorded. It is shown by the name of the class it was."""

    def _get_name(self):
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """What `trace` gives for a module."""


def _face(c, cls, made):
    """The Python modules of an object that was traced and of what is below it; scripted ones keep theirs."""
    known = made.get(c._id()) or _wrappers.get(c._id())
    if known is not None:
        return known
    face = made[c._id()] = cls.__new__(cls)
    return _adopt(face, c, None, {name: _face(child, TracedModule, made) for name, child in c.named_children()})


def _is_script_object(value):
    return isinstance(getattr(value, "_c", None), _C.ScriptModule)


_DEEPEST = 500


class _Tree:
    """The object that a trace records into, unless `made` is it already, and the paths of the module's submodules."""

    def __init__(self, module, made=None):
        self.paths, self.tensors, self._made = {}, [], {}
        self.handle = made
        self._walk(module, (), makes=made is None)

    def _walk(self, module, path, makes):
        """The object of a module; None where objects exist already."""
        if id(module) in self.paths:  # seen by another path: the same object again
            return self._made.get(id(module))
        if len(path) > _DEEPEST:
            raise RuntimeError(f"trace: modules nested at most {_DEEPEST} deep were required.")
        if module._backward_hooks:
            raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {module}")
        self.paths[id(module)] = path
        handle = self._made[id(module)] = _C._trace_module(qualified_name(type(module)), self.handle) if makes else None
        self.handle = self.handle or handle
        items = [("training", "attribute", module.training)]
        items += [(name, "parameter", p) for name, p in module._parameters.items()]
        items += [(name, "buffer", b) for name, b in module._buffers.items()]
        children = {name: child for name, child in module._modules.items() if child is not None}
        taken = {name for name, _, _ in items} | children.keys()
        loose = [(n, "attribute", v) for n, v in vars(module).items() if isinstance(v, cresset.Tensor) and n not in taken]
        self._add(handle, items)
        for name, child in children.items():
            made = child._c if _is_script_object(child) else self._walk(child, (*path, name), makes)
            if makes:
                _C._trace_add_module(handle, name, made)
        self._add(handle, loose)
        return handle

    def _add(self, handle, attributes):
        self.tensors += [value for _, _, value in attributes if isinstance(value, cresset.Tensor)]
        for name, kind, value in attributes if handle is not None else ():
            _C._trace_add_attribute(handle, name, kind, value)


class _Calls:
    """Sees the calls of modules while a trace records: calls of submodules are scopes, which become methods."""

    def __init__(self, paths):
        self.paths = paths

    def __call__(self, module, call, args, kwargs):
        path = self.paths.get(id(module))
        if not path or not _C._is_tracing():
            return call(args, kwargs)
        _C._trace_enter_module(path)
        try:
            return call(args, kwargs)
        finally:
            _C._trace_leave_module()

    def __enter__(self):
        module_tracers[threading.get_ident()] = self

    def __exit__(self, *_):
        del module_tracers[threading.get_ident()]


def _exports(module):
    """Has the module, or one below it, methods to compile besides what the trace records?"""
    classes = {type(m) for m in module.modules() if not _is_script_object(m)}
    return any(_marks.is_exported(f) for cls in classes for base in cls.__mro__ for f in vars(base).values() if inspect.isfunction(f))


def traced(module, inputs, strict, force_outplace=False):
    """The traced module: {method: inputs} are recorded one after the other."""
    tree = _Tree(module, create_traced(module) if _exports(module) else None)
    handle = tree.handle
    for name, given in inputs.items():
        method = getattr(module, name)
        call = module if name == "forward" else method
        with _Calls(tree.paths):
            graph = record(call, parameter_names(method, len(given)), given, strict, handle, tree.tensors, force_outplace)
        _C._trace_add_method(handle, name, graph)
    return _face(handle, TopLevelTracedModule, {})
