"""`cresset.ops`: operators by namespace, name and overload, as their schemas name them."""

import abc
import functools
import importlib
import os
import sys
import types

from . import _C
from ._C import DispatchKey, OpOverload, _find_overload  # noqa: F401
from ._hints import with_hint

__all__ = ["ops", "OpOverload", "OpOverloadPacket", "FunctionSchema", "Argument"]


def __getattr__(name):
    if name == "HigherOrderOperator":
        return importlib.import_module("cresset._higher_order").HigherOrderOperator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class AliasInfo:
    """Which memory an argument or return shares: the names of its alias set, and whether it is written."""

    __slots__ = ("is_write", "before_set", "after_set")

    def __init__(self, name, is_write):
        self.is_write, self.before_set = is_write, {name}
        self.after_set = set() if name.startswith("$") else {name}  # "Tensor!" goes back to nobody

    def __repr__(self):
        return f"AliasInfo(is_write={self.is_write}, before_set={self.before_set})"

    def __eq__(self, other):
        return isinstance(other, AliasInfo) and (self.is_write, self.before_set) == (other.is_write, other.before_set)

    __hash__ = None


class _Type(str):
    """A type: as text what the schema writes (`int[]?`), printed as annotations write it (`Optional[List[int]]`)."""

    def __str__(self):
        return self.annotation_str

    __repr__ = __str__

    def __format__(self, form):
        return format(self.annotation_str, form)

    def str(self):
        """As PyTorch's type objects write it: enumerations and unknown sizes are ints."""
        text = "".join(self)
        for name in ("ScalarType", "Layout", "MemoryFormat", "SymInt"):
            text = text.replace(name, "int")
        return text

    @functools.cached_property
    def _object(self):
        """The type as graphs have it."""
        return next(_C.parse_ir(f"graph(%x : {self.str()}):\n  return (%x)").inputs()).type()

    @property
    def annotation_str(self):
        """As an annotation writes it: `Optional[int]`."""
        return self._object.annotation_str

    def kind(self):
        """The name of the type's class: ListType, OptionalType, TensorType, …"""
        return self._object.kind()

    def isSubtypeOf(self, other):
        """May a value of this type stand where one of the other type, of a schema or of a graph, is expected?"""
        return self._object.isSubtypeOf(getattr(other, "_object", other))

    def containedTypes(self):
        """The types of elements, of graphs."""
        return self._object.containedTypes()

    def getElementType(self):
        """The type of elements of a list or optional; AttributeError for others."""
        return self._object.getElementType()

    def __eq__(self, other):
        return str.__eq__(self, other) if isinstance(other, str) else self._object == other

    def __hash__(self):
        return super().__hash__()


class _RealType(_Type):
    def str(self):
        return "".join(self)

    @property
    def annotation_str(self):
        name = self.str().rstrip("?")
        if name not in ("ScalarType", "Layout", "MemoryFormat"):
            return super().annotation_str
        return f"Optional[{name}]" if self.endswith("?") else name


class Argument:
    """One argument or return of a schema."""

    __slots__ = ("name", "type", "default_value", "kwarg_only", "is_write", "alias", "_has_default")

    def __init__(self, name, type, default_value=None, has_default=False, kwarg_only=False, is_write=False, alias=""):
        self.name, self.type, self.default_value, self.alias = name, _Type(type), default_value, alias
        self.kwarg_only, self.is_write, self._has_default = kwarg_only, is_write, has_default

    def has_default_value(self):
        return self._has_default

    @property
    def alias_info(self):
        return AliasInfo(self.alias, self.is_write) if self.alias else None

    @property
    def is_out(self):
        return self.kwarg_only and self.is_write

    @property
    def real_type(self):
        """The type, whose str() keeps the names of enumerations and unknown sizes."""
        return _RealType("".join(self.type))

    def __repr__(self):
        return f"Argument(name={self.name!r}, type={self.type!r})"


class FunctionSchema:
    """A schema in parts; its string is the schema text. `parts`: as _C._schema_parts gives them, for a schema of a script, whose types no text names."""

    __slots__ = ("_text", "name", "overload_name", "arguments", "returns")

    def __init__(self, text, parts=None):
        self._text = text
        self.name, self.overload_name, arguments, returns = parts or _C._schema_parts(text)
        self.arguments = [Argument(*parts) for parts in arguments]
        self.returns = [Argument(name, kind, is_write=write, alias=alias) for name, kind, write, alias in returns]

    @property
    def is_mutable(self):
        return any(a.is_write for a in self.arguments)

    @property
    def is_vararg(self):
        return "...)" in self._text.partition(" -> ")[0]

    def is_backward_compatible_with(self, old):
        """Do calls that were written for an older schema work with this one?"""
        from ._schema_compatibility import backward_compatible

        return backward_compatible(self, old)

    def check_forward_compatible_with(self, old):
        """(whether programs made for this schema work where the older one is, why not)"""
        from ._schema_compatibility import forward_incompatibility

        reason = forward_incompatibility(self, old)
        return not reason, reason

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self):
        return hash(self._text)


