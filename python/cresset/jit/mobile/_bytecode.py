"""Methods of script modules as the instructions that PyTorch's runtime for phones executes: version 8 of its bytecode."""

from cresset import _C

from ._pickled import TypedList

__all__ = ["VERSION", "method_entry"]

VERSION = 8

# Operators that are instructions of their own. None of them has a number but those in _COUNTED, whose number is how many values they take.
_INSTRUCTIONS = {
    "aten::__is__": "__IS__", "aten::__isnot__": "__ISNOT__", "aten::__not__": "__NOT__", "aten::dim": "DIM", "aten::warn": "WARN",
    "prim::NumToTensor": "NUM_TO_TENSOR", "prim::TupleIndex": "TUPLE_INDEX", "prim::Uninitialized": "UN_INITIALIZED", "prim::device": "DEVICE",
    "prim::dtype": "DTYPE", "prim::is_cuda": "IS_CUDA",
}  # fmt: skip
_COUNTED = {"aten::format": "FORMAT", "prim::ListUnpack": "LIST_UNPACK", "prim::TupleSlice": "TUPLE_SLICE"}
# What the runtime has as operators without a schema, with the number of arguments that it writes for them.
_PLAIN = {"prim::TupleUnpack": 1, "prim::unchecked_cast": 1, "prim::unchecked_unwrap_optional": 1, "prim::Print": -1}
_REFUSED = {"prim::fork": "FORK", "aten::wait": "WAIT", "prim::awaitable": "AWAITABLE"}


def _type_text(kind):
    """A type as the runtime parses it: named tuples with their fields."""
    names = kind.field_names() if kind.kind() == "TupleType" else None
    if names:
        fields = ",".join(f"[{name}, {_type_text(of)}]" for name, of in zip(names, kind.elements(), strict=True))
        return f"{kind.annotation_str}[NamedTuple, [{fields}]]"
    inner = {"ListType": "List", "OptionalType": "Optional", "TupleType": "Tuple", "DictType": "Dict"}.get(kind.kind())
    if inner is None:
        return kind.annotation_str
    parts = (kind.getKeyType(), kind.getValueType()) if inner == "Dict" else kind.elements() if inner == "Tuple" else (kind.getElementType(),)
    return f"{inner}[{','.join(map(_type_text, parts))}]"


def _typed(value, kind):
    """A constant whose lists and dictionaries say their types."""
    name = kind.kind()
    if value is not None and name == "OptionalType":
        return _typed(value, kind.getElementType())
    if isinstance(value, tuple) and name == "TupleType":
        return tuple(map(_typed, value, kind.elements()))
    if isinstance(value, list) and name == "ListType":
        of = kind.getElementType()
        return TypedList([_typed(item, of) for item in value], of.annotation_str, _type_text(kind))
    if isinstance(value, dict) and name == "DictType":
        return TypedList({k: _typed(v, kind.getValueType()) for k, v in value.items()}, None, _type_text(kind))
    return value


def _holds_module(kind):
    """The class of modules or other objects that a list or dictionary of this type holds, or None."""
    if kind.kind() in ("ListType", "DictType"):
        of = kind.getElementType() if kind.kind() == "ListType" else kind.getValueType()
        return of if of.kind() == "ClassType" else _holds_module(of)
    return None


def _form_of_numbers(schema, node):
    """The schema of a node; where a number stands for a tensor, as in traces, that of the form that takes numbers there."""
    if "..." in schema.partition("->")[0]:
        return schema
    kinds_of_numbers = ("IntType", "FloatType", "BoolType", "NumberType", "ComplexType")
    numbers = [v.type().kind() in kinds_of_numbers or isinstance(v.toIValue(), (int, float, complex)) for v in node.inputs()]
    kinds = [str(argument.type) for argument in _C.parse_schema(schema).arguments]
    wanted = ["number" if kind == "Tensor" and number else kind for kind, number in zip(kinds, numbers, strict=True)]
    if wanted == kinds:
        return schema
    for other in _C._jit_get_schemas_for_operator(node.kind()):
        if [str(argument.type) for argument in other.arguments] == wanted:
            return str(other)
    raise NotImplementedError(f"_save_for_lite_interpreter: {node.kind()} of a number in place of a tensor has no form in bytecode. Pass a tensor.")


