"""Writes what of the compatibility headers follows from other lists: make_headers.py --out DIR --operators FILE --functions DIR.

The forwarders with PyTorch's header names come from headers.txt and the list of operators, and the functions of the namespace
at (functions.h) from the generated headers of Cresset's. A file that is right already is left alone, so nothing is compiled
again for it.
"""

import argparse
import json
import re
from pathlib import Path


def read_list(path):
    """Header name to the header of cresset_compat/ that it forwards to."""
    target, names = None, {}
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("["):
            target = line[1:-1]
        elif line and not line.startswith("#"):
            names[line] = target
    return names


def operator_headers(operators):
    names = {op["name"].split("::")[-1] for op in operators}
    headers = {}
    for name in names:
        headers[f"ATen/ops/{name}.h"] = headers[f"ATen/ops/{name}_ops.h"] = "aten"
        headers[f"ATen/ops/{name}_native.h"] = "native"
    return headers


def function_names(operators, folder):
    """C++ functions of the namespace at. Operators that PyTorch shows as methods alone are not among them: sources define
    functions of such names themselves."""
    only_methods = {}
    for op in operators:
        name = op["name"].split("::")[-1]
        method = op["python"] == ["method"] or (not op["python"] and name.endswith("_"))
        only_methods[name] = only_methods.get(name, True) and method
    declared = set()
    for header in folder.glob("functions_*.h"):
        declared.update(re.findall(r"^CRESSET_API .*?(\w+)\(", header.read_text(), re.M))
    return sorted(name for name in declared if not only_methods.get(re.sub(r"_outf?$", "", name) if name not in only_methods else name, False))


def split_parameters(text):
    """The parameters of a declaration: commas within brackets do not separate."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def family_namespace(family, folder):
    """torch::fft::rfft and the like: what at has as fft_rfft. The signatures are written out, so that braces work as arguments."""
    lines = [f"namespace torch::{family} {{"]
    pattern = re.compile(rf"^CRESSET_API (.+?) {family}_(\w+)\((.*)\);$", re.M)
    for result, name, parameters in sorted(d for header in folder.glob("functions_*.h") for d in pattern.findall(header.read_text())):
        if name.endswith("_outf"):
            continue
        arguments = [re.sub(r" =.*", "", p).split()[-1] for p in split_parameters(parameters)]
        lines.append(f"inline {result} {name}({parameters}) {{ return cresset::{family}_{name}({', '.join(arguments)}); }}")
    return [*lines, f"}}  // namespace torch::{family}"]


def write(file, text):
    if not file.exists() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--operators", type=Path, required=True)
    parser.add_argument("--functions", type=Path, required=True)
    options = parser.parse_args()
    operators = json.loads(options.operators.read_text())
    headers = {**operator_headers(operators), **read_list(Path(__file__).with_name("headers.txt"))}
    for name, target in headers.items():
        write(options.out / name, f"#pragma once\n#include <cresset_compat/{target}.h>\n")
    lines = [f"using cresset::{name};" for name in function_names(operators, options.functions)]
    text = ["// The functions of the namespace at.", "#pragma once", "#include <cresset/ops/functions.h>", "namespace at {", *lines, "}"]
    write(options.out / "cresset_compat/functions.h", "\n".join(text) + "\n")
    text = ["// Namespaces of torch with functions of one family.", "#pragma once", "#include <cresset_compat/aten.h>"]
    for family in ("fft", "linalg", "special"):
        text += family_namespace(family, options.functions)
    write(options.out / "cresset_compat/families.h", "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
