"""Operator schemas: parsing, printing and the C++ and Python spelling of their types."""

import re
from dataclasses import dataclass, field, replace

BASE_TYPES = {
    "Tensor", "Scalar", "int", "SymInt", "float", "bool", "SymBool", "str",
    "ScalarType", "Layout", "Device", "MemoryFormat", "Generator",
}
FACTORY_ARGS = ("dtype", "layout", "device", "pin_memory")
CPP_KEYWORDS = {
    "and", "or", "not", "xor", "default", "class", "struct", "template", "operator", "new", "delete",
    "int", "float", "double", "bool", "char", "long", "short", "auto", "const", "this", "register", "union",
}
SCALAR_TYPE_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int": "Int",
    "int64": "Long", "long": "Long", "float16": "Half", "half": "Half", "bfloat16": "BFloat16",
    "float32": "Float", "float": "Float", "float64": "Double", "double": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}
MEMORY_FORMATS = {
    "contiguous_format": "Contiguous", "preserve_format": "Preserve",
    "channels_last": "ChannelsLast", "channels_last_3d": "ChannelsLast3d",
}
REDUCTIONS = {"None": "0", "Mean": "1", "Sum": "2"}


class SchemaError(Exception):
    """A malformed schema; `column` is 1-based within the schema text."""

    def __init__(self, message, column):
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Type:
    base: str
    is_list: bool = False
    size: int | None = None       # N of `int[N]`
    inner_opt: bool = False       # `Tensor?[]`
    opt: bool = False
    alias: str | None = None      # `a` of `Tensor(a!)`
    write: bool = False
    wildcard: bool = False        # `Tensor(a -> *)`

    def __str__(self):
        text = self.base
        if self.alias is not None:
            text += f"({self.alias}{'!' if self.write else ''}{' -> *' if self.wildcard else ''})"
        if self.inner_opt:
            text += "?"
        if self.is_list:
            text += f"[{'' if self.size is None else self.size}]"
        return text + ("?" if self.opt else "")

    @property
    def is_tensor(self):
        return self.base == "Tensor"

    @property
    def plain_tensor(self):
        return self.base == "Tensor" and not self.is_list and not self.opt

    def without_alias(self):
        return replace(self, alias=None, write=False, wildcard=False)

    def cpp_arg(self):
        """The C++ parameter type."""
        base, opt = self.base, self.opt
        if base == "Tensor":
            if self.is_list:
                return "OptionalTensorList" if self.inner_opt else "TensorList"
            if opt:
                return "const std::optional<Tensor>&"
            return "Tensor&" if self.write else "const Tensor&"
        if base == "bool" and self.is_list and self.size is not None:
            return f"std::array<bool, {self.size}>"
        value = CPP_VALUE[base]
        if self.is_list:
            if value == "int64_t":
                return "OptionalIntArrayRef" if opt else "IntArrayRef"
            return f"std::optional<ArrayRef<{value}>>" if opt else f"ArrayRef<{value}>"
        if opt:
            value = f"std::optional<{value}>"
            return f"const {value}&" if base in ("Scalar", "Generator") else value
        return f"const {value}&" if base in ("Scalar", "Generator") else value

    def cpp_return(self):
        """The C++ type of one return value."""
        if self.base == "Tensor" and not self.is_list:
            return "Tensor&" if self.write else ("std::optional<Tensor>" if self.opt else "Tensor")
        value = "std::string" if self.base == "str" else CPP_VALUE[self.base]
        if self.is_list:
            return f"std::vector<{value}>"
        return f"std::optional<{value}>" if self.opt else value

    def cpp_owned(self):
        """A C++ type that owns a copy of the argument, for saving it."""
        value = "std::string" if self.base == "str" else CPP_VALUE[self.base]
        if self.base == "bool" and self.is_list and self.size is not None:
            return f"std::array<bool, {self.size}>"
        if self.is_list:
            value = f"std::vector<{value}>"
        return f"std::optional<{value}>" if self.opt else value

    def python(self, for_return=False):
        """The annotation used in the stubs."""
        base = PYTHON_VALUE[self.base]
        if self.base == "Scalar" and for_return:
            base = "Number"
        if self.inner_opt:
            base = f"{base} | None"
        if self.is_list:
            if for_return:
                base = f"tuple[{base}, ...]"
            elif self.base in ("int", "SymInt"):
                base = "int | Sequence[int]" if self.size is not None else "Sequence[int]"
            else:
                base = f"Sequence[{base}]"
        return f"{base} | None" if self.opt else base