class _Table:
    """Values by number; equal ones of one type have one."""

    def __init__(self):
        self.values, self._numbers = [], {}

    def number(self, value, key):
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class _Writer:
    """The instructions of one graph. A value has a register from where it is computed to its last use, which moves it out."""

    def __init__(self, slots):
        self.code, self.operators, self.types, self.constants = [], _Table(), _Table(), _Table()
        self._slots, self._registers, self._size = slots, {}, 0
        self.calls_interfaces = False

    def _emit(self, name, x=0, n=0):
        self.code.append((name, x, n))
        return len(self.code) - 1

    def _jump_to_here(self, at):
        name, _, n = self.code[at]
        self.code[at] = (name, len(self.code) - at, n)

    # values

    def _store(self, values):
        """Take values from the stack, the last one on top, into fresh registers that follow one another."""
        first = self._size + 1
        for value in values:
            self._size += 1
            self._registers[value.unique()] = self._size
        if len(values) == 1:
            self._emit("STORE", first)
        elif values:
            self._emit("STOREN", first, len(values))
        for value in values:
            if not value.hasUses():
                self._emit("DROPR", self._registers.pop(value.unique()))

    def _load(self, values, last):
        """Put values on the stack; `last` has the numbers of those that nothing reads afterwards."""
        for i, value in enumerate(values):
            number = value.unique()
            if value.node().kind() == "prim::Constant":
                self._emit("LOADC", self._constant(value))
            elif number in last and all(later.unique() != number for later in values[i + 1 :]):
                if self.code[-1] == ("STORE", self._registers[number], 0):
                    self.code.pop()  # it is on the stack; jumps to here find it there, too
                else:
                    self._emit("MOVE", self._registers[number])
            else:
                self._emit("LOAD", self._registers[number])

    def _constant(self, value):
        held = value.toIValue()
        by_value = (type(held), repr(held)) if isinstance(held, (bool, int, float, complex, str, type(None))) else value.unique()
        return self.constants.number(_typed(held, value.type()), by_value)

    @staticmethod
    def _reads(node):
        """The values that a node reads, and those that its blocks read."""
        direct, nested = {v.unique() for v in node.inputs()}, set()
        for block in node.blocks():
            for inner in block.nodes():
                for reads in _Writer._reads(inner):
                    nested |= reads
            nested |= {v.unique() for v in block.outputs()}
        return direct, nested

    def block(self, block, inputs=()):
        """The nodes of a block, whose results are left on the stack. `inputs`: its values that are in registers already."""
        nodes = [node for node in block.nodes() if node.kind() != "prim::Constant"]
        own = {v.unique() for v in inputs} | {v.unique() for node in nodes for v in node.outputs()}
        results, later, after = list(block.outputs()), {v.unique() for v in block.outputs()}, []
        for node in reversed(nodes):
            direct, nested = self._reads(node)
            ends = (direct | nested) - later
            after.append((ends & own & (direct - nested), ends & own & nested))
            later |= direct | nested
        for node, (moved, dropped) in zip(nodes, reversed(after), strict=True):
            self._node(node, moved)
            for number in sorted(dropped):
                self._emit("DROPR", self._registers.pop(number))
        self._load(results, own)

    # nodes

    def _node(self, node, moved):
        kind = node.kind()
        if kind == "prim::If":
            return self._if(node, moved)
        if kind == "prim::Loop":
            return self._loop(node, moved)
        if kind in _REFUSED:
            raise RuntimeError(f"{_REFUSED[kind]} is not supported in mobile module.")
        inputs = list(node.inputs())
        if kind == "prim::RaiseException":
            inputs = inputs[:1]
        self._load(inputs, moved)
        for left in moved - {v.unique() for v in inputs}:
            self._emit("DROPR", self._registers.pop(left))
        self._call(node, kind, inputs)
        return self._store(list(node.outputs()))

    def _call(self, node, kind, inputs):
        if kind in ("prim::ListConstruct", "prim::DictConstruct"):
            self._emit(kind[6:-9].upper() + "_CONSTRUCT", self._type(node.output().type()), len(inputs))
        elif kind == "prim::TupleConstruct":
            if node.output().type().field_names():
                self._emit("NAMED_TUPLE_CONSTRUCT", self._type(node.output().type()), len(inputs))
            else:
                self._emit("TUPLE_CONSTRUCT", len(inputs))
        elif kind == "prim::GetAttr":
            self._emit("GET_ATTR", self._slot(inputs[0], node.s("name")))
        elif kind == "prim::SetAttr":
            self._emit("SET_ATTR", self._slot(inputs[0], node.s("name")))
        elif kind == "prim::isinstance":
            numbers = [self.types.number(_type_text(t), (node, i)) for i, t in enumerate(node.tys("types"))]
            self._emit("ISINSTANCE", numbers[0], len(numbers))
        elif kind == "prim::CallMethod":
            self.calls_interfaces = True
            name = node.s("name")
            self._emit("INTERFACE_CALL", self.constants.number(name, (str, repr(name))), len(inputs))
        elif kind == "prim::CreateObject":
            self._refuse_class(node.output().type())
        elif kind == "prim::RaiseException":
            self._emit("RAISE_EXCEPTION")
        elif kind in _COUNTED:
            self._emit(_COUNTED[kind], len(inputs) if kind == "aten::format" else len(list(node.outputs())))
        elif kind in _INSTRUCTIONS:
            self._emit(_INSTRUCTIONS[kind])
        else:
            self._operator(node, kind, len(inputs))

    def _operator(self, node, kind, given):
        schema = str(node.schema())
        if kind in _PLAIN:
            name, overload, count = kind, "", _PLAIN[kind]
        elif "(" not in schema or schema == "(no schema)":
            raise NotImplementedError(f"_save_for_lite_interpreter: {kind} has no instruction in bytecode. Save it with jit.save.")
        else:
            name, _, overload = _form_of_numbers(schema, node).partition("(")[0].partition(".")
            count = -1 if "..." in schema.partition("->")[0] else given
        at = self.operators.number((name, overload, count), (name, overload, count))
        self._emit("OPN" if count < 0 else "OP", at, given if count < 0 else 0)

    def _if(self, node, moved):
        self._load([node.input()], moved)
        first, second = node.blocks()
        to_second = self._emit("JF")
        self.block(first)
        over = self._emit("JMP")
        self._jump_to_here(to_second)
        self.block(second)
        self._jump_to_here(over)
        self._store(list(node.outputs()))

    def _loop(self, node, moved):
        inputs = list(node.inputs())
        self._emit("LOADC", self.constants.number(0, "count"))
        self._load(inputs, moved)
        (body,) = node.blocks()
        start = self._emit("LOOP", 0, len(inputs))
        held = list(body.inputs())
        self._store(held)
        self.block(body, [v for v in held if v.hasUses()])
        self.code.append(("JMP", start - len(self.code), 0))
        self._jump_to_here(start)
        self._store(list(node.outputs()))

    def _type(self, kind):
        text = _type_text(kind)
        return self.types.number(text, text)

    def _slot(self, of, name):
        kind = of.type().annotation_str
        if kind not in self._slots:
            self._refuse_class(of.type())
        return self._slots[kind].index(name)

    @staticmethod
    def _refuse_class(kind):
        name = kind.annotation_str.rpartition(".")[2]
        raise RuntimeError(
            f"Workaround: instead of using arbitrary class type (class {name}()), define a pytorch class (class {name}(torch.nn.Module)). "
            f"The problematic type is: {kind.annotation_str}"
        )


