"""Translates the pointwise rows of the operator table to OpenCL C: pointwise.py OPERATORS.json SCALAR_MATH.cl OUT.h [NOT_TRANSLATED.txt]

operators.json comes with the installed package. An expression of the table is C++ over a type T; the translation renames the functions it
calls to those of scalar_math.cl and writes casts as C does. An expression with a function that scalar_math.cl does not have stays
with the CPU fallback.
"""

import json
import re
import sys
from pathlib import Path

RULES = {"promote": "Promote", "float": "Float", "compare": "Compare", "to_bool": "ToBool", "abs": "Abs", "first": "First",
         "bool_first": "BoolFirst"}
CLASSES = {"b": 1, "i": 2, "f": 4, "c": 8}  # types that are only stored (the other letters) stay on the host
# How a kernel sees an argument; see ArgumentKind in src/pointwise.h.
KINDS = {"Tensor": "Tensor", "float": "Real", "float?": "OptionalReal", "int": "Int", "bool": "Flag"}
C_WORDS = {"if", "for", "while", "return", "sizeof"}


class NotTranslated(Exception):
    pass


def read_functions(text):
    """name -> (source, names it uses), in the order of the file, which is one that compiles."""
    blocks = re.split(r"^//// (\w+)\n", text, flags=re.M)[1:]
    names = set(blocks[0::2])
    return {name: (source, [n for n in re.findall(r"\bcr_(\w+)", source) if n in names and n != name])
            for name, source in zip(blocks[0::2], blocks[1::2])}


def closure(names, functions):
    wanted, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name not in wanted:
            wanted.add(name)
            todo += functions[name][1]
    return [name for name in functions if name in wanted]


def kind_of(argument, promoting):
    kind = argument["type"]
    if kind in ("Scalar", "Scalar?"):
        optional = "Optional" if kind.endswith("?") else ""
        return optional + ("Promoting" if argument["name"] in promoting else "Number")
    if kind == "str":
        return "Word"
    if kind not in KINDS:
        raise NotTranslated(f"argument {argument['name']} of type {kind}")
    return KINDS[kind]


def translate(row, functions):
    """(expression in OpenCL C, arguments as (name, kind, word), functions it needs)"""
    text = row["pointwise"]["expression"].replace("special_math::", "")
    arguments = []
    for argument in row["arguments"]:
        name, kind, word = argument["name"], kind_of(argument, row["pointwise"].get("promotes", [])), ""
        if kind == "Word":
            compared = re.search(rf'\b{name} == "(\w+)"', text)
            if not compared:
                raise NotTranslated(f"argument {name} is a word")
            word = compared[1]
            text = text.replace(compared[0], f"(a_{name})")
        arguments.append((name, kind, word))
    used = []

    def call(match):
        name = match[1]
        if name == "T":
            return "(T)("
        if name not in functions:
            raise NotTranslated(f"function {name}")
        used.append(name)
        return f"cr_{name}("

    text = re.sub(r"static_cast<T>\(", "T(", text)
    text = re.sub(r"\b([A-Za-z_]\w*)\(", call, text)
    for name, kind, _ in arguments:
        replacement = f"a_{name}, has_{name}" if kind.startswith("Optional") else f"a_{name}"
        text = re.sub(rf"(?<![\w.]){name}\b(?!\()", replacement, text)
    if "<T>" in text or "::" in text:
        raise NotTranslated("C++ syntax")
    return text, arguments, closure(used, functions)


def quote(text):
    return json.dumps(text)


def main(operators, scalar_math, out, report=None):
    functions = read_functions(Path(scalar_math).read_text())
    rows, missing, tables = [], [], []
    for row in json.loads(Path(operators).read_text()):
        if row["kind"] != "pointwise" or row["form"] != "functional" or row["alias_of"]:
            continue
        name = row["name"] + ("." + row["overload"] if row["overload"] else "")
        try:
            text, arguments, needed = translate(row, functions)
        except NotTranslated as why:
            missing.append(f"{name}: {why}\n")
            continue
        rule, letters = row["pointwise"]["dtype"], row["pointwise"]["types"]
        listed = ", ".join(f"{{{quote(n)}, ArgumentKind::{k}, {quote(w)}}}" for n, k, w in arguments)
        table = f"kArguments{len(rows)}"
        tables.append(f"inline constexpr Argument {table}[] = {{{listed}}};\n")
        source = "".join(f"kFunction_{n} " for n in needed) or '""'
        rows.append(f"    {{{quote(name)}, {quote(row['name'].split('::')[1])}, {quote(row['out'] or '')}, {quote(row['inplace'] or '')},\n"
                    f"     PointwiseRule::{RULES[rule]}, {sum(CLASSES.get(c, 0) for c in letters)}, {quote(text)},\n     {source}, {table}}},\n")
    macros = "".join(f"#define kFunction_{n} {quote(s[0])}\n" for n, s in functions.items())
    Path(out).write_text("// Written by generate/pointwise.py from the operator table.\n#pragma once\n\n#include \"pointwise.h\"\n\n"
                         f"{macros}\nnamespace cresset_opencl {{\n\n{''.join(tables)}\n"
                         f"inline constexpr PointwiseRow kPointwiseRows[] = {{\n{''.join(rows)}}};\n\n}}  // namespace cresset_opencl\n")
    if report:
        Path(report).write_text("".join(missing))


if __name__ == "__main__":
    main(*sys.argv[1:])
