"""The C++ functions, Tensor methods and redispatch functions of every operator."""

import json
import zlib
from dataclasses import dataclass

import cpp
from output import header, source

CORE = "<cresset/core/tensor.h>"
SIGNATURE_FILES = 12


@dataclass
class Param:
    type: str
    name: str
    default: str | None = None

    def __str__(self):
        return f"{self.type} {self.name}" + (f" = {self.default}" if self.default is not None else "")


@dataclass
class Function:
    """One C++ declaration that calls an operator: `args` are the expressions passed on, in schema order."""
    op: object
    name: str
    params: list
    args: list
    method: bool = False
    plain: bool = False        # parameters are the schema's, in its order

    def declaration(self, qualifier="", defaults=True):
        params = ", ".join(str(p) if defaults else f"{p.type} {p.name}" for p in self.params)
        const = " const" if self.method else ""
        return f"{self.op.schema.cpp_return()} {qualifier}{self.name}({params}){const}"

    def facts(self):
        """The declaration in parts, for tools."""
        params = [{"type": p.type, "name": p.name, "default": p.default} for p in self.params]
        return {"name": self.name, "result": self.op.schema.cpp_return(), "parameters": params}

    def makes_leaf(self):
        """Does its TensorOptions say whether the new tensor requires a gradient?"""
        return self.has_options() and not self.op.schema.is_view

    def has_options(self):
        return any(p.type == "TensorOptions" for p in self.params)

    def definition(self):
        schema = self.op.schema
        # Methods and the forms with TensorOptions or out first go through the plain function: one call site an operator.
        if self.plain:
            call = operator_call(self.op, "call", self.args)
        else:
            call = f"cresset::{schema.name}{'_outf' if schema.is_out else ''}({', '.join(self.args)})"
        if self.makes_leaf():
            call = f"ops::as_leaf({call}, options)"
        body = f"return {call};" if schema.returns else f"{call};"
        if self.has_options() and schema.is_view:
            body = f"ops::check_no_requires_grad(options); {body}"
        return f"{self.declaration('Tensor::' if self.method else '', False)} {{ {body} }}\n"


def operator_call(op, function, args):
    return f"ops::OperatorCall<{op.schema.cpp_signature()}>::{function}({', '.join([*args, f'op_{op.ident}'])})"


def redispatch_name(op):
    return op.ident


def _params(args, with_defaults):
    return [Param(a.type.cpp_arg(), a.name, a.cpp_default() if with_defaults else None) for a in args]


def functions_of(op):
    """All C++ functions in namespace cresset for one operator."""
    schema = op.schema
    names = [a.name for a in schema.args]
    if op.form == "out" or schema.is_out:
        outs = schema.out_args
        first = _params(outs, False) + _params(schema.in_args, True)
        return [Function(op, schema.name + "_out", first, names), Function(op, schema.name + "_outf", _params(schema.args, False), names, plain=True)]
    if not schema.is_factory:
        return [Function(op, schema.name, _params(schema.args, True), names, plain=True), *_by_number(op)]
    return [Function(op, schema.name, _options_params(schema.args), _options_args(schema)),
            Function(op, schema.name, _params(schema.args, False), names, plain=True)]


def _by_number(op):
    """The form of var, std, ... with one dimension as an int: without it C++ reads the 0 of var(0) as `unbiased = false`."""
    schema = op.schema
    if [a.name for a in schema.args[1:3]] != ["dim", "unbiased"]:
        return []
    rest = [a.cpp_default() for a in schema.args[2:]]
    return [Function(op, schema.name, [*_params(schema.args[:1], False), Param("int", "dim")],
                     [schema.args[0].name, "IntArrayRef(int64_t{dim})", *rest])]


def _options_params(args):
    out = []
    for arg in args:
        if arg.name == "dtype":
            out.append(Param("TensorOptions", "options", "kLong" if arg.default == "long" else "{}"))
        elif arg.name not in ("layout", "device", "pin_memory"):
            out.append(Param(arg.type.cpp_arg(), arg.name, arg.cpp_default()))
    return out


def _options_args(schema):
    spelled = {"dtype": "options.dtype_opt()", "layout": "options.layout_opt()", "device": "options.device_opt()",
               "pin_memory": "options.pinned_memory_opt()", "memory_format": "memory_format ? memory_format : options.memory_format_opt()"}
    return [spelled.get(a.name, a.name) for a in schema.args]


def methods_of(op):
    """The Tensor methods of one operator."""
    schema = op.schema
    asked = {"cpp_method"} if schema.full_name.startswith("cresset::") else {"method", "cpp_method"}
    if not asked & set(op.row.python) or schema.is_out:
        return []
    if not any(a.name == "self" and a.type.plain_tensor for a in schema.args):
        return []
    this = "const_cast<Tensor&>(*this)" if schema.args[0].type.write else "*this"
    out = []
    for function in functions_of(op):
        params = [p for p in function.params if p.name != "self"]
        args = [this if a == "self" else a for a in function.args]
        out.append(Function(op, schema.name, params, args, method=True))
    return out


