"""The type of one module: attributes, constants, submodules and what else the compiler asks of `self`."""

import collections.abc
import inspect
import types
import weakref

import cresset
from cresset import _C
from cresset._C import ScriptThing
from cresset.nn import Module, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from cresset.nn.parameter import Parameter, is_lazy
from cresset._quantized_types import script_number
from cresset._same_names import own_module

from . import _definitions, _hooks, _marks, _overloads, _replacements, _state
from ._classes import methods_of_interface, qualified_name, type_of_class
from ._names import attribute_thing, python_call, thing_of  # noqa: F401
from ._types import UnknownType, type_of_annotation, type_of_value, unwrap_final

__all__ = ["Attribute", "ConcreteType", "ConcreteTypeStore", "concrete_type"]

# What every module has and no script sees.
_HIDDEN = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_pre_hooks", "_backward_hooks", "_is_full_backward_hook",
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_version", "dump_patches",
    "call_super_init", "T_destination", "_c", "_concrete", "_texts", "_typed_attributes",
}  # fmt: skip
_CONTAINERS = (ModuleList, Sequential, ModuleDict, ParameterList, ParameterDict)


class Attribute(collections.namedtuple("Attribute", ["value", "type"])):
    """`self.x = Attribute(value, type)`: an attribute of a script module with the given type."""


