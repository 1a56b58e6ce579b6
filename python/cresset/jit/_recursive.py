"""Modules of scripts in Python: nn.Modules whose state and methods are those of a C++ object."""

import collections.abc
import inspect
import pickle
import types
import weakref

import cresset
from cresset import _C
from cresset._quantized_types import script_number
from cresset.nn import Module

from . import _definitions, _marks, _source, _state
from ._concrete import Attribute, ConcreteType, ConcreteTypeStore, concrete_type  # noqa: F401

__all__ = ["ScriptModule", "RecursiveScriptModule", "script_module", "wrap_cpp_module", "wrap_module"]

concrete_type_store = ConcreteTypeStore()
_wrappers = weakref.WeakValueDictionary()  # {C++ object's id: its Python module}


class _Tensors(collections.abc.MutableMapping):
    """Parameters or buffers of a C++ object, read and written there."""

    def __init__(self, c, parameters):
        self._c, self._parameters = c, parameters

    def _names(self):
        return [name for name, _, parameter, buffer in self._c._attributes() if (parameter if self._parameters else buffer)]

    def __getitem__(self, name):
        if name not in self:
            raise KeyError(name)
        return self._c.getattr(name)

    def __setitem__(self, name, value):
        self._c.setattr(name, value)

    def __delitem__(self, name):
        raise RuntimeError(f"cannot delete methods or parameters of Script module: '{name}'")

    def __contains__(self, name):
        return name in self._names()

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def pop(self, name, *default):
        if name in self:
            del self[name]
        return default[0] if default else None


class ConstMap:
    """Constants of a text by name."""

    def __init__(self, const_mapping):
        self.const_mapping = const_mapping

    def __getattr__(self, name):
        try:
            return self.const_mapping[name]
        except KeyError:
            raise AttributeError(name) from None


class ScriptMeta(type):
    """Compiles the decorated methods of a ScriptModule subclass when its outermost __init__ is done."""

    def __call__(cls, *args, **kwargs):
        self = super().__call__(*args, **kwargs)
        if "_c" not in self.__dict__ and cls is not ScriptModule and _state._enabled:
            concrete = concrete_type(self, share=False)
            _adopt(self, _create(self, concrete, {}), concrete)
        return self


