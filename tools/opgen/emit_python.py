"""Facts for Python and tools: binding table, stubs, operators.json, RegistrationDeclarations.h, the operator reference."""

import json
from dataclasses import dataclass, field

import cpp
import emit_stubs
from output import source

PLACES = {"function": "kFunction", "method": "kMethod", "nn": "kNn", "linalg": "kLinalg", "special": "kSpecial", "fft": "kFft"}


@dataclass
class Overload:
    op: object
    places: tuple
    out: object = None         # the operator that an `out=` keyword calls


@dataclass
class Name:
    name: str
    overloads: list = field(default_factory=list)

    @property
    def places(self):
        return tuple(p for p in PLACES if any(p in o.places for o in self.overloads))

    @property
    def doc(self):
        return next((o.op.row.doc for o in self.overloads if o.op.row.doc), "")


def places_of(op):
    """Where an operator shows in Python; a derived in-place form only as function, method and in `_C._nn`, a second name "special_…" never as method."""
    if op.alias_of and op.schema.name.startswith("special_"):
        return tuple(p for p in op.row.python if p in PLACES and p != "method" and op.form != "inplace")
    if op.form == "inplace" and op.derived:
        return tuple(p for p in op.row.python if p in ("function", "method", "nn"))
    return tuple(p for p in op.row.python if p in PLACES)


def public_name(op):
    """`linalg_norm` shows as `_C._linalg.linalg_norm`: names stay the operator's."""
    return op.schema.name


def collect(table):
    """Python names in order of first appearance; overloads in table order."""
    names = {}
    for row in table.rows():
        for op in row.ops:
            places = places_of(op)
            if op.form == "out" or not places:
                continue
            out = None if row.kind == "foreach" else next((o for o in row.ops if o.form == "out" and o.derived and o.schema.name == op.schema.name), None)
            names.setdefault(public_name(op), Name(public_name(op))).overloads.append(Overload(op, places, out))
    for op in table.ops():
        if op.form == "out" and not op.derived and op.row.python:
            names.setdefault(op.schema.name, Name(op.schema.name)).overloads.append(Overload(op, op.row.python, op))
    # In-place functions exist where every overload has one tensor argument: relu_, but not add_; on lists; and where a row says so.
    for name in names.values():
        inplace = [o for o in name.overloads if o.op.form == "inplace" and o.op.derived]
        if any(o.op.kind != "foreach" and len([a for a in o.op.schema.tensor_args if not a.type.opt]) > 1 for o in inplace):
            for o in inplace:
                o.places = tuple(p for p in o.places if p != "function" or "inplace_function" in o.op.row.python)
    return [n for n in names.values() if n.places]


def emit(table, out):
    names = collect(table)
    out.add("python", "src/python/python_table.cpp", _table_source(table, names))
    emit_stubs.emit(names, out)
    out.add("data", "data/operators.json", _json(table))
    out.add("data", "data/RegistrationDeclarations.h", "".join(declaration(op) + "\n" for op in table.ops()))
    out.add("data", "data/operators.md", _reference(table))


# --- binding table ------------------------------------------------------------------------------------------------------


def _where(places):
    return " | ".join(PLACES[p] for p in places) or "0"


def _table_source(table, names):
    """python_table.cpp; the structures are those of src/python/python_table.h."""
    parts, entries = ["namespace {\n\n"], []
    for i, name in enumerate(names):
        rows = []
        for o in name.overloads:
            for op in (o.op, *([o.out] if o.out and o.out is not o.op else [])):
                numbers = op.row.get("number_is_tensor", False)
                legacy = ";".join(order.replace(",", "") for order in op.row.get("legacy", [])) if op.form != "out" and not op.alias_of else ""
                rows.append(f"{{\"{op.schema.full_name}\", \"{op.schema.overload}\", {_where(o.places)}, {'true' if numbers else 'false'}, \"{legacy}\"}}")
        parts.append(f"const TableOverload overloads_{i}[] = {{{', '.join(rows)}}};\n")
        entries.append(f"    {{\"{name.name}\", {cpp.quote(name.doc)}, overloads_{i}, {len(rows)}}},\n")
    parts.append("\n}  // namespace\n\n")
    parts.append(f"const TableEntry operator_table[] = {{\n{''.join(entries)}}};\nconst std::size_t operator_table_size = {len(names)};\n")
    factories = [n.name for n in names if n.overloads[0].op.schema.is_factory and not n.overloads[0].op.schema.tensor_args]
    parts.append(f"const char* const factory_names[] = {{{', '.join(map(cpp.quote, factories))}}};\nconst std::size_t factory_names_size = {len(factories)};\n")
    first = [(cpp.quote(row.schema.qualified), cpp.quote(row.schema.overload)) for row in table.rows() if row.get("packet")]
    pairs = ", ".join(f"{{{name}, {overload}}}" for name, overload in first)
    parts.append(f"const std::pair<const char*, const char*> first_overloads[] = {{{pairs}}};\nconst std::size_t first_overloads_size = {len(first)};\n")
    return source(None, ['"python/python_table.h"'], "".join(parts), "cresset::python")