class ConcreteType:
    """What the compiler knows of the modules that share one class. Filled by `concrete_type`, then given its class by `create`."""

    def __init__(self, module):
        self.cls = type(module)
        self.type = None  # _C.ClassType, once created
        self.attributes = {}  # {name: (type, is parameter, is buffer)}
        self.constants = {}  # {name: (value, type)}
        self.submodules = {}  # {name: ConcreteType, or the interface type it is used through}
        self.behind_interfaces = []  # the ConcreteTypes of those, which live as long as this one
        self.things = {}  # {name: thing}: functions and the like
        self.failed = {}  # {name: why a script cannot have it}
        self.hooks = ((), ())  # functions before and after forward
        self.compiled = False
        self.traced = False  # forward and hooks come from a trace: only what is exported is compiled
        self._hook_functions = ([], [])
        self._keys = _container_keys(module)
        self._is_dict = isinstance(module, (ModuleDict, ParameterDict))
        self._overrides = _overridden_protocol(module)
        self._methods = {}  # {name: Python function to compile, when something reaches it}
        self._texts = {}  # {name: definition} of methods from source texts
        self._alternatives = _replacements.alternatives_of(module)

    # Sharing ----------------------------------------------------------------------------------------------------------

    def key(self):
        """What two modules must have in common to be of one class."""
        return (
            self.cls,
            tuple((name, str(kind), *flags) for name, (kind, *flags) in self.attributes.items()),
            tuple((name, repr(value), type(value)) for name, (value, _) in self.constants.items()),
            tuple((name, id(sub) if isinstance(sub, ConcreteType) else sub.qualified_name()) for name, sub in self.submodules.items()),
            tuple((name, _identity(thing)) for name, thing in self.things.items()),
            tuple(map(id, self.hooks[0])), tuple(map(id, self.hooks[1])), tuple(self._keys or ()),
            tuple((name, id(f)) for name, f in self._methods.items()),
        )  # fmt: skip

    def create(self):
        """Make the class."""
        self.type = _C._jit_class(qualified_name(self.cls), True)
        _state.concrete_types.add(self)
        for name, (kind, parameter, buffer) in self.attributes.items():
            _C._jit_class_attribute(self.type, name, kind, parameter, buffer)
        for name, sub in self.submodules.items():
            _C._jit_class_attribute(self.type, name, sub.type if isinstance(sub, ConcreteType) else sub, False, False)
        for name, (value, kind) in self.constants.items():
            if kind is not None:
                _C._jit_class_constant(self.type, name, value, kind)

    def compile(self):
        """Compile forward, what is exported, and hooks; with them what they reach."""
        if self.compiled:
            return
        self.compiled = True
        try:
            roots = self._roots()
            for name in roots:
                self._compile_method(name)
            if not self.traced:
                self._compile_hooks()
        except BaseException:
            self.compiled = False
            raise

    def _roots(self):
        names = ["forward"] if self._is_compiled("forward") and not self.traced else []
        return names + list(self._texts) + [n for n, f in self._methods.items() if n not in names and _marks.is_exported(f)]

    def _is_compiled(self, name):
        function = self._methods.get(name)
        if function is None or name in self._texts or _marks.is_ignored(function):
            return False
        if issubclass(self.cls, _script_module_class()):
            return _marks.is_exported(function)  # the old style: only what is decorated
        return function is not Module.forward

    def define(self, definitions):
        """Methods from source texts: `definitions_of_text`. They are compiled where the class is, and at once when it is already."""
        for name in definitions:
            if _C._jit_class_method(self.type, name) is not None:
                raise RuntimeError(f"Can't redefine method: {name} on class: {self.type.qualified_name()}")
        self._texts.update(definitions)
        if not self.compiled:
            return
        try:
            for name in definitions:
                self._compile_method(name)
        except BaseException:
            for name in definitions:
                del self._texts[name]
            raise

    def _compile_method(self, name):
        if name in self._texts:
            if _C._jit_class_method(self.type, name) is None:
                _C._jit_define(self.type.qualified_name(), [self._texts[name]], self.type, self)
            return
        if _overloads.overloads_of(self._methods[name]):
            return  # each is compiled by the first call that it fits
        if _C._jit_class_method(self.type, name) is None:
            if not inspect.signature(self._methods[name]).parameters:
                raise RuntimeError("methods must have a self argument")
            definition = _definitions.definition_of(self._methods[name], name)
            if name == "__setstate__" and "__getstate__" in self._methods:
                self._take_state_type(definition)
            _C._jit_define(self.type.qualified_name(), [definition], self.type, self)

    def _take_state_type(self, definition):
        """What __setstate__ takes is what __getstate__ gives, unless it is annotated."""
        self._compile_method("__getstate__")
        parameters = list(inspect.signature(self._methods["__setstate__"]).parameters)
        if len(parameters) == 2 and parameters[1] not in definition.types and not _definitions.types_in_comments(self._methods["__setstate__"]):
            definition.types[parameters[1]] = next(_C._jit_class_method(self.type, "__getstate__").graph.outputs()).type()

    def _compile_hooks(self):
        for functions, before in zip(self.hooks, (True, False)):
            names = {}
            for function in functions:
                if names.setdefault(function.__name__, function) is not function:
                    raise RuntimeError(
                        f"{'Pre-hook' if before else 'Hook'} '{function.__name__}' on {self.cls.__name__} has at least two different python "
                        "definitions. Please use unique names for all hooks."
                    )
            compiled = {name: self._compile_hook(name, function, before) for name, function in names.items()}
            for function in functions:
                hook = compiled[function.__name__]
                _C._jit_class_hook(self.type, hook, before)
                self._hook_functions[0 if before else 1].append(hook)
        _hooks.check(self, [_C._jit_class_method(self.type, "forward"), *self._hook_functions], self.hooks)

    def _compile_hook(self, name, function, before):
        if _C._jit_class_method(self.type, name) is not None or name in self._methods or (not before and name in {f.__name__ for f in self.hooks[0]}):
            raise RuntimeError(
                f"Can't define hook: {name} on class: {self.type.qualified_name()} because a method or hook with that name already exists."
            )
        definition = _definitions.definition_of(function)
        definition.types[next(iter(inspect.signature(function).parameters))] = self.type
        return _C._jit_define(self.type.qualified_name(), [definition], None, self)[0]

    # What the compiler asks (script_values.cpp) -------------------------------------------------------------------------

    def attribute(self, name):
        """The thing that `self.name` is."""
        sub = self.submodules.get(name)
        if isinstance(sub, ConcreteType):
            return ScriptThing.submodule(name, sub)
        if sub is not None or name in self.attributes:
            return ScriptThing.value(name)
        if name in self.constants:
            return thing_of(self.constants[name][0], name, constant=True)
        if name in self.things:
            return self.things[name]
        if name in self._texts:
            self._compile_method(name)
            return ScriptThing.method(name)
        function = self._methods.get(name)
        if function is not None:
            if _marks.is_ignored(function):
                return python_call(function, bound=True)
            count = len(self._overloads(name))
            if count:
                return ScriptThing.methods(name, count)
            self._compile_method(name)
            return ScriptThing.method(name)
        item = inspect.getattr_static(self.cls, name, None)
        if isinstance(item, property) and not _marks.is_ignored(item.fget):
            self._compile_accessor("__get_" + name, item.fget)
            return ScriptThing.getter("__get_" + name)
        if name in _MEMBERS:
            return ScriptThing.members(name, name.startswith("named_"), tuple(_MEMBERS[name](self)))
        if name in self.failed:
            return ScriptThing.missing(f"Module '{self.cls.__name__}' has no attribute '{name}' ({self.failed[name]})")
        return ScriptThing.missing(f"Module '{self.cls.__name__}' has no attribute '{name}' ")

    def _overloads(self, name):
        """Definitions by name of a method that is declared for several types; empty for others."""
        function = self._methods[name]
        return [
            (f"{name}__{i}", lambda own, d=d: _overloads.definition_of_overload(function, d, own))
            for i, d in enumerate(_overloads.overloads_of(function))
        ] + [(own, lambda own, f=f: _definitions.definition_of(f, own)) for own, f in self._alternatives.get(name, ())]

    def overloaded_method(self, name, i):
        """The name of overload `i` of a method, compiled."""
        own, definition = self._overloads(name)[i]
        if _C._jit_class_method(self.type, own) is None:
            _C._jit_define(self.type.qualified_name(), [definition(own)], self.type, self)
        return own

    def _compile_accessor(self, name, function):
        if _C._jit_class_method(self.type, name) is None:
            _C._jit_define(self.type.qualified_name(), [_definitions.definition_of(function, name)], self.type, self)

    def has_attribute(self, name):
        """hasattr(self, name), as scripts see it."""
        return (
            name in self.submodules or name in self.attributes or name in self.constants or name in self.things or name in self._methods or name in self._texts
            or isinstance(inspect.getattr_static(self.cls, name, None), property)
        )  # fmt: skip

    def doc_of(self, name):
        """The text that the Python function of a method begins with, or None."""
        return getattr(self._methods.get(name), "__doc__", None)

    def setter(self, name):
        """The method that sets a property, or None."""
        item = inspect.getattr_static(self.cls, name, None)
        if not isinstance(item, property) or item.fset is None or name in self.attributes:
            return None
        self._compile_accessor("__set_" + name, item.fset)
        return "__set_" + name

    def container_keys(self):
        """Names of the elements of a container in order; None for other modules."""
        return self._keys

    def overrides(self, name):
        """Does the class of a container have a method of its own in place of this one of the protocol?"""
        return name in self._overrides

    def is_dict(self):
        """Are elements looked up by name?"""
        return self._is_dict

    def hook_functions(self, before):
        """Compiled hooks that run before or after forward."""
        return self._hook_functions[0 if before else 1]


