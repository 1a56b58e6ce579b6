"""Refuses functions of more than LONGEST lines in src/, include/, backends/, python/ and tools/.

Of a Python function the docstring does not count, and of a class inside of it nothing else does. A function of C++ is found by its form,
which clang-format gives it: it begins with a line that ends in "{" behind its parameters and ends with "}" at the same indentation.
LONG_FUNCTIONS are those that are one table or one switch, with the reason; one that is short again must be taken off the list.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import check_tree

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 70
FOLDERS = ("src", "include", "backends", "python", "tools")

LONG_FUNCTIONS: dict[tuple[str, str], str] = {
    ("include/cresset/backend.h", "check_methods"): "a table of checks, one line a method of backends",
    ("src/ir/archive/unpickler.cpp", "run"): "one switch, a case for each instruction of a pickle",
    ("src/ir/run/compiler.cpp", "node"): "one switch, a case for each kind of node",
    ("src/ir/run/execute_call.cpp", "execute_call"): "one switch, a case for each instruction that leaves the fast path",
    ("src/ir/run/fast_operators.h", "fast_operators"): "a table, one line an operator",
    ("src/ir/run/interpreter.cpp", "run"): "one switch, a case for each instruction; its registers stay in the machine's",
}

# The last line of a function's head, "… name(parameters) qualifiers {" or the end of a list of initialisers: no control flow.
HEAD = re.compile(r" *(?!//|.*\b(?:if|for|while|switch|catch|else|return|namespace|case)\b).*[)}](?: (?:const|noexcept|override|final|requires.*|-> .*))* \{")
NAME = re.compile(r"(~?\w+)\(")


def python_functions(text: str):
    """(name, first line, length) of all functions of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            documented = ast.get_docstring(node, clean=False) is not None
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def cpp_functions(text: str):
    """(name, first line, length) of functions that stand in a namespace or a class."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        head, at = at, at + 1
        if not HEAD.fullmatch(lines[head]):
            continue
        body = next((line for line in lines[head + 1 :] if line.strip() and not line.startswith("#")), "")
        indent = indent_of(body) - (0 if body.strip().startswith("}") else 2)
        begin = head  # a head of several lines is indented further behind its first
        while begin and indent_of(lines[begin]) > indent:
            begin -= 1
        end = next((i for i in range(head + 1, len(lines)) if indent_of(lines[i]) == indent and lines[i].lstrip().startswith("}")), None)
        named = NAME.search("\n".join(lines[begin : head + 1]))
        if end is None or lines[end].strip() != "}" or named is None:  # of a lambda or a class
            continue
        yield named[1], begin + 1, end - begin + 1
        at = end + 1


def check(root: Path, files: list[Path], known: dict[tuple[str, str], str]) -> list[str]:
    """One line for each function that is too long, and for each known one that is not."""
    problems, needed = [], set()
    for file in files:
        if file.parts[0] not in FOLDERS:
            continue
        text = (root / file).read_text(errors="replace") if file.suffix in {".py", ".cpp", ".h", ""} else ""
        if file.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
            functions = python_functions(text)
        else:
            functions = cpp_functions(text) if file.suffix in {".cpp", ".h"} else ()
        for name, line, length in functions:
            if length <= LONGEST:
                continue
            if (str(file), name) in known:
                needed.add((str(file), name))
            else:
                problems.append(f"{file}:{line}: {name} has {length} lines; functions have at most {LONGEST}, but for tables and switches (LONG_FUNCTIONS in tools/check_functions.py)")
    problems += [f"LONG_FUNCTIONS: {name} of {file} is not that long any more" for file, name in sorted(set(known) - needed)]
    return problems


def main() -> int:
    problems = check(ROOT, check_tree.files_of(ROOT), LONG_FUNCTIONS)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