def settle_defaults(functions):
    """Drops default arguments that would make two overloads equal for some call. Earlier declarations win."""
    used = {}
    for f in functions:
        taken = used.setdefault((f.name, f.method), set())
        required = next((i for i in range(len(f.params), 0, -1) if f.params[i - 1].default is None), 0)
        shapes = lambda start: {tuple(_loose(p.type) for p in f.params[:n]) for n in range(start, len(f.params) + 1)}
        while required < len(f.params) and shapes(required) & taken:
            f.params[required].default = None
            required += 1
        if shapes(required) & taken:
            raise f.op.row.error(f"its C++ function {f.name} has the same parameters as that of another overload; "
                                 "an internal operator needs a name of its own (as cresset::NAME_elements).")
        taken |= shapes(required)
    return functions


def _loose(cpp_type):
    """Types between which `{}`-free calls with equal arguments would be ambiguous count as one."""
    return cpp_type.replace("const ", "").replace("&", "")


def emit(table, out):
    functions, methods = [], []
    for op in table.ops():
        functions += functions_of(op)
        methods += methods_of(op)
    settle_defaults(functions)
    settle_defaults(methods)
    by_family = {f.name: ([], []) for f in table.families}
    for f in functions:
        by_family[f.op.family.name][0].append(f)
    for m in methods:
        by_family[m.op.family.name][1].append(m)
    for family in table.families:
        fs, ms = by_family[family.name]
        body = "".join(f"CRESSET_API {f.declaration()};\n" for f in fs)
        out.add("core-header", f"include/cresset/ops/functions_{family.name}.h", header(family.name, [CORE], body, "cresset"))
        out.add("ops", f"src/ops/functions_{family.name}.cpp", _definitions(family, fs, ms))
    out.add("data", "data/functions.json", "[\n" + ",\n".join(json.dumps(f.facts()) for f in functions) + "\n]\n")
    includes = [f"<cresset/ops/functions_{f.name}.h>" for f in table.families]
    out.add("core-header", "include/cresset/ops/functions.h", header(None, includes, ""))
    lines = sorted({m.declaration() + ";\n" for m in methods})
    out.add("core-header", "include/cresset/ops/tensor_methods.inc",
            "// Generated by tools/opgen from src/ops/*.toml. Do not edit. Included inside class Tensor.\n" + "".join(lines))
    for family in table.families:
        body = "".join(f"CRESSET_API {_redispatch(op)};\n" for op in family.ops())
        out.add("core-header", f"include/cresset/ops/redispatch_{family.name}.h",
                header(family.name, [CORE, "<cresset/core/dispatch_key_set.h>"], body, "cresset::redispatch"))
    includes = [f"<cresset/ops/redispatch_{f.name}.h>" for f in table.families]
    out.add("core-header", "include/cresset/ops/redispatch.h", header(None, includes, ""))


    _emit_signatures(table, out)


def _emit_signatures(table, out):
    """The code of each signature, in the file that a checksum of its text chooses."""
    parts = [[] for _ in range(SIGNATURE_FILES)]
    for signature in sorted({op.schema.cpp_signature() for op in table.ops()}):
        parts[zlib.crc32(signature.encode()) % SIGNATURE_FILES].append(f"CRESSET_SIGNATURE({signature})\n")
    for i, lines in enumerate(parts):
        out.add("ops", f"src/ops/signatures_{i}.cpp", source(None, ['"ops/shared/signature_code.h"'], "".join(lines), "cresset"))


def _redispatch(op):
    params = op.schema.cpp_params()
    return f"{op.schema.cpp_return()} {redispatch_name(op)}(DispatchKeySet ks{', ' + params if params else ''})"


def _definitions(family, functions, methods):
    parts = ["namespace {\n\n"]
    for op in family.ops():
        parts.append(f"constinit LazyOperator op_{op.ident}{{\"{op.schema.full_name}\", \"{op.schema.overload}\"}};\n")
    parts.append("\n}  // namespace\n\n")
    parts += [f.definition() for f in functions]
    parts.append("\n")
    parts += [m.definition() for m in methods]
    parts.append("\nnamespace redispatch {\n\n")
    for op in family.ops():
        call = operator_call(op, "redispatch", ["ks"] + [a.name for a in op.schema.args])
        parts.append(f"{_redispatch(op)} {{ {'return ' if op.schema.returns else ''}{call}; }}\n")
    parts.append("\n}  // namespace redispatch\n")
    parts.append(_schemas(family))
    return source(family.name, ["<iterator>", f"<cresset/ops/functions_{family.name}.h>", f"<cresset/ops/redispatch_{family.name}.h>", '"ops/shared/operator_call.h"'],
                  "".join(parts), "cresset")


def _schemas(family):
    lines = []
    for op in family.ops():
        tags = " ".join(op.tags)
        lines.append(f"    {{{cpp.quote(op.schema.text(True))}, \"{tags}\", {op.row.line}, &ops::SignatureCodeOf<{op.schema.cpp_signature()}>::value}},\n")
    name = f"kSchemas_{family.name}"
    return (f"\nconst tables::SchemaRow {name}[] = {{\n{''.join(lines)}}};\n"
            f"const tables::SchemaTable {name}_table(\"{family.source}\", {name}, std::size({name}));\n")
