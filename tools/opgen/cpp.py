"""Pieces of C++ shared by the emitters: registration blocks, forwarding calls, form arguments."""

import re

IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote(text):
    """A C++ string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def names(args):
    return ", ".join(a.name for a in args)


def call(function, args):
    return f"{function}({names(args)})"


def impl_blocks(key, entries):
    """A table of kernels and the object that announces it; `entries` are (op, entry of the kernel)."""
    if not entries:
        return ""
    rows = "".join(f"    {{\"{op.schema.ns}::{op.schema.key}\", {entry[0]}, {op.row.line}, tables::Entry::{entry[1]}}},\n" for op, entry in entries)
    family = entries[0][0].family
    name = f"k{key}_{family.name}"
    return (f"const tables::KernelRow {name}[] = {{\n{rows}}};\n"
            f"const tables::KernelTable {name}_table(DispatchKey::{key}, \"{family.source}\", {name}, std::size({name}));\n\n")


# Entries of kernels: (address, kind) as they stand in a tables::KernelRow.
FALLTHROUGH = ("nullptr", "Fallthrough")


def kernel(function):
    return (f"reinterpret_cast<const void*>(&{function})", "Function")


def kernel_of_several(function):
    return (f"reinterpret_cast<const void*>(&{function})", "OfOperator")


def functional_args(op):
    """Expressions for the row's own (functional) arguments, seen from a derived form."""
    out, outs = [], op.schema.out_args
    have = {a.name for a in op.schema.args}
    for arg in op.row.schema.args:
        if arg.name == "dtype" and op.form == "out" and op.row.get("out_dtype") == "argument" and arg.name in have:
            out.append(f"dtype ? dtype : std::optional<ScalarType>({outs[0].name}.scalar_type())")
        elif arg.name in have:
            out.append(arg.name)
        elif arg.name == "dtype":
            out.append(f"std::optional<ScalarType>({outs[0].name}.scalar_type())")
        elif arg.name == "layout":
            out.append(f"std::optional<Layout>({outs[0].name}.layout())")
        elif arg.name == "device":
            out.append(f"std::optional<Device>({outs[0].name}.device())")
        else:
            out.append("std::optional<bool>()")
    return ", ".join(out)


def define(op, name, body):
    """A function with the operator's signature. Parameters that the body does not use have no name."""
    return _define(op, name, body, [])


def define_kernel(op, name, body):
    """The same as the entry of a kernel (tables::Entry::Function); the body may use the keys of the call, `ks`."""
    return _define(op, name, body, ["OperatorKernel*", "DispatchKeySet ks"])


def _define(op, name, body, leading):
    used = set(re.findall(r"\w+", " ".join(body)))
    named = lambda kind, name: f"{kind} {name}" if name in used else kind
    params = ", ".join([named(*p.partition(" ")[::2]) if " " in p else p for p in leading] + [named(a.type.cpp_arg(), a.name) for a in op.schema.args])
    text = "".join(f"  {line}\n" if line else "\n" for line in body)
    return f"{op.schema.cpp_return()} {name}({params}) {{\n{text}}}\n"


def functional_above(op):
    """A call of the functional form for an in-place one above autograd: the parts may keep self for backward, and self changes afterwards."""
    row = op.row
    tensors = ["self", *(a.name for a in row.schema.args if str(a.type) == "Tensor" and a.name != "self")]
    kept = f"ops::before_change({', '.join(tensors)})"
    return f"cresset::{row.schema.name}({functional_args(op).replace('self', kept, 1)})"


def forward(op, function):
    """The body of a kernel that is a function with the operator's parameters."""
    return [f"{'return ' if op.schema.returns else ''}{call(function, op.schema.args)};"]


def return_outs(op):
    """The return statement of an out or in-place form."""
    written = op.schema.out_args or [a for a in op.schema.args if a.type.write and a.type.plain_tensor]
    count = len(op.schema.returns)
    if count == 0:
        return "return;"
    if count == 1:
        return f"return {written[0].name};"
    types = ", ".join(["Tensor&"] * count)
    return f"return std::tuple<{types}>({names(written[:count])});"


def tensor_inputs(op):
    return [a for a in op.schema.in_args if a.type.is_tensor]


def first_device(op):
    """An expression for the device of the first tensor input, or None."""
    inputs = tensor_inputs(op)
    return f"ops::device_of({names(inputs)})" if inputs else None


def is_name(text):
    return bool(IDENT.match(text))


def api_name(op):
    """The C++ function of namespace cresset that calls an operator, arguments in schema order."""
    return f"cresset::{op.schema.name}" + ("_outf" if op.schema.is_out else "")
