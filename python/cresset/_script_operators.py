"""Operators that only graphs have, from Python: `ops.aten.Int`, `ops.aten.add.int`, `ops.prim.NumToTensor`.

Each runs as a graph of one node. Types of Python's values choose among overloads, as they do for the dispatcher's operators.
"""

import functools

from . import _C

__all__ = ["ScriptOverload", "ScriptPacket", "overload_of", "packet_of"]

_TWIN = "hacked_twin"


@functools.cache
def _schemas(qualname):
    """{name of the overload: schema}."""
    _C._load_graph_part()  # once
    return {s.overload_name or "default": s for s in _C._jit_get_schemas_for_operator(qualname)}


def _package():
    import cresset

    return cresset


class ScriptOverload:
    """One overload of an operator that the dispatcher does not have."""

    is_view = False
    op = _op = property(lambda self: self, doc="The operator itself.")
    overloadpacket = _overloadpacket = property(lambda self: getattr(getattr(_package().ops, self.namespace), self._opname), doc="All overloads of the same name.")

    def __init__(self, schema):
        self._schema = schema
        self._function = None
        self.namespace, _, self._opname = schema.name.partition("::")
        self._overloadname = schema.overload_name or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self._name = self.__qualname__ = self.name()
        self.__module__ = f"{_C._printed_name()}._ops.{self.namespace}"
        self.py_kernels = {}

    @property
    def tags(self):
        """The operator's tags."""
        return [_package().Tag.pt2_compliant_tag] if self.namespace == "aten" else []

    def has_kernel_for_dispatch_key(self, key):
        """RuntimeError: the dispatcher does not have the operator."""
        raise RuntimeError(f"operator {self._name} does not exist")

    def decompose(self, *args, **kwargs):
        """RuntimeError: the dispatcher does not have the operator."""
        raise RuntimeError(f"operator {self._name} does not exist")

    def name(self):
        """The name with that of the overload: "aten::add.int"."""
        return self._schema.name + (f".{self._schema.overload_name}" if self._schema.overload_name else "")

    def _compiled(self):
        if self._function is None:
            s = self._schema
            inputs = ", ".join(f"%{a.name} : {a.type.str()}" for a in s.arguments)
            outputs = ", ".join(f"%r{i} : {r.type.str()}" for i, r in enumerate(s.returns))
            operands = ", ".join(f"%{a.name}" for a in s.arguments)
            returned = ", ".join(f"%r{i}" for i in range(len(s.returns)))
            call = f"{s.name}({operands})"
            if not s.returns:  # a function gives None
                outputs, call, returned = "", f"{call}\n  %r : NoneType = prim::Constant()", "%r"
            text = f"graph({inputs}):\n  {outputs} = {call}\n  return ({returned})"
            self._function = _C._create_function_from_graph(s.name, _C.parse_ir(text))
        return self._function

    def __call__(self, *args, **kwargs):
        formals = self._schema.arguments
        if len(args) > len(formals):
            raise RuntimeError(f"{self._schema.name}() expected at most {len(formals)} argument(s) but received {len(args)} argument(s).")
        values = list(args)
        for formal in formals[len(args) :]:
            if formal.name in kwargs:
                values.append(kwargs.pop(formal.name))
            elif formal.has_default_value():
                values.append(formal.default_value)
            else:
                raise RuntimeError(f"{self._schema.name}() is missing value for argument '{formal.name}'. Declaration: {self._schema}")
        if kwargs:
            raise RuntimeError(f"Unknown keyword argument '{next(iter(kwargs))}' for operator '{self._schema.name}'. Schema: {self._schema}")
        return self._compiled()(*values)

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"


class ScriptPacket:
    """All overloads of an operator that the dispatcher does not have. A call takes the first that the arguments fit."""

    def __init__(self, qualname):
        self._qualified_op_name = qualname
        namespace, _, self.__name__ = qualname.partition("::")
        self.__module__ = f"{_C._printed_name()}._ops.{namespace}"

    @property
    def op(self):
        """The packet itself."""
        return self

    def overloads(self):
        """Names of the overloads; the one without a name is called default."""
        return list(_schemas(self._qualified_op_name))

    def __getattr__(self, key):
        overload = None if key.startswith("__") else overload_of(self._qualified_op_name, key)
        if overload is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{key}'")
        self.__dict__[key] = overload
        return overload

    def __call__(self, *args, **kwargs):
        refused, types = [], [type(a).__name__ for a in args]

        def distance(name):  # how many arguments another type than theirs would be made of
            formals = _schemas(self._qualified_op_name)[name].arguments
            return sum(str(formal.type) != given for formal, given in zip(formals, types))

        for name in sorted(self.overloads(), key=distance):
            try:
                return getattr(self, name)(*args, **kwargs)
            except RuntimeError as error:
                if "Expected a value of type" not in str(error) and "argument" not in str(error):
                    raise
                refused.append(str(error))
        raise RuntimeError(f"{self._qualified_op_name}: no overload takes these arguments.\n" + "\n".join(refused))

    def __str__(self):
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"


def packet_of(qualname):
    """The packet of an operator of graphs, or None."""
    return ScriptPacket(qualname) if _schemas(qualname) else None


def overload_of(qualname, key):
    """The overload of an operator of graphs, or None."""
    if key.endswith(_TWIN):  # indices that are all there, for scripts that have no lists of Optional: the operator itself takes them
        base = _C._find_overload(qualname, key[: -len(_TWIN)].rstrip("_"))
        return base if base is not None and "Tensor?[]" in base._schema_text else None
    schema = _schemas(qualname).get(key)
    return None if schema is None else ScriptOverload(schema)
