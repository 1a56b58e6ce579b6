#!/usr/bin/env python3
"""Finds lists of operators outside of the operator table.

src/ops/*.toml is the only list of operators; what code must know of one is a key of its row. A list in code is found by its names: at least
SHORTEST operators among strings that stand beside each other in a C++ source, or in one tuple, list, set, dict or split text of a Python one.
Some lists are right where they are (names of Python's own functions, the subject of one pass): ALLOWED names their file with the reason.

Exit status 1 and one line for each list that is not allowed, and for each entry of ALLOWED that is not needed.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "tools/operator_lists.toml"
SHORTEST = 6
FOLDERS = ("src", "include", "python/cresset", "tools", "compat", "backends/opencl/generate")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
BETWEEN = re.compile(r"[\s,{}|&=:\w()\[\]]{0,80}\Z")


def operators(root):
    """Names of all rows and their derived forms, without overloads."""
    names = set()
    for path in (root / "src/ops").glob("*.toml"):
        for row in tomllib.loads(path.read_text())["op"]:
            name = re.match(r"(?:\w+::)?(\w+)", row["schema"])[1]
            aliases = row.get("aliases", [])
            spelled = [name.replace("{name}", n) for n in row.get("names", [""])] + ([aliases] if isinstance(aliases, str) else aliases)
            names.update(spelled)
            names.update(n + "_" for n in spelled if row.get("inplace"))
    return names


def named(text, names):
    """The operator of "aten::add.Tensor", or None."""
    name = text.split("(")[0].strip().removeprefix("aten::").removeprefix("aten.").split(".")[0]
    return name if name in names else None


def strings_of_cpp(text):
    """(line, strings) of each run of string literals with nothing but punctuation and a few words in between."""
    text = re.sub(r"//[^\n]*", "", text)
    run, end = [], None
    for found in STRING.finditer(text):
        if end is not None and not BETWEEN.match(text[end : found.start()]):
            yield run
            run = []
        run.append((text.count("\n", 0, found.start()) + 1, found[1]))
        end = found.end()
    if run:
        yield run


def strings_of_python(text):
    tree = ast.parse(text)
    exports = {id(node.value) for node in tree.body if isinstance(node, (ast.Assign, ast.AugAssign)) and "__all__" in ast.unparse(node).split("=")[0]}
    for node in ast.walk(tree):
        if id(node) in exports:
            continue
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split" and isinstance(node.func.value, ast.Constant):
            if isinstance(node.func.value.value, str):
                yield [(node.lineno, word) for word in node.func.value.value.split()]
            continue
        else:
            continue
        yield [(node.lineno, part.value) for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def lists(path, text, names):
    """(line, operators) of each list of operators in a source."""
    for run in (strings_of_python if path.suffix == ".py" else strings_of_cpp)(text):
        found = {name for _, string in run if (name := named(string, names))}
        if len(found) >= SHORTEST and 2 * len(found) >= len({string for _, string in run}):
            yield run[0][0], sorted(found)


def check(root=ROOT, allowed=None):
    allowed = tomllib.loads(ALLOWED.read_text()) if allowed is None else allowed
    names, problems, needed = operators(root), [], set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".py") or not path.is_file():
                continue
            relative = path.relative_to(root).as_posix()
            for line, found in lists(path, path.read_text(), names):
                if relative in allowed:
                    needed.add(relative)
                    continue
                problems.append(f"{relative}:{line}: a list of operators ({', '.join(found[:6])}, …): make what it says a key of their rows, "
                                f"or give the reason in {ALLOWED.relative_to(ROOT)}.")
    problems += [f"{ALLOWED.relative_to(ROOT)}: {name} has no list of operators any more." for name in sorted(set(allowed) - needed)]
    return problems


if __name__ == "__main__":
    found = check()
    print("\n".join(found) or "No operator stands in a second list.")
    sys.exit(bool(found))
