"""Writes what of the compatibility headers follows from other lists: make_headers.py --out DIR --operators FILE --functions FILE.

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
    names |= {name.removesuffix("_") for name in names}  # resize_ is declared in resize.h
    headers = {}
    for name in names:
        headers[f"ATen/ops/{name}_native.h"] = "native"
        headers[f"ATen/ops/{name}_cpu_dispatch.h"] = "cpu_dispatch"
        headers[f"ATen/ops/{name}_meta_dispatch.h"] = "meta_dispatch"
    return headers


def class_headers(operators):
    """Header name to text: ATen/ops/NAME_ops.h with the classes at::_ops of NAME and NAME_, and ATen/ops/NAME.h, which has them too."""
    families, lines = {}, {}
    for op in operators:
        namespace, _, name = op["name"].partition("::")
        lines.setdefault(name.removesuffix("_"), [])
        families.setdefault(name.removesuffix("_"), set())
        if namespace == "aten":
            ident = name + (f"_{op['overload']}" if op["overload"] else "")
            families[name.removesuffix("_")].add(op["family"])
            lines[name.removesuffix("_")].append(f'CRESSET_COMPAT_OPERATOR_({ident}, "{op["name"]}", "{op["overload"]}", {json.dumps(op["schema"])})')
    texts = {}
    for name, classes in lines.items():
        includes = [f"#include <cresset/ops/redispatch_{family}.h>" for family in sorted(families[name])]
        includes = ["#pragma once", "#include <cresset_compat/operator_class.h>", *includes]
        texts[f"ATen/ops/{name}_ops.h"] = "\n".join([*includes, "namespace at::_ops {", *classes, "}", ""])
        texts[f"ATen/ops/{name}.h"] = f"#pragma once\n#include <cresset_compat/aten.h>\n#include <ATen/ops/{name}_ops.h>\n"
    for name in {op["name"].split("::")[-1] for op in operators} - set(lines):
        base = name.removesuffix("_")
        texts[f"ATen/ops/{name}_ops.h"] = f"#pragma once\n#include <ATen/ops/{base}_ops.h>\n"
        texts[f"ATen/ops/{name}.h"] = f"#pragma once\n#include <ATen/ops/{base}.h>\n"
    every = "".join(f"#include <ATen/ops/{name}_ops.h>\n" for name in sorted(lines))
    texts["cresset_compat/operators.h"] = f"// The classes of all operators.\n#pragma once\n#include <cresset_compat/aten.h>\n{every}"
    return texts


def function_names(operators, functions):
    """C++ functions of the namespace at. Operators that PyTorch shows as methods alone are not among them: sources define
    functions of such names themselves. Their forms with `out` are functions."""
    only_methods = {}
    for op in operators:
        name = op["name"].split("::")[-1]
        method = op["python"] == ["method"] or (not op["python"] and name.endswith("_"))
        only_methods[name] = only_methods.get(name, True) and method
    return sorted(name for name in {f["name"] for f in functions} if not only_methods.get(name, False))


def family_namespace(family, functions):
    """torch::fft::rfft and the like: what at has as fft_rfft. The signatures are written out, so that braces work as arguments."""
    lines = [f"namespace torch::{family} {{"]
    for f in functions:
        if not f["name"].startswith(f"{family}_") or f["name"].endswith("_outf"):
            continue
        parameters = ", ".join(f"{p['type']} {p['name']}" + (f" = {p['default']}" if p["default"] is not None else "") for p in f["parameters"])
        arguments = ", ".join(p["name"] for p in f["parameters"])
        lines.append(f"inline {f['result']} {f['name'].removeprefix(family + '_')}({parameters}) {{ return cresset::{f['name']}({arguments}); }}")
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
    functions = json.loads(options.functions.read_text())
    headers = {**operator_headers(operators), **read_list(Path(__file__).with_name("headers.txt"))}
    # Where the front end's headers lie in PyTorch's folder: some sources say that place.
    headers |= {f"torch/csrc/api/include/{name}": target for name, target in headers.items() if re.match(r"torch/(?!csrc/)", name)}
    for name, target in headers.items():
        write(options.out / name, f"#pragma once\n#include <cresset_compat/{target}.h>\n")
    for name, text in class_headers(operators).items():
        if name not in headers:
            write(options.out / name, text)
    lines = [f"using cresset::{name};" for name in function_names(operators, functions)]
    text = ["// The functions of the namespace at.", "#pragma once", "#include <cresset/ops/functions.h>", "namespace at {", *lines, "}"]
    write(options.out / "cresset_compat/functions.h", "\n".join(text) + "\n")
    text = ["// at::cpu: functions whose tensors are treated as the CPU's, whatever their device.", "#pragma once", "#include <cresset_compat/cpu_functions.h>"]
    text += ["namespace at::cpu {", *(f"CRESSET_COMPAT_ON_CPU_({name})" for name in function_names(operators, functions)), "}"]
    write(options.out / "cresset_compat/cpu_dispatch.h", "\n".join(text) + "\n")
    text = ["// at::meta: the same with tensors that have sizes and types alone.", "#pragma once", "#include <cresset_compat/native.h>"]
    text += ["namespace at::meta {", *(f"CRESSET_COMPAT_ON_META_({name})" for name in function_names(operators, functions)), "}"]
    write(options.out / "cresset_compat/meta_dispatch.h", "\n".join(text) + "\n")
    text = ["// Namespaces of torch with functions of one family.", "#pragma once", "#include <cresset_compat/aten.h>"]
    for family in ("fft", "linalg", "special"):
        text += family_namespace(family, functions)
    write(options.out / "cresset_compat/families.h", "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