def _children(concrete):
    return list(concrete.submodules)


def _modules(concrete, prefix=""):
    """Paths of the module itself ("") and of all below it."""
    yield prefix
    for name, sub in concrete.submodules.items():
        if not isinstance(sub, ConcreteType):
            raise RuntimeError("Could not compile modules() because module is an interface type. Please file issue.")
        yield from _modules(sub, f"{prefix}.{name}" if prefix else name)


def _buffers(concrete):
    return [name for name, (_, _, buffer) in concrete.attributes.items() if buffer]


# Methods of nn.Module whose results scripts know while they are compiled: {name: paths of what it goes over}. As in PyTorch the buffers are
# those of the module itself.
_MEMBERS = {
    "children": _children, "named_children": _children, "modules": _modules, "named_modules": _modules, "named_buffers": _buffers,
}  # fmt: skip


class ObjectType(ConcreteType):
    """What is known of a script module that has its class from elsewhere: from a trace or an archive."""

    def __init__(self, module):
        super().__init__(module)
        self.type, self.compiled = module._c._type(), True
        for name, kind, parameter, buffer in module._c._attributes():
            if name in module._modules:
                self.submodules[name] = concrete_type(module._modules[name])
            else:
                self.attributes[name] = (kind, parameter, buffer)
        self.constants = {name: (value, None) for name, value in module._c._constants()}
        self._names = set(module._c._method_names())
        self._hook_functions = (module._c._hooks(True), module._c._hooks(False))

    def attribute(self, name):
        return ScriptThing.method(name) if name in self._names else super().attribute(name)

    def has_attribute(self, name):
        return name in self._names or super().has_attribute(name)