# --- facts ----------------------------------------------------------------------------------------------------------------


def dispatch_default(op):
    """(dispatch, default) of RegistrationDeclarations.h: is there a backend kernel, and does a device get one for free?"""
    row = op.row
    if op.implicit:
        return False, False
    if row.kind in ("explicit", "foreach"):
        return True, True
    if row.kind == "cpu":
        return True, op is not row.main
    return True, op.form != "out" and row.form("out") is not None


def differentiability(op):
    row = op.row
    if op.implicit or row.kind == "foreach" or (row.get("through_parts") and not row.differentiable):
        return "composite"
    if row.differentiable:
        return "formula"
    tensors = any(r.type.is_tensor for r in op.schema.returns)
    return "none" if row.all_nondiff or not tensors or not op.schema.tensor_args else "not_implemented"


def facts(op):
    row, s = op.row, op.schema
    dispatch, default = dispatch_default(op)
    aliasing = [{"output": i, "input": next((a.name for a in s.args if a.type.alias == r.type.alias), None), "write": r.type.write}
                for i, r in enumerate(s.returns) if r.type.alias]
    out = {
        "name": s.full_name, "overload": s.overload, "schema": s.text(True), "family": op.family.name,
        "file": f"src/ops/{op.family.path.name}", "line": row.line, "form": op.form, "derived": op.derived,
        "row": row.schema.qualified, "alias_of": op.alias_of.schema.qualified if op.alias_of else None,
        "kind": op.kind, "python": list(places_of(op)), "tags": list(row.tags),
        "doc": row.doc, "samples": row.samples if not op.derived else [],
        "arguments": [{"name": a.name, "type": str(a.type.without_alias()), "default": a.default, "kwarg_only": a.kwarg_only,
                       "alias": a.type.alias, "write": a.type.write} for a in s.args],
        "returns": [{"name": r.name, "type": str(r.type.without_alias()), "alias": r.type.alias, "write": r.type.write} for r in s.returns],
        "mutates": [a.name for a in s.written], "view": s.is_view, "aliasing": aliasing,
        "pure": not s.written and not s.is_view and "nondeterministic_seeded" not in row.tags,
        "differentiable": differentiability(op), "nondiff": sorted(row.nondiff),
        "grad": {", ".join(k): v for k, v in row.formulas.items()}, "jvp": row.jvp or ("through its parts" if row.get("through_parts") else None),
        "node": row.node if row.differentiable else None,
        "dispatch": dispatch, "default": default,
        "inplace": row.form("inplace").schema.qualified if row.form("inplace") and not op.derived and op.form != "inplace" else None,
        "out": row.form("out").schema.qualified if row.form("out") and not op.derived and op.form != "out" else None,
    }
    if row.kind == "pointwise":
        out["pointwise"] = {"expression": row.get("pointwise"), "dtype": row.get("dtype", "promote"), "types": row.get("types", "ifc"),
                            "promotes": row.get("promotes", [])}
    return out


def _json(table):
    lines = ",\n".join(json.dumps(facts(op)) for op in table.ops())
    return f"[\n{lines}\n]\n"


def declaration(op):
    """One line of RegistrationDeclarations.h: the C++ signature of a kernel, whose arguments are the schema's in its order, and the facts as JSON."""
    s = op.schema
    spell = lambda text: text.replace("&", " &").replace("std::", "::std::")
    params = ", ".join(f"{spell(a.type.cpp_arg())} {a.name}" for a in s.args)
    name = s.name + ("_out" if s.is_out else "")
    dispatch, default = dispatch_default(op)
    data = {"schema": s.text(True), "dispatch": str(dispatch), "default": str(default)}
    return f"{spell(s.cpp_return())} {name}({params}); // {json.dumps(data)}"


def _reference(table):
    lines = ["# Operators", "", "Generated by tools/opgen from `src/ops/*.toml`.", ""]
    for family in table.families:
        lines += [f"## {family.name}", "", family.doc, "", "| operator | forms | gradient | what it does |", "|---|---|---|---|"]
        for row in family.rows:
            forms = [f"`{o.schema.key}`" for o in row.ops[1:]]
            gradient = {"composite": "through its parts", "formula": "yes" + (", forward" if row.jvp else ""),
                        "none": "none", "not_implemented": "missing"}[differentiability(row.main)]
            schema = row.schema.text().replace("|", "\\|")
            lines.append(f"| `{schema}` | {', '.join(forms)} | {gradient} | {row.doc} |")
        lines.append("")
    return "\n".join(lines)
