"""`opgen where` and `opgen show`: what a name is made of and where its pieces are."""

import re
from pathlib import Path

import emit_cpu
import emit_functions
import emit_ops
from emit_python import differentiability, dispatch_default, places_of
from formulas import Derivative
from table import TableError, hint


def find(table, name):
    ops = table.find(name)
    if not ops:
        raise TableError(f"opgen: no operator '{name}'.{hint(name.removeprefix('aten::'), table.names())}")
    return ops


def definition(root, folder, family, function):
    """file:line of a hand-written function; the family's own file is searched first."""
    pattern = re.compile(rf"^(?:[\w:<>,&*\s]+[\s&*>])?{re.escape(function)}\s*\(", re.M)
    paths = sorted(Path(root, folder).glob("*.cpp"), key=lambda p: (not p.stem.startswith(family), p.name))
    for path in paths:
        text = path.read_text()
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.end()) + 1
            if not text.splitlines()[line - 1].rstrip().endswith(";"):
                return f"{path.relative_to(root)}:{line}"
    return "(not found)"


def pieces(root, op):
    """(what, function, place) of the hand-written code behind an operator."""
    row, family = op.row, op.family.name
    out = []
    for key, folder in (("shape", "src/ops"), ("composite", "src/ops"), ("explicit", "src/ops"), ("meta", "src/ops"),
                        ("kernel", "src/backends/cpu"), ("cpu", "src/backends/cpu")):
        text = row.get(key)
        if text:
            plain = re.fullmatch(r"\w+", text)
            place = definition(root, folder, family, text) if plain else f"{row.family.path}:{row.key_line(key)}"
            out.append((key, text, place))
    if row.kind == "pointwise":
        out.append(("pointwise", row.get("pointwise"), f"{row.family.path}:{row.key_line('pointwise')}"))
    return out


def where(table, root, name):
    lines = []
    for op in find(table, name):
        lines.append(f"{op.schema.qualified}\t{op.row.where}")
        lines += [f"  {what:<10}{function}\t{place}" for what, function, place in pieces(root, op)]
    return "\n".join(lines)


def show(table, root, name):
    return "\n\n".join(_show(root, op) for op in find(table, name))


def _show(root, op):
    row, s = op.row, op.schema
    dispatch, default = dispatch_default(op)
    lines = [s.text(True), f"  row         {row.where}" + (f" (form '{op.form}' of {row.schema.key})" if op.derived else "")]
    if op.alias_of:
        lines.append(f"  alias of    {op.alias_of.schema.qualified}")
    if row.doc:
        lines.append(f"  doc         {row.doc}")
    for what, function, place in pieces(root, op):
        lines.append(f"  {what:<12}{function}   {place}")
    lines.append(f"  C++         {s.cpp_return()} ({', '.join(a.type.cpp_arg() + ' ' + a.name for a in s.args)})")
    for f in emit_functions.functions_of(op) + emit_functions.methods_of(op):
        lines.append(f"  {'method' if f.method else 'function':<12}{f.declaration()}")
    lines.append(f"  python      {', '.join(places_of(op)) or 'none'}")
    lines.append(f"  backends    dispatch {dispatch}, default {default}")
    if row.kind == "pointwise":
        lines.append(f"  dtypes      {row.get('dtype', 'promote')}; classes {row.get('types', 'ifc')}")
        lines.append(f"  loop args   {', '.join(a.name for a in emit_cpu.loop_arguments(row)) or 'none'}; "
                     f"promoting {', '.join(a.name for a in emit_ops.promoting_scalars(row)) or 'none'}")
    forms = [o.schema.qualified for o in row.ops if o is not op]
    lines.append(f"  forms       {', '.join(forms) or 'none'}")
    lines.append(f"  gradient    {differentiability(op)}")
    if row.differentiable:
        d = Derivative(row, "inplace" if op.form == "inplace" else "functional")
        lines.append(f"  node        {row.node}")
        lines += [f"    d {', '.join(names)} = {text}" for names, text in row.formulas.items()]
        lines += [f"    saves {x.name}: {x.type}" for x in d.saved.values()] or ["    saves nothing"]
        lines.append(f"    forward {row.jvp or 'missing'}")
    if row.nondiff:
        lines.append(f"    never require grad: {', '.join(sorted(row.nondiff))}")
    lines += [f"  sample      {x}" for x in row.samples]
    return "\n".join(lines)


def called(text):
    """Names of the free functions that a formula calls."""
    text = re.sub(r'"[^"]*"', '""', text)
    return {m.group(1) for m in re.finditer(r"(?<![\w.:])(?<!->)(?:cresset::)?([A-Za-z_]\w*)\s*\(", text)}


def _formula_functions(table, root):
    names = {"needs", "Tensor", "Scalar", "sizeof", "int64_t", "double", "bool", "if"}
    for op in table.ops():
        names |= {op.schema.name, *(f.name for f in emit_functions.functions_of(op))}
    for path in Path(root, "src/autograd").glob("formulas*.h"):
        names |= set(re.findall(r"\b([a-z_]\w*)\s*\(", path.read_text()))
    return names


def check(table, root):
    """Every hand-written function that a row names must be defined somewhere; returns the lines of what is missing."""
    missing = []
    known = _formula_functions(table, root)
    for row in table.rows():
        jvp = row.jvp if isinstance(row.jvp, dict) else {"": row.jvp or ""}
        for key, texts in (("grad", row.formulas.values()), ("jvp", jvp.values())):
            for name in sorted({n for text in texts for n in called(text)} - known):
                missing.append(f"{row.family.path}:{row.key_line(key)}: {row.schema.key}: {key} calls '{name}', which is no operator "
                               f"and is not declared in src/autograd/formulas.h.{hint(name, known)}")
        for what, function, place in pieces(root, row.main):
            if place == "(not found)":
                missing.append(f"{row.where}: {row.schema.key}: {what} '{function}' is defined nowhere in "
                               f"{'src/backends/cpu' if what in ('kernel', 'cpu') else 'src/ops'}.")
    return missing