def _container_keys(module):
    if isinstance(module, (ModuleList, Sequential, ModuleDict)):
        return list(module._modules)
    if isinstance(module, ParameterList):
        return [str(i) for i in range(len(module))]
    return list(module.keys()) if isinstance(module, ParameterDict) else None


def _overridden_protocol(module):
    """Which of `len()` and `in` a program's own class of containers answers itself."""
    if not isinstance(module, _CONTAINERS):
        return frozenset()
    functions = {n: inspect.getattr_static(type(module), n, None) for n in ("__len__", "__contains__")}
    return frozenset(n for n, f in functions.items() if inspect.isfunction(f) and not own_module(f.__module__).startswith("cresset.nn"))


def _identity(part):
    """Equal for things that are made alike, from the same objects."""
    if isinstance(part, ScriptThing):
        return (part.kind, _identity(part.parts))
    if isinstance(part, tuple):
        return tuple(map(_identity, part))
    return part if isinstance(part, (str, int, float, bool)) else id(part)


# Inference ------------------------------------------------------------------------------------------------------------

class ConcreteTypeStore:
    """PyTorch's name for what is known of modules' classes, by which libraries make the package forget: `type_store.clear()`."""

    def __init__(self):
        self.type_store = weakref.WeakValueDictionary()  # {key: ConcreteType}: a class goes with its last module



def _store():
    from . import _recursive  # where programs put another one

    return _recursive.concrete_type_store


def concrete_type(module, share=True, share_parts=True):
    """The ConcreteType of a module, the same object for modules that share a class; `share_parts` says it of the modules below. Submodules are
    looked at first."""
    if isinstance(module, _script_module_class()) and module.__dict__.get("_concrete") is not None:
        return module._concrete
    if isinstance(module, _script_module_class()) and "_c" in module.__dict__:
        module.__dict__["_concrete"] = made = ObjectType(module)
        return made
    if not isinstance(module, Module):
        raise RuntimeError(f"script: an nn.Module was required; a {type(module).__name__} was given.")
    if "_parameters" not in module.__dict__:
        raise RuntimeError(f"'{cresset.typename(module)}' has not been initialized, did you forget to call 'super()'?")
    made = ConcreteType(module)
    annotations = _class_annotations(type(module))
    _infer_members(made, module, annotations, share_parts)
    _infer_plain(made, module, annotations)
    made.hooks = _hooks_of(module)
    if not share:
        made.create()
        made.define(module.__dict__.get("_texts", {}))
        return made
    key = made.key()
    type_store = _store().type_store
    known = type_store.get(key)
    if known is None:
        made.create()
        type_store[key] = known = made
    return known


def _script_module_class():
    from ._recursive import ScriptModule

    return ScriptModule


def _class_annotations(cls):
    """{name: annotation} of a class and its bases, nn.Module's own left out."""
    out = {}
    for base in reversed(cls.__mro__):
        if base not in (Module, *Module.__mro__):
            out.update(inspect.get_annotations(base))
    return out


def _evaluate(module):
    return _definitions.evaluator_of_class(type(module), getattr(type(module), "forward", None) if inspect.isfunction(getattr(type(module), "forward", None)) else None)


def _annotated(module, annotations, name):
    """(the annotated type or None, is it Final)."""
    annotation = annotations.get(name)
    if annotation is None:
        return None, False
    if isinstance(annotation, str):
        try:
            annotation = _evaluate(module)(annotation)
        except (NameError, SyntaxError, AttributeError):
            return None, False
    annotation, final = unwrap_final(annotation)
    return (None if annotation is None else type_of_annotation(annotation, _evaluate(module))), final