def parse_schema(schema):
    """The parts of a schema's text; RuntimeError with the place of a mistake."""
    return FunctionSchema(_C._parse_schema(schema))


def _all_schemas():
    return [FunctionSchema(_find_overload(*_split(name))._schema_text) for name in _C._dispatch_get_all_op_names()]


def _split(qualname):
    base, _, overload = qualname.partition(".")
    return base, overload


def _schemas_for_operator(name):
    """The schemas of all overloads of "ns::name", those that only scripts know included."""
    return [FunctionSchema(text) for text in _C._schema_texts_for_operator(name)]


def _operation(qualname):
    """(the operator "ns::name" with all its overloads, their names: behind the others those that only scripts know), or (None, None) where there is none."""
    schemas = [] if "." in qualname else _schemas_for_operator(qualname)
    if not schemas:
        return None, None
    namespace, _, name = qualname.partition("::")
    packet = getattr(getattr(ops, namespace), name)
    names = ["" if overload == "default" else overload for overload in packet.overloads()]
    return packet, names + [s.overload_name for s in schemas if s.overload_name not in names]


_C.parse_schema, _C._jit_get_all_schemas, _C._jit_get_schemas_for_operator = parse_schema, _all_schemas, _schemas_for_operator
_C._jit_get_operation = _operation


def _call_boxed(op, *args, **kwargs):
    return op(*args, **kwargs)


def _is_subclass_like(tensor):
    """Do operators on the tensor do something else than run its backend's kernels: in Python, or by a transform?"""
    keys = _C._dispatch_keys(tensor)
    return any(keys.has(getattr(_C.DispatchKey, name)) for name in ("Python", "FuncTorchBatched", "FuncTorchGradWrapper", "Functionalize"))


def _find_schema(name, overload):
    namespace, _, operator = name.partition("::")
    try:
        return getattr(getattr(getattr(ops, namespace), operator), overload or "default")
    except AttributeError:
        raise RuntimeError(f"Could not find schema for {name}.{overload}") from None


_C._dispatch_find_schema_or_throw = _find_schema
_C._dispatch_call_boxed, _C._dispatch_isTensorSubclassLike = _call_boxed, _is_subclass_like


def _packet_of(overload):
    return getattr(getattr(ops, overload.namespace), overload.__name__.partition(".")[0])


def _tags_of(overload):
    from ._tags import Tag, as_tag

    tags = [as_tag(name) for name in overload._tag_names]
    if overload.namespace == "aten" and overload.name() not in declared_by_programs:
        arguments = overload._schema.arguments
        written = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
        tags.append(Tag.pt2_compliant_tag)  # operators of the package keep its rules
        if any(a.kwarg_only for a in written):
            tags.append(Tag.out)
        elif written and arguments[0].alias_info is not None and arguments[0].alias_info.is_write:
            tags.append(Tag.inplace)
        tags = sorted(set(tags), key=lambda tag: int(tag) if isinstance(tag, Tag) else len(Tag))
    return tags


declared_in_python = set()  # "ns::name" of every operator that a Library has declared
declared_by_programs = set()  # of these, what the package itself has not


def _defined_in_python(overload):
    return overload.name() in declared_in_python


class _PyKernels(dict):
    """{DispatchKey: function} of what py_impl has registered for an overload; what is deleted is registered no more."""

    def __init__(self):
        super().__init__()
        self.blocks = {}

    def __delitem__(self, key):
        super().__delitem__(key)
        self.blocks.pop(key, None)


def _py_impl(self, key):
    """Decorator: a kernel written in Python for a dispatch key of this overload, until it is deleted from py_kernels.

    Where the operator has a kernel for that key already, the new one answers only inside of `_dispatch.python.enable_python_dispatcher`.
    `key` may be a subclass of TorchDispatchMode or Tensor instead: what that does with this overload, in place of its `__torch_dispatch__`;
    called as fn(mode, *args, **kwargs) and fn(*args, **kwargs).
    """
    if isinstance(key, type):
        return _py_impl_of_class(self, key)

    def register(fn):
        kind = _C.DispatchKey.__members__[key] if isinstance(key, str) else key
        name = kind.name
        if kind in self.py_kernels:
            raise RuntimeError(f"Trying to override a python impl for DispatchKey.{name} on operator {self.name()}")
        self.py_kernels[kind] = fn
        if name == "BackendSelect" or _C._dispatch_has_kernel_for_dispatch_key(self.name(), name):
            return fn
        code = getattr(fn, "__code__", _py_impl.__code__)
        block = _C._Library("IMPL", self.namespace, "", code.co_filename, code.co_firstlineno)
        block.impl(self.name().partition("::")[2], fn, name, False, f"registered at {code.co_filename}:{code.co_firstlineno}", "")
        self.py_kernels.blocks[kind] = block
        return fn

    return register