CPP_VALUE = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int64_t", "SymInt": "int64_t", "float": "double", "bool": "bool", "SymBool": "bool",
    "str": "std::string_view", "ScalarType": "ScalarType", "Layout": "Layout", "Device": "Device",
    "MemoryFormat": "MemoryFormat", "Generator": "Generator",
}
PYTHON_VALUE = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "int", "SymInt": "int", "float": "float", "bool": "bool", "SymBool": "bool",
    "str": "str", "ScalarType": "dtype", "Layout": "layout", "Device": "DeviceLike",
    "MemoryFormat": "memory_format", "Generator": "Generator",
}


@dataclass(frozen=True)
class Arg:
    name: str
    type: Type
    default: str | None = None
    kwarg_only: bool = False

    def __str__(self):
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")

    @property
    def is_out(self):
        return self.kwarg_only and self.type.write

    def cpp_default(self):
        """The C++ default argument, or None."""
        text, kind = self.default, self.type
        if text is None:
            return None
        if text == "None":
            return "std::nullopt"
        if kind.is_list:
            if text.startswith("["):
                return "{" + text[1:-1] + "}"
            return "{" + ", ".join([text.lower()] * (kind.size or 1)) + "}"
        if text in ("True", "False"):
            return text.lower()
        if kind.base == "ScalarType":
            return f"ScalarType::{SCALAR_TYPE_NAMES[text]}"
        if kind.base == "MemoryFormat":
            return f"MemoryFormat::{MEMORY_FORMATS[text]}"
        if kind.base == "Layout":
            return "Layout::Strided"
        if kind.base == "int" and text in REDUCTIONS:
            return REDUCTIONS[text]
        if text == "inf":
            return "std::numeric_limits<double>::infinity()"
        if kind.base == "str":
            return '"' + text[1:-1] + '"'
        return text

    def python_default(self):
        text = self.default
        if text is None:
            return None
        if self.type.base == "int" and not self.type.is_list and not self.type.opt and text in REDUCTIONS:
            return REDUCTIONS[text]
        return text


@dataclass(frozen=True)
class Return:
    name: str | None
    type: Type

    def __str__(self):
        return str(self.type) + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Schema:
    ns: str
    name: str
    overload: str
    args: tuple = field(default=())
    returns: tuple = field(default=())

    @property
    def full_name(self):
        return f"{self.ns}::{self.name}"

    @property
    def key(self):
        """`add.Tensor`; the overload is left out when empty."""
        return self.name + (f".{self.overload}" if self.overload else "")

    @property
    def qualified(self):
        return f"{self.ns}::{self.key}"

    @property
    def ident(self):
        """A C++ identifier that is unique to the operator."""
        ident = self.name + (f"_{self.overload}" if self.overload else "")
        return ident if self.ns == "aten" else f"{self.ns}_{ident}"

    def text(self, with_ns=False):
        parts, star = [], False
        for arg in self.args:
            if arg.kwarg_only and not star:
                parts.append("*")
                star = True
            parts.append(str(arg))
        if len(self.returns) == 1:
            ret = str(self.returns[0])
        else:
            ret = "(" + ", ".join(map(str, self.returns)) + ")"
        return f"{self.qualified if with_ns else self.key}({', '.join(parts)}) -> {ret}"

    @property
    def tensor_args(self):
        return [a for a in self.args if a.type.is_tensor]

    @property
    def written(self):
        return [a for a in self.args if a.type.write]

    @property
    def out_args(self):
        return [a for a in self.args if a.is_out]

    @property
    def in_args(self):
        return [a for a in self.args if not a.is_out]

    @property
    def is_out(self):
        return bool(self.out_args)

    @property
    def is_inplace(self):
        return bool(self.args) and self.args[0].name == "self" and self.args[0].type.write and not self.is_out

    @property
    def is_view(self):
        return any(r.type.alias and not r.type.write for r in self.returns)

    @property
    def view_base(self):
        """The argument that a view result aliases."""
        names = {r.type.alias for r in self.returns if r.type.alias and not r.type.write}
        return next((a for a in self.args if a.type.alias in names and not a.type.write), None)

    @property
    def factory_index(self):
        """Index of `dtype` when the schema has the factory arguments, else None."""
        names = [a.name for a in self.args]
        for i, arg in enumerate(self.args):
            if arg.type.base == "ScalarType" and tuple(names[i:i + 4]) == FACTORY_ARGS:
                return i
        return None

    @property
    def is_factory(self):
        return self.factory_index is not None

    @property
    def result_names(self):
        if len(self.returns) == 1:
            return [self.returns[0].name or "result"]
        return [r.name or f"result{i}" for i, r in enumerate(self.returns)]

    def cpp_return(self):
        types = [r.type.cpp_return() for r in self.returns]
        if not types:
            return "void"
        return types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"

    def cpp_params(self, args=None):
        return ", ".join(f"{a.type.cpp_arg()} {a.name}" for a in (self.args if args is None else args))

    def cpp_signature(self, leading=""):
        """`Tensor (const Tensor&, int64_t)`: a function type."""
        types = ", ".join(a.type.cpp_arg() for a in self.args)
        if leading:
            types = leading + (", " + types if types else "")
        return f"{self.cpp_return()} ({types})"