def _infer_members(made, module, annotations, share):
    lazy = [n for n, p in (*module._parameters.items(), *module._buffers.items()) if is_lazy(p)]
    if lazy:
        raise RuntimeError(f"'{type(module).__name__}' has uninitialized parameters {', '.join(lazy)}. Did you forget to run a forward pass?")
    for name, parameter in module._parameters.items():
        kind = _C.NoneType.get() if parameter is None else _C.TensorType.get()
        annotated = _annotated(module, annotations, name)[0]
        made.attributes[name] = (annotated or kind, True, False)
    for name, buffer in module._buffers.items():
        kind = _C.NoneType.get() if buffer is None else _C.TensorType.get()
        annotated = _annotated(module, annotations, name)[0]
        made.attributes[name] = (annotated or kind, False, True)
    ignored = set(getattr(module, "__jit_ignored_attributes__", ()))
    for name, sub in module._modules.items():
        if name in ignored:
            made.failed[name] = "This attribute exists on the Python module, but it was named in __jit_ignored_attributes__: the attribute was ignored during compilation."
            continue
        annotated = None
        if name in annotations:
            try:
                annotated = _annotated(module, annotations, name)[0]
            except UnknownType:
                pass  # a module class: only interfaces are types
        if sub is None:
            made.attributes[name] = (annotated or _C.NoneType.get(), False, False)
            continue
        child = concrete_type(sub, share, share)
        if annotated is not None and annotated.is_interface_type():
            child.compile()
            for method in methods_of_interface(annotated):  # which may be the only reason to compile them
                if child._is_compiled(method):
                    child._compile_method(method)
            why = _C._jit_is_subtype(child.type, annotated)
            if why is not None:
                raise RuntimeError(f"Attribute {name} of '{type(module).__name__}' is not of its annotated type {annotated}: {why}")
            made.submodules[name] = annotated
            made.behind_interfaces.append(child)
        else:
            made.submodules[name] = child
    if isinstance(module, (ParameterList, ParameterDict)):
        for name in made._keys:
            value = module[int(name)] if isinstance(module, ParameterList) else module[name]
            if isinstance(value, cresset.Tensor):
                made.attributes.setdefault(name, (_C.TensorType.get(), isinstance(value, Parameter), False))


def _infer_plain(made, module, annotations):
    constants = set(getattr(module, "__constants__", ()))
    ignored = set(getattr(module, "__jit_ignored_attributes__", ())) | set(getattr(module, "__jit_unused_properties__", ()))
    for name in _names_of(module):
        if name in ignored:
            made.failed[name] = "This attribute exists on the Python module, but it was named in __jit_ignored_attributes__: the attribute was ignored during compilation."
        if name in _HIDDEN or name in ignored or name in made.attributes or name in made.submodules:
            continue
        static = inspect.getattr_static(type(module), name, None)
        if isinstance(static, property):
            continue
        value = module.__dict__[name] if name in module.__dict__ else getattr(module, name, None)
        if inspect.isfunction(static) and name not in module.__dict__ and _marks.is_dropped(static):
            continue
        if isinstance(value, types.MethodType) and value.__self__ is module and name in module.__dict__:
            made._methods[name] = value.__func__  # the object's own, in the place of its class's
            continue
        if inspect.isfunction(static) and name not in module.__dict__:
            made._methods[name] = _state.replacement_of(static) or static
        elif isinstance(static, classmethod) and name not in module.__dict__:
            made._methods[name] = static.__func__  # the module stands for its class
        elif isinstance(static, staticmethod) and name not in module.__dict__:
            _add_function(made, name, static.__func__)
        else:
            _add_value(made, module, name, value, name in constants, annotations)
    made.things.update({name: ScriptThing.list(tuple(members)) for name, members in _replacements.lists_of(module).items()})


def _names_of(module):
    """Attributes of the object, and of its class what nn.Module does not have."""
    names = dict.fromkeys(module.__dict__)
    for cls in type(module).__mro__:
        if cls in (Module, *Module.__mro__):
            continue
        names.update(dict.fromkeys(n for n in vars(cls) if not (n.startswith("__") and n.endswith("__"))))
        names.update(dict.fromkeys(n for n, f in vars(cls).items() if inspect.isfunction(f) and (n in ("__len__", "__contains__", "__getitem__") or _marks.is_exported(f))))
    if isinstance(module, _CONTAINERS):
        for name in [n for n in names if n not in module.__dict__ and n != "forward" and own_module(type(module).__module__).startswith("cresset.nn")]:
            del names[name]
    return names