def _py_impl_of_class(self, cls):
    def rule(who, func, types, args, kwargs):
        fn = self.py_kernels.get(cls)
        if fn is None:
            return who.__torch_dispatch__(func, types, args, kwargs)
        return fn(*args, **kwargs) if issubclass(cls, _C.TensorBase) else fn(who, *args, **kwargs)

    def register(fn):
        if cls in self.py_kernels:
            raise RuntimeError(f"Trying to override a python impl for {cls} on operator {self.name()}")
        if not hasattr(cls, "__torch_dispatch__"):
            raise AssertionError(f"py_impl: a DispatchKey, or a class with __torch_dispatch__ was required; {cls} was given.")
        _C._register_torch_dispatch_rule(self, cls, rule)
        self.py_kernels[cls] = fn
        return fn

    return register


def _can_decompose(self):
    """Is the operator a composition of others, which `decompose` runs?"""
    return self.has_kernel_for_dispatch_key("CompositeImplicitAutograd")


def _decompose(self, *args, **kwargs):
    """Run the operator as the composition that CompositeImplicitAutograd registers, or NotImplemented."""
    if not self.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
        return NotImplemented
    return self.redispatch(_C.DispatchKeySet(), *args, **kwargs)


def _kept(overload, name, make):
    return vars(overload).get(name) or vars(overload).setdefault(name, make())


def _fallthrough_keys(self):
    """The DispatchKeys at which calls of the operator go on below."""
    return [key for key in _C.DispatchKey.__members__.values() if _C._dispatch_kernel_for_dispatch_key_is_fallthrough(self.name(), key)]


# The type comes from the extension module; what needs no speed is added here.
OpOverload._schema = property(lambda self: FunctionSchema(self._schema_text), doc="The schema in parts.")
OpOverload.tags = property(_tags_of, doc="The operator's tags.")
OpOverload._defined_in_python = property(_defined_in_python, doc="Was it declared by a library written in Python?")
OpOverload.py_impl, OpOverload.decompose, OpOverload._can_decompose = _py_impl, _decompose, _can_decompose
OpOverload.py_kernels = property(lambda self: _kept(self, "_py_kernels", _PyKernels), doc="What py_impl has registered: {DispatchKey: function}.")
OpOverload._dispatch_cache = property(lambda self: _kept(self, "_calls", dict), doc="Empty: calls keep nothing that goes out of date.")
OpOverload._fallthrough_keys = _fallthrough_keys
OpOverload.is_view = property(lambda self: any(r.alias and not r.is_write for r in self._schema.returns), doc="Is the result a view of an argument?")
OpOverload._name = property(lambda self: self.name(), doc="The name with that of the overload, as name().")
OpOverload._opname = property(lambda self: self.__name__.partition(".")[0], doc="The name without that of the overload.")
OpOverload.op = OpOverload._op = property(lambda self: self, doc="The operator itself.")
OpOverload.overloadpacket = OpOverload._overloadpacket = property(_packet_of, doc="All overloads of the same name.")


class OperatorBase(abc.ABC):
    """What graphs call: overloads of operators, and operators of higher order."""


OperatorBase.register(OpOverload)


class OpOverloadPacket(_C._Packet):
    """All overloads of one name. Calling it picks the first whose schema takes the arguments."""

    def __init__(self, namespace, name):
        self._namespace, self.__name__ = namespace, name
        self._qualified_op_name = f"{namespace}::{name}"
        self.__module__ = f"{_C._printed_name()}._ops.{namespace}"

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(f"'{self}' can't have an overload name beginning with '__' and has no attribute {key} either.")
        overload = _find_overload(self._qualified_op_name, "" if key == "default" else key)
        if overload is None:
            overload = _of_graphs("overload_of", self._namespace, self._qualified_op_name, key)
        if overload is None:
            known = self.overloads()
            if not known:
                raise AttributeError(f"operator {self._qualified_op_name} is not defined any more.")
            raise with_hint(AttributeError(f"The underlying op of '{self}' has no overload name '{key}'"), _near(key, known))
        self.__dict__[key] = overload  # until the library that defines it goes (_forget)
        return overload

    def overloads(self):
        """Names of the overloads; the one without a name is called default."""
        return [name or "default" for name in _C._overload_names(self._qualified_op_name)]

    def __iter__(self):
        return iter(self.overloads())

    def __dir__(self):
        return sorted({*super().__dir__(), *self.overloads()})

    @property
    def op(self):
        """The packet itself."""
        return self

    @property
    def _has_torchbind_op_overload(self):
        """Takes an overload objects of C++ classes?"""
        return any("__torch__.torch.classes" in str(schema) for schema in self._schemas.values())

    @property
    def _schemas(self):
        """{name of the overload: schema}."""
        return {name: getattr(self, name)._schema for name in self.overloads()}

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return _find_packet, (self._namespace, self.__name__)


