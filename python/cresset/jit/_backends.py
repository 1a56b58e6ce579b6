"""Modules for backends that take whole modules: `to_backend`, and of a larger module some parts: `to_backend_selective`. PyTorch has them as
`_C._jit_to_backend` and `_C._jit_to_backend_selective`."""

import collections
import re
from typing import Any, Dict

import cresset
from cresset import _C

from . import _definitions, _source
from ._recursive import Attribute, ScriptModule, wrap_module

__all__ = ["to_backend", "to_backend_selective"]

_STATE = """
def __getstate__(self):
    return self.__method_compile_spec, self.__processed_module, self.training

def __setstate__(self, state: Tuple[Dict[str, Any], Any, bool]) -> None:
    self.__method_compile_spec = state[0]
    self.__processed_module = state[1]
    self.training = state[2]
    self.__backend = Backend()
    if self.__backend.is_available():
        self.__handles = self.__backend.compile(self.__processed_module, self.__method_compile_spec)
    else:
        raise Exception("Backend is not available.")
"""
_METHOD = """
def {name}(self{parameters}):
    if not self.__backend.is_available():
        raise Exception("Backend is not available.")
    typed_inputs = annotate(List[Any], [{arguments}])
    results = self.__backend.execute(self.__handles["{name}"], typed_inputs)
{checks}
    return {results}
"""
_WRAPPER = """
def {name}(self{parameters}):
    return self.__loweredModule__.{name}({arguments})
"""


def to_backend(backend, module, method_compile_spec):
    """A script module whose methods a backend runs: those that the dict `method_compile_spec` names, each with what the backend wants to be
    told. `module` is a script module, and stays as it is. RuntimeError for an unknown backend, for other modules and for methods that the
    module does not have. On a machine where the backend is not available, calls of the methods raise, and so does loading."""
    if not isinstance(module, ScriptModule):
        raise RuntimeError(f"Object {module} is not a ScriptModule")
    made_by = getattr(cresset.classes.__backends__, backend)
    spec = dict(method_compile_spec)
    methods = {}
    for name in spec:
        if not module._c._has_method(name):
            raise RuntimeError(f"Method {name} in the compile spec is not a method of {module.original_name}.")
        methods[name] = module._c._get_method(name)
    processed = _C._jit_backend_preprocess(backend, module._c, spec)
    engine = made_by()
    handles = engine.compile(processed, spec) if engine.is_available() else {}
    state = {
        "__backend": engine, "__processed_module": Attribute(processed, Any), "__method_compile_spec": Attribute(spec, Dict[str, Any]),
        "__handles": Attribute(handles, Dict[str, Any]),
    }  # fmt: skip
    texts = {**_definitions_of(_STATE, made_by), **{name: _method(_METHOD, name, like) for name, like in methods.items()}}
    lowered = _made("LoweredModule", backend, module, state, texts)
    return _made("LoweredWrapper", backend, module, {"__loweredModule__": lowered}, {n: _method(_WRAPPER, n, like) for n, like in methods.items()})


def _made(kind, backend, module, members, texts):
    """A module of a class of its own, `__torch__.torch.jit.KIND.BACKEND.NAME`."""

    def init(self):
        super(cls, self).__init__()
        self.training = module.training
        for name, value in members.items():
            setattr(self, name, value)
        self.__dict__["_texts"] = texts

    name = module.original_name
    cls = type(name, (ScriptModule,), {"__init__": init, "__module__": f"torch.jit.{kind}.{backend}", "__qualname__": name})
    return cls()


def _definitions_of(text, made_by=None):
    names = {"Backend": made_by, "annotate": cresset.jit.annotate, **vars(__import__("typing"))}

    def lookup(name):
        if name in names:
            return names[name]
        return _source.closure_names(_definitions_of)(name)

    return _definitions.definitions_of_text(text, lookup)


def _method(form, name, like):
    """The definition of a method with the parameters of another."""
    types = {re.sub(r"\.\d+$", "", v.debugName()): v.type() for v in list(like.graph.inputs())[1:]}
    defaults = {n: found[1] for n in types if (found := re.search(rf" {n}=([^,()\[\]]+)", str(like.schema)))}
    results = [v.type() for v in like.graph.outputs()]
    several = len(results) == 1 and results[0].kind() == "TupleType"
    if several:
        results = results[0].elements()
    checks = [f"    _{i} = results[{i}]\n    assert isinstance(_{i}, {r.annotation_str})" for i, r in enumerate(results)]
    text = form.format(
        name=name, parameters="".join(f", {n}={defaults[n]}" if n in defaults else f", {n}" for n in types), arguments=", ".join(types),
        checks="\n".join(checks), results=", ".join(f"_{i}" for i in range(len(results))) + ("," if several and len(results) == 1 else "") or "None",
    )  # fmt: skip
    definition = _definitions_of(text)[name]
    definition.types.update(types)
    return definition


def to_backend_selective(module, lower, paths):
    """`module` with the submodules at these paths replaced by what `lower` makes of them, in place. RuntimeError where a class of such a
    submodule, or of a module that leads to it, is that of another module as well: their graphs are shared."""
    if not isinstance(module, ScriptModule):
        raise RuntimeError(f"Object {module} is not a ScriptModule")
    steps = [path.split(".") for path in paths]
    counts = collections.Counter(m._c.qualified_name for m in module.modules())
    for step in steps:
        part = module
        for name in step:
            if name not in part._modules:
                raise RuntimeError(f"Attribute named {name} is not a Module")
            part = part._modules[name]
            if counts[part._c.qualified_name] != 1:
                raise RuntimeError("Selective lowering is only supported for module hierarchies with unique types for selected modules")
    for *parents, name in steps:
        parent = module
        for step in parents:
            parent = parent._modules[step]
        lowered = lower(parent._modules[name])
        _C._jit_replace_submodule(module._c, parent._c, name, lowered._c)
        parent._modules[name] = wrap_module(lowered._c)
        parent.__dict__["_concrete"] = None
    for part in module.modules():
        part.__dict__["_concrete"] = None
        part._take_methods()
    return module