def _add_function(made, name, function):
    if _marks.is_ignored(function):
        made.things[name] = python_call(function, bound=False)
        return
    try:
        made.things[name] = thing_of(function, name, constant=True)
    except Exception as error:  # a function that is never used need not compile
        made.failed[name] = f"This function exists as an attribute on the Python module, but we failed to compile it to a TorchScript function. \nThe error stack is reproduced here:\n\n{error}"


def _add_value(made, module, name, value, constant, annotations):
    try:
        annotated, final = _annotated(module, annotations, name)
    except UnknownType as error:
        if name in module.__dict__:
            raise RuntimeError(f"Unknown type annotation for attribute '{name}' of '{type(module).__name__}': {error}") from None
        return
    if name not in module.__dict__ and name in annotations and not hasattr(type(module), name):
        return
    value = script_number(value)
    if constant or final:
        _add_constant(made, name, value, annotated)
        return
    value = module.__dict__.get("_typed_attributes", {}).get(name, value)
    if isinstance(value, Attribute):
        made.attributes[name] = (type_of_annotation(value.type, _evaluate(module)), False, False)
        return
    if annotated is not None:
        made.attributes[name] = (annotated, False, False)
        return
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, _C.ScriptFunction, _C.builtin_function, _C.overridable)):
        _add_function(made, name, value)
        return
    if inspect.isclass(value) or isinstance(value, (types.MethodType, classmethod)):
        if inspect.isclass(value):
            made.failed[name] = f"This attribute exists on the Python module, but we failed to convert Python type: '{value.__name__}' to a TorchScript type."
        return
    if isinstance(value, cresset.Tensor) and not isinstance(value, Parameter) and name not in module.__dict__:
        return
    try:
        made.attributes[name] = (_type_of_attribute(value), False, False)
    except UnknownType as error:
        made.failed[name] = (
            f"This attribute exists on the Python module, but we failed to convert Python type: '{type(value).__name__}' to a TorchScript type. "
            f"{error}. Its type was inferred; try adding a type annotation for the attribute."
        )


def _type_of_attribute(value):
    """As type_of_value; the class of an object that scripts do not know yet is compiled, if it can be."""
    try:
        return type_of_value(value)
    except UnknownType:
        cls = type(value)
        if not inspect.isfunction(vars(cls).get("__init__")) or cls.__bases__ != (object,):
            raise
        try:
            return type_of_class(cls)
        except Exception:  # noqa: BLE001: whatever its methods do that scripts cannot, or a class without a source
            pass
        raise


def _first_unknown(value):
    """What in the value has no type in scripts."""
    for part in value if isinstance(value, (tuple, list)) else ():
        try:
            type_of_value(part)
        except UnknownType:
            return _first_unknown(part)
    return value


def _add_constant(made, name, value, annotated):
    """Constants: numbers, strings and the like, and tuples and lists of them, which scripts see as tuples."""
    if isinstance(value, list):
        value = tuple(value)
    try:
        kind = annotated if annotated is not None and not isinstance(value, tuple) else type_of_value(value)
    except UnknownType as error:
        wrong = type(_first_unknown(value))
        label = wrong.__name__ if wrong.__module__ == "builtins" else f"{wrong.__module__}.{wrong.__qualname__}"
        raise TypeError(
            f"'{label}' object in attribute '{made.cls.__name__}.{name}' is not a valid constant. {error}\nValid constants are:\n"
            "1. a nn.ModuleList\n2. a value of type {bool, float, int, str, NoneType, device, layout, dtype}\n3. a list or tuple of (2)\n"
        ) from None
    made.constants[name] = (value, kind)


def _hooks_of(module):
    if module._forward_hooks_with_kwargs or module._forward_pre_hooks_with_kwargs:
        raise RuntimeError("script: forward hooks that take keyword arguments are not supported.")
    if module._backward_hooks or module._backward_pre_hooks:
        import warnings

        warnings.warn("backward hooks are not part of the compiled module and will not run.", stacklevel=4)
    before, after = tuple(module._forward_pre_hooks.values()), tuple(module._forward_hooks.values())
    for hook in (*before, *after):
        if not inspect.isfunction(hook):
            raise RuntimeError(f"Hook '{getattr(hook, '__name__', hook)}' of module '{type(module).__name__}' is not a function that can be compiled.")
    return before, after