def _near(key, known):
    """A hint with the names that look like key, "" where none does."""
    import difflib

    near = difflib.get_close_matches(key, known, 3)
    return f"Did you mean: {', '.join(near)}?" if near else ""


def _of_graphs(question, namespace, *names):
    """What graphs have of the name and the dispatcher has not, or None."""
    if namespace not in ("aten", "prim"):
        return None
    return getattr(importlib.import_module("cresset._script_operators"), question)(*names)


def _find_packet(namespace, name):
    return getattr(getattr(ops, namespace), name)


# Modules that define the operators of a namespace in Python: loaded when one of them is asked for.
_DEFINED_IN = {
    "profiler": "cresset.autograd._profiler_operators", "c10d": "cresset.distributed._c10d_operators", "higher_order": "cresset.export._scans",
    "mkldnn": "cresset._mkldnn_operators", "quantized": "cresset._quantized._operators", "sparse": "cresset._quantized._operators", "_quantized": "cresset._quantized._operators",
    "quantized_decomposed": "cresset.ao.quantization.fx._decomposed", "prims": "cresset._prims._operators",
}  # fmt: skip
_ATEN_DEFINED_IN = (
    "cresset._rare_operators", "cresset.sparse._operators", "cresset._accelerator_operators", "cresset._functional_forms", "cresset._operators_by_name",
)  # fmt: skip


class _OpNamespace(types.ModuleType):
    """The operators of one namespace."""

    __file__ = "cresset.ops"

    def __init__(self, name):
        super().__init__(f"{_C._printed_name()}.ops.{name}")
        self.name = name

    def _is_known(self, key):
        """Has the dispatcher the operator, also after the modules that define some of aten are loaded?"""
        qualname = f"{self.name}::{key}"
        if self.name == "aten" and not key.startswith("__"):
            for home in _ATEN_DEFINED_IN:
                if _C._overload_names(qualname):
                    break
                importlib.import_module(home)
        return bool(_C._overload_names(qualname))

    def __getattr__(self, key):
        if key in ("__origin__", "__self__"):
            raise AttributeError(f"Invalid attribute '{key}' for '_OpNamespace' '{self.name}'")
        # Operators may have names like __and__; others with two underscores are questions of the interpreter.
        if not key.startswith("__") and self.name in _DEFINED_IN:
            importlib.import_module(_DEFINED_IN[self.name])
        if self.name == "higher_order" and key in (known := sys.modules["cresset._higher_order"]._operators):
            return known[key]
        if not self._is_known(key):
            found = None if key.startswith("__") else _of_graphs("packet_of", self.name, f"{self.name}::{key}")
            if found is not None:
                self.__dict__[key] = found
                return found
            hint = "" if key.startswith("__") else _near(key, dir(self))
            raise with_hint(AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{key}'"), hint)
        packet = self.__dict__[key] = OpOverloadPacket(self.name, key)
        return packet

    def __dir__(self):
        prefix = f"{self.name}::"
        names = {n[len(prefix):].partition(".")[0] for n in _C._dispatch_get_all_op_names() if n.startswith(prefix)}
        return sorted(names)

    def __iter__(self):
        return iter(self.__dir__())


def _forget(qualname):
    """Drop what is kept of an operator that was removed."""
    namespace, _, name = qualname.partition("::")
    kept = ops.__dict__.get(namespace)
    if kept is not None:
        kept.__dict__.pop(name.partition(".")[0], None)


class _Ops(types.ModuleType):
    """Namespaces of operators, and libraries that register more."""

    __file__ = "_ops.py"

    def __init__(self):
        super().__init__("cresset.ops")
        self.loaded_libraries = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"'_Ops' object has no attribute '{name}'")
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def __dir__(self):
        return sorted({"load_library", "loaded_libraries", *(n.partition("::")[0] for n in _C._dispatch_get_all_op_names())})

    def load_library(self, path):
        """Load a shared library, which registers its operators while it is loaded."""
        import ctypes

        path = os.path.realpath(path)
        if path in self.loaded_libraries:
            return
        try:
            ctypes.CDLL(path)
        except OSError as error:
            raise with_hint(OSError(f"Could not load this library: {path}"), str(error)) from None
        self.loaded_libraries.add(path)


ops = _Ops()
sys.modules["cresset.ops"] = ops