class _Parser:
    def __init__(self, text):
        self.text, self.pos = text, 0

    def fail(self, message):
        raise SchemaError(message, self.pos + 1)

    def space(self):
        while self.pos < len(self.text) and self.text[self.pos].isspace():
            self.pos += 1

    def peek(self, token):
        self.space()
        return self.text.startswith(token, self.pos)

    def accept(self, token):
        if self.peek(token):
            self.pos += len(token)
            return True
        return False

    def expect(self, token):
        if not self.accept(token):
            found = self.text[self.pos:self.pos + 8] or "the end"
            self.fail(f"expected '{token}' but found '{found}'")

    def match(self, pattern, what):
        self.space()
        found = re.compile(pattern).match(self.text, self.pos)
        if not found:
            self.fail(f"expected {what}")
        self.pos = found.end()
        return found.group()

    def type(self):
        self.space()
        start = self.pos
        base = self.match(r"[A-Za-z_][A-Za-z0-9_]*", "a type")
        if base not in BASE_TYPES:
            self.pos = start
            self.fail(f"unknown type specifier '{base}'; known: {', '.join(sorted(BASE_TYPES))}")
        alias, write, wildcard = None, False, False
        if self.accept("("):
            alias = self.match(r"[a-z][a-z0-9]*", "an alias set")
            write = self.accept("!")
            if self.accept("->"):
                self.expect("*")
                wildcard = True
            self.expect(")")
        inner_opt = False
        if self.peek("?["):
            self.accept("?")
            inner_opt = True
        is_list, size = False, None
        if self.accept("["):
            is_list = True
            if not self.peek("]"):
                size = int(self.match(r"\d+", "a list size"))
            self.expect("]")
        opt = self.accept("?")
        if inner_opt and base != "Tensor":
            self.fail("only Tensor may be optional inside a list")
        return Type(base, is_list, size, inner_opt, opt, alias, write, wildcard)

    def default(self):
        return self.match(
            r"\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[A-Za-z_][A-Za-z0-9_]*",
            "a default value")

    def args(self):
        args, kwarg_only, names = [], False, set()
        self.expect("(")
        if self.accept(")"):
            return ()
        while True:
            if self.accept("*"):
                if kwarg_only:
                    self.fail("a second '*'")
                kwarg_only = True
            else:
                kind = self.type()
                name = self.match(r"[A-Za-z_][A-Za-z0-9_]*", "an argument name")
                if name in names:
                    self.fail(f"argument '{name}' appears twice")
                if name in CPP_KEYWORDS:
                    self.fail(f"argument name '{name}' is a C++ keyword")
                names.add(name)
                default = self.default() if self.accept("=") else None
                if args and default is None and args[-1].default is not None and not kwarg_only:
                    self.fail(f"argument '{name}' without a default follows one with a default")
                args.append(Arg(name, kind, default, kwarg_only))
            if self.accept(")"):
                return tuple(args)
            self.expect(",")

    def returns(self):
        if not self.accept("("):
            return (Return(None, self.type()),)
        if self.accept(")"):
            return ()
        out = []
        while True:
            kind = self.type()
            self.space()
            found = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").match(self.text, self.pos)
            name = None
            if found:
                name = found.group()
                self.pos = found.end()
            out.append(Return(name, kind))
            if self.accept(")"):
                return tuple(out)
            self.expect(",")


def parse(text):
    """Parses `[ns::]name[.overload](args) -> returns`; raises SchemaError."""
    p = _Parser(text)
    name = p.match(r"[A-Za-z_][A-Za-z0-9_]*", "an operator name")
    ns = "aten"
    if p.accept("::"):
        ns, name = name, p.match(r"[A-Za-z_][A-Za-z0-9_]*", "an operator name")
    overload = p.match(r"[A-Za-z_][A-Za-z0-9_]*", "an overload name") if p.accept(".") else ""
    if overload == "default" or (overload.startswith("__") and not overload.endswith("__")):
        p.fail(f"'{overload}' is not a legal overload name")
    args = p.args()
    p.expect("->")
    returns = p.returns()
    p.space()
    if p.pos != len(text):
        p.fail("unexpected text after the returns")
    return Schema(ns, name, overload, args, returns)