def method_entry(method, slots):
    """(qualified name, code, schema) of a method, as a file has them, and whether it calls methods that only the object knows. `slots` has the names of the attributes of each class, in the order
    in which its objects are saved. RuntimeError and NotImplementedError for what phones cannot run."""
    graph, schema = method.inlined_graph, method.schema
    for returned in graph.outputs():
        held = _holds_module(returned.type())
        if held is not None:
            name = held.annotation_str.rpartition(".")[2]
            raise RuntimeError(
                "Returning a list or dictionary with pytorch class type is not supported in mobile module "
                f"(List[{name}] or Dict[int, {name}] for class {name}(torch.nn.Module)). Workaround: instead of using pytorch class as their "
                "element type, use a combination of list, dictionary, and single types."
            )
    writer, inputs = _Writer(slots), list(graph.inputs())
    writer._store(inputs)
    writer.block(graph, [v for v in inputs if v.hasUses()])
    writer._emit("RET")
    code = (
        ("instructions", tuple(writer.code)), ("operators", tuple(writer.operators.values)), ("constants", tuple(writer.constants.values)),
        ("types", tuple(writer.types.values)), ("register_size", writer._size),
    )  # fmt: skip

    def described(argument):
        return (("name", argument.name), ("type", str(argument.type)), ("default_value", getattr(argument, "default_value", None)))

    faces = (("arguments", tuple(map(described, schema.arguments))), ("returns", tuple(map(described, schema.returns))))
    return (method.qualified_name, code, faces), writer.calls_interfaces