class ScriptModule(Module, metaclass=ScriptMeta):
    """A module that runs as a script. Older programs derive from it and decorate methods with `script_method`."""

    # Attributes: those of the C++ object come first.
    def __getattr__(self, name):
        c = self.__dict__.get("_c")
        if c is None:
            return super().__getattr__(name)
        modules = self.__dict__["_modules"]
        if name in modules:
            return modules[name]
        if c.hasattr(name):
            return c.getattr(name)
        if c._has_method(name):
            method = self.__dict__[name] = c._get_method(name)
            return method
        getter = "__get_" + name
        if c._has_method(getter):
            return c._get_method(getter)()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        c = self.__dict__.get("_c")
        if c is None:
            if isinstance(value, Attribute):  # the compiler reads its type; __init__ sees the value
                self.__dict__.setdefault("_typed_attributes", {})[name] = value
                value = value.value
                if isinstance(value, Module):  # a value of the given type, not a part
                    return object.__setattr__(self, name, value)
            super().__setattr__(name, value)
        elif c.hasattr(name):
            if name in self._modules and not isinstance(value, ScriptModule):
                raise RuntimeError(
                    f"Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module '{name}': {value}"
                )
            c.setattr(name, value.value if isinstance(value, Attribute) else value)
            if name in self._modules:
                self._modules[name] = value
        elif c._has_method("__set_" + name):
            c._get_method("__set_" + name)(value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        if "_c" in self.__dict__ and name not in self.__dict__:
            raise RuntimeError(f"cannot delete '{name}' of a script module.")
        super().__delattr__(name)

    def __dir__(self):
        c = self.__dict__.get("_c")
        extra = [] if c is None else [name for name, *_ in c._attributes()] + c._method_names()
        concrete = self.__dict__.get("_concrete")
        if concrete is not None and concrete.container_keys() is not None:  # a container shows what its class has
            extra += dir(concrete.cls)
        return sorted({*super().__dir__(), *extra})

    # What a script module has beyond a module.
    @property
    def graph(self):
        """The graph of forward."""
        return self.forward.graph

    @property
    def inlined_graph(self):
        """The graph of forward with all calls inlined."""
        return self.forward.inlined_graph

    def graph_for(self, *args, **kwargs):
        """Calls the module and gives the graph that ran, with all calls inlined."""
        return self.forward.graph_for(*args, **kwargs)

    @property
    def code(self):
        """The source text of forward, as archives have it."""
        return self.forward.code

    @property
    def code_with_constants(self):
        """`code`, and an object whose `c0`, `c1`, … are what the text calls `CONSTANTS.c0`, …"""
        code, values = _C._jit_code_with_constants(self.forward.function)
        return code, ConstMap({f"c{i}": value for i, value in enumerate(values)})

    @property
    def original_name(self):
        """The name of the Python class."""
        return self._c._type().name()

    def define(self, src):
        """Compile methods from source text into this module's class. Names are those of the caller's variables, as of a function written there.
        In `__init__` they are compiled with the module."""
        lookup = _source.frame_names()
        if "_c" not in self.__dict__:
            self.__dict__.setdefault("_texts", {}).update(_definitions.definitions_of_text(src, lookup))
            return
        concrete_type(self).define(_definitions.definitions_of_text(src, lookup))
        self._take_methods()

    def save(self, f, _extra_files=None):
        """Write an archive that `load` reads, here and in C++."""
        from .serialization import save

        return save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files=None):
        """The bytes of `save`."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    def _save_to_buffer_for_lite_interpreter(self, _extra_files=None, _save_mobile_debug_info=False, _use_flatbuffer=False):
        """The bytes of an archive with bytecode for PyTorch's runtime for phones; `mobile._load_for_lite_interpreter` reads it, and `load`, too.
        Where the code came from is always in it. NotImplementedError for flatbuffers."""
        if _use_flatbuffer:
            raise NotImplementedError("_save_to_buffer_for_lite_interpreter: flatbuffers are not part of Cresset. Leave _use_flatbuffer False.")
        from .mobile._save import with_bytecode

        return with_bytecode(self.save_to_buffer(_extra_files), self._c)

    def _save_for_lite_interpreter(self, f, _extra_files=None, _save_mobile_debug_info=False, _use_flatbuffer=False):
        """Write `_save_to_buffer_for_lite_interpreter` to a path."""
        data = self._save_to_buffer_for_lite_interpreter(_extra_files, _save_mobile_debug_info, _use_flatbuffer)
        with open(f, "wb") as file:
            file.write(data)

    def get_methods(self):
        """Names of the compiled methods."""
        return self._c._method_names()

    def _take_methods(self):
        concrete = self.__dict__.get("_concrete")
        for name in self._c._method_names():
            method = self.__dict__[name] = self._c._get_method(name)
            if concrete is not None:
                method.__doc__ = concrete.doc_of(name)

    def extra_repr(self):
        return f"original_name={self.original_name}" if "_c" in self.__dict__ else super().extra_repr()

    def __copy__(self):
        return wrap_module(self._c.copy(), self._concrete)

    def __deepcopy__(self, memo):
        return wrap_module(self._c.deepcopy(), self._concrete)

    def __reduce_ex__(self, protocol):
        raise pickle.PickleError(
            "ScriptModules cannot be deepcopied using copy.deepcopy or saved using torch.save. Mixed serialization of script and non-script "
            "modules is not supported. For purely script modules use my_script_module.save(<filename>) instead."
        )

    def __reduce_package__(self, exporter):
        return exporter._reduce_script(self)

    # Containers keep their protocol, and so do modules that export its methods.
    def __len__(self):
        own = self._own("__len__")
        return len(self._container()) if own is None else own()

    def __iter__(self):
        elements = self._container()
        return iter(elements) if self._is_dict() else iter(elements.values())

    def __getitem__(self, key):
        own = self._own("__getitem__")
        if own is not None:
            return own(key)
        elements = self._container()
        if self._is_dict():
            return elements[key]
        values = list(elements.values())
        return values[key]

    def __contains__(self, key):
        own = self._own("__contains__")
        return key in self._container() if own is None else own(key)

    def __bool__(self):
        return True

    def _own(self, name):
        return self.__dict__.get(name)

    def _is_dict(self):
        return self.original_name in ("ModuleDict", "ParameterDict") if self._concrete is None else self._concrete.is_dict()

    def _container(self):
        concrete = self.__dict__.get("_concrete")
        keys = None if concrete is None else concrete.container_keys()
        if keys is None and self.original_name in ("ModuleList", "ModuleDict", "Sequential"):  # of an archive or a trace
            keys = list(self._modules)
        if keys is None:
            raise TypeError(f"'{self.original_name}' object is not iterable")
        return {k: getattr(self, k) for k in keys}

    def keys(self):
        """Names of a ModuleDict's modules."""
        return self._container().keys()

    def values(self):
        """Modules of a ModuleDict."""
        return self._container().values()

    def items(self):
        """Pairs of a ModuleDict."""
        return self._container().items()


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module, and `load` of an archive."""

    def __init__(self, c):
        raise RuntimeError("RecursiveScriptModule is made by cresset.jit.script and cresset.jit.load.")

    def _reconstruct(self, cpp_module):
        """Take over another C++ object, with its methods, state and submodules; what else Python keeps here stays, as do ignored methods."""
        for name, member in list(self.__dict__.items()):
            if isinstance(member, _C.ScriptMethod):
                del self.__dict__[name]
        face = _wrappers.get(cpp_module._id())
        if _wrappers.get(self._c._id()) is self:  # that object may end now, and another one may get its place
            del _wrappers[self._c._id()]
        _adopt(self, cpp_module, None)
        if face is not None:
            _wrappers[cpp_module._id()] = face


class _Submodules(dict):
    """Submodules by name; `_c` are the objects of which they are the faces."""

    @property
    def _c(self):
        return {name: module._c for name, module in self.items()}


def _adopt(self, c, concrete, children=None):
    """Make a Python module the face of a C++ object."""
    if "_forward_hooks" not in self.__dict__:
        Module.__init__(self)
    d = self.__dict__
    if concrete is not None:
        for name in (*concrete.attributes, *concrete.constants, *concrete.submodules):
            d.pop(name, None)
    d.pop("training", None)
    d.pop("_texts", None)
    d.pop("_typed_attributes", None)
    d["_c"], d["_concrete"] = c, concrete
    d["_parameters"], d["_buffers"] = _Tensors(c, True), _Tensors(c, False)
    d["_modules"] = _Submodules({name: (children or {}).get(name) or wrap_module(child) for name, child in c.named_children()})
    self._take_methods()
    _wrappers[c._id()] = self
    return self


def wrap_module(c, concrete=None):
    """The Python module of a C++ object: always the same one while it lives."""
    known = _wrappers.get(c._id())
    if known is not None:
        return known
    self = RecursiveScriptModule.__new__(RecursiveScriptModule)
    children = {}
    if concrete is not None:
        for name, child in c.named_children():
            sub = concrete.submodules.get(name)
            children[name] = wrap_module(child, sub if hasattr(sub, "submodules") else None)
    face = _adopt(self, c, concrete, children)
    face._forward_pre_hooks.update(enumerate(c._hooks(True)))
    face._forward_hooks.update(enumerate(c._hooks(False)))
    return face


wrap_cpp_module = wrap_module  # PyTorch's name


def script_module(module):
    """The script module of an nn.Module."""
    if isinstance(module, ScriptModule):
        return module
    module = _prepared(module, {})
    concrete = concrete_type(module)
    faces = {}  # of what is made, while it is made
    return wrap_module(_create(module, concrete, faces), concrete)


def infer_methods_to_compile(module):
    """The methods that scripting a module starts with: names, for `create_script_module`."""
    return concrete_type(module)._roots()


def create_script_module(nn_module, stubs_fn, share_types=True, is_tracing=False):
    """The script module of an nn.Module. Without `share_types` every module of it has a class of its own. `stubs_fn` is
    `infer_methods_to_compile`, the only choice of methods that there is."""
    if stubs_fn is not infer_methods_to_compile or is_tracing:
        raise NotImplementedError("create_script_module: the methods of infer_methods_to_compile were required; traces are made by jit.trace.")
    if share_types or isinstance(nn_module, ScriptModule):
        return script_module(nn_module)
    module = _prepared(nn_module, {})
    concrete = concrete_type(module, share=False, share_parts=False)
    return wrap_module(_create(module, concrete, {}), concrete)


def _prepared(module, memo):
    """The module, or what it and modules below it give by `__prepare_scriptable__` to be scripted in their place; it stays as it is."""
    if isinstance(module, ScriptModule):
        return module
    if id(module) in memo:
        return memo[id(module)][0]
    prepare = getattr(module, "__prepare_scriptable__", None)
    made = module if prepare is None else prepare()
    if isinstance(made, Module) and not isinstance(made, ScriptModule):
        children = {name: None if sub is None else _prepared(sub, memo) for name, sub in made.__dict__.get("_modules", {}).items()}
        if any(child is not made._modules[name] for name, child in children.items()):
            copied = type(made).__new__(type(made))
            copied.__dict__.update(made.__dict__, _modules=children)
            made = copied
    memo[id(module)] = made, module  # both live as long as the memo, so that ids stay theirs
    return made


def create_traced(module):
    """The C++ object of a module that a trace records into: of its methods only those that are exported."""
    concrete = concrete_type(module, share=False, share_parts=False)
    parts = [concrete]
    for part in parts:
        part.traced = True
        parts += [sub for sub in part.submodules.values() if isinstance(sub, ConcreteType) and not sub.traced]
    return _create(module, concrete, {}, faces=False)


def _create(module, concrete, memo, faces=True):
    """The C++ object of a module with its values; modules that appear twice become one object."""
    if isinstance(module, ScriptModule) and "_c" in module.__dict__:
        return module._c
    known = memo.get(id(module))
    if known is not None:
        return known
    c = memo[id(module)] = _C._jit_object(concrete.type)
    for name, sub in module._modules.items():
        if sub is not None and name in concrete.submodules:
            known = concrete.submodules[name]  # an interface says nothing of the class behind it
            c.setattr(name, _create(sub, known if hasattr(known, "submodules") else concrete_type(sub), memo, faces))
    for name, (kind, _, _) in concrete.attributes.items():
        value = script_number(_value_of(module, name))
        try:
            c.setattr(name, value)
        except (TypeError, RuntimeError) as error:
            raise RuntimeError(f"Could not cast attribute '{name}' to type {kind}: {error}") from None
    concrete.compile()
    if faces and not isinstance(module, ScriptModule):
        memo[c._id()] = _face(module, c, concrete)  # kept until the parent's face holds it
    return c


def _value_of(module, name):
    if isinstance(module, cresset.nn.ParameterList) and name.isdigit():
        return module[int(name)]
    if isinstance(module, cresset.nn.ParameterDict) and name in module:
        return module[name]
    value = getattr(module, name)
    return value.value if isinstance(value, Attribute) else value


def _face(module, c, concrete):
    """The Python module of a new object, with what is not in the object: ignored methods and attributes."""
    face = wrap_module(c, concrete)
    for name in dict.fromkeys((*dir(type(module)), *module.__dict__)):
        item = module.__dict__.get(name, inspect.getattr_static(type(module), name, None))
        item = item.__func__ if isinstance(item, types.MethodType) and item.__self__ is module else item
        if inspect.isfunction(item) and (_marks.is_ignored(item) or _marks.is_unused(item)):
            face.__dict__[name] = types.MethodType(item, face)
    for name in getattr(module, "__jit_ignored_attributes__", ()):
        static = inspect.getattr_static(type(module), name, None)
        if name in module.__dict__ or name in module._modules:
            face.__dict__[name] = getattr(module, name)
        elif isinstance(static, property):
            face.__dict__[name] = static  # not asked, as in PyTorch
    return face
