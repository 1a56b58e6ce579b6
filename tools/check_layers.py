"""Refuses an include that goes up the layers.

    base < core < dispatch < ops < batching < autograd < nn        ir on ops, engine on ir, distributed on ops
    backends/* on ops, included by nobody               cli, python and the umbrella headers on top
    inside ir: graph < text < operators < analysis < run < rewrite < frontend < module < lowering < passes < archive
    inside ops: shared < families, shared < device, shared < tensor

Only python/graph/ of python may include headers of ir, and only python/distributed/ those of distributed: each is a module of its own,
loaded at first use, and its library with it.

Looks at src/, include/cresset/ and, when given, a folder of generated sources. Public headers may include only public
headers and the standard library. Prints one line a violation; the exit status is 1 when there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHAIN = ["base", "core", "dispatch", "ops", "batching", "autograd", "nn"]
ALLOWED = {layer: set(CHAIN[: i + 1]) for i, layer in enumerate(CHAIN)}
ALLOWED["ir"] = ALLOWED["ops"] | {"ir"}
ALLOWED["engine"] = ALLOWED["ir"] | {"engine"}
ALLOWED["distributed"] = ALLOWED["ops"] | {"distributed"}
ALLOWED["backends"] = ALLOWED["ops"] | {"backends"}
TOP = ALLOWED["nn"] | ALLOWED["engine"] | {"umbrella"}
ALLOWED["umbrella"] = TOP
ALLOWED["cli"] = TOP | {"cli"}
ALLOWED["python"] = ALLOWED["autograd"] | {"python"}
ALLOWED["python/graph"] = TOP | {"python", "python/graph"}
ALLOWED["python/distributed"] = ALLOWED["autograd"] | {"python", "distributed", "python/distributed"}

# ir is a house of its own: folders of src/ir from the ground up (native is machine code for run), and the public headers of each.
# A header may stand lower than the source that defines what it declares: a graph's node names an operator, which a table above gives.
IR_FLOORS = {
    "graph": {"class_type.h", "function.h", "graph_iterator.h", "ir.h", "ir_views.h", "jit_log.h", "logging.h", "lowering_options.h", "node_hashing.h", "object_pool.h",
              "operator.h", "register_operators.h", "source_range.h", "symbol.h", "symbol_names.h", "symbols.h", "tracer.h", "use_list.h"},
    "text": {"file_check.h", "ir_parser.h"},
    "operators": {"script_effects.h", "vararg_functions.h"},
    "analysis": {"alias_analysis.h", "canonicalize.h"},
    "run": {"custom_passes.h", "graph_executor.h", "interpreter.h", "module.h", "native_code.h"},
    "rewrite": {"autodiff.h", "graph_diff.h", "input_spec.h", "pass.h", "subgraph_rewriter.h", "subgraph_utils.h"},
    "frontend": {"error_report.h"},
    "module": {"backend.h"},
    "lowering": {"lowering.h"},
    "passes": {"pass_functions.h", "frozen_functions.h"},
    "archive": {"archive.h", "export.h", "import_source.h", "record_file.h"},
}
IR_LEVEL = {floor: level for level, floor in enumerate(IR_FLOORS)} | {"native": list(IR_FLOORS).index("run")}

# Rooms of ops, and which rooms' private headers each includes; "" are the families.
OPS_ROOMS = {"shared": {"shared"}, "": {"shared", ""}, "device": {"shared", "device"}, "tensor": {"shared", "tensor"}}

# Headers that a lower layer may name although they lie higher: generated, declarations only.
EXEMPT = {
    ("core", "cresset/ops/tensor_methods.inc"),
}
# Generated sources lie in gen/src/<group>; the group is the layer but for these.
GROUP_LAYER = {"cpu": "backends", "cpu-isa": "backends", "cpu-isa-choosing": "backends"}
COMPAT = {"torch", "ATen", "c10"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of_folder(parts: tuple[str, ...]) -> str:
    """The layer of a path below src/, include/cresset/ or gen/src."""
    if len(parts) == 1:
        return "umbrella"
    if parts[:2] in (("python", "graph"), ("python", "distributed")):
        return "/".join(parts[:2])
    return GROUP_LAYER.get(parts[0], parts[0])


def layer_of_include(kind: str, name: str, file: Path) -> str | None:
    """The layer an include belongs to, or None when it is no header of this project."""
    parts = Path(name).parts
    if parts[0] == "cresset":
        return "base" if parts[1:] == ("version.h",) else layer_of_folder(parts[1:])
    if kind == "<":
        return None
    if len(parts) == 1:  # beside the including file
        return "same" if (file.parent / name).exists() else None
    return layer_of_folder(parts)


def ir_floor(path: Path, public: bool) -> str | None:
    """The floor of a file of ir, by its folder in src/ir or its name in include/cresset/ir."""
    if public:
        return next((floor for floor, headers in IR_FLOORS.items() if path.name in headers), None)
    folder = path.parent.name
    return folder if folder in IR_LEVEL else None


def check_ir_floors(text: str, public: bool, file: Path) -> list[tuple[int, str]]:
    """Includes of a file of ir that go up its floors, as (line, message)."""
    floor = ir_floor(file, public)
    if floor is None:
        return [(1, "stands on no floor of ir (IR_FLOORS in tools/check_layers.py)")]
    problems = []
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        target = Path(name)
        if target.parts[:2] == ("cresset", "ir"):
            level = ir_floor(target, True)
        elif target.parts[0] == "ir" and match.group(1) == '"':
            level = ir_floor(target, False)
        else:
            continue
        line = text.count("\n", 0, match.start(2)) + 1
        if level is None:
            problems.append((line, f"includes {name}, which stands on no floor of ir"))
        elif IR_LEVEL[level] > IR_LEVEL[floor]:
            problems.append((line, f"ir's {floor} includes {name} of {level}, which is above it"))
    return problems


def check_ops_rooms(text: str, file: Path) -> list[tuple[int, str]]:
    """Private headers of ops that a file of another of its rooms includes, as (line, message)."""
    room = "" if file.parent.name == "ops" else file.parent.name
    if room not in OPS_ROOMS:
        return [(1, "stands in no room of ops (OPS_ROOMS in tools/check_layers.py)")]
    problems = []
    for match in INCLUDE.finditer(text):
        parts = Path(match.group(2)).parts
        if parts[0] != "ops" or match.group(1) == "<":
            continue
        target = parts[1] if len(parts) > 2 else ""
        if target not in OPS_ROOMS[room]:
            names = ["a family" if r == "" else r for r in (room, target)]
            problems.append((text.count("\n", 0, match.start(2)) + 1, f"ops: {names[0]} includes {match.group(2)} of {names[1]}, which is above or beside it"))
    return problems


def check_text(text: str, layer: str, public: bool, file: Path) -> list[tuple[int, str]]:
    """Violations of one file as (line, message)."""
    problems = []
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        line = text.count("\n", 0, match.start(2)) + 1
        first = name.split("/")[0]
        if first in COMPAT:
            problems.append((line, f"includes <{name}>; only compat/ may name PyTorch's headers"))
            continue
        target = layer_of_include(kind, name, file)
        if target == "same" or (layer, name) in EXEMPT:
            continue
        if target is None:
            if public and ("/" in name or name.endswith((".h", ".hpp"))) and not system_header(name):
                problems.append((line, f"a public header includes {name}; public headers need nothing but the standard library"))
            continue
        if public and first != "cresset":
            problems.append((line, f"a public header includes the private header {name}"))
        if target not in ALLOWED:
            problems.append((line, f"includes {name}, whose folder '{target}' is no layer"))
        elif target not in ALLOWED[layer]:
            problems.append((line, f"{layer} includes {name} of {target}, which is above or beside it"))
    if layer == "ir":
        problems += check_ir_floors(text, public, file)
    if layer == "ops" and not public:
        problems += check_ops_rooms(text, file)
    return sorted(problems)


def system_header(name: str) -> bool:
    return name.startswith(("sys/", "linux/")) or name in {
        "pthread.h", "unistd.h", "immintrin.h", "cxxabi.h", "dlfcn.h", "execinfo.h", "stdint.h", "stddef.h"
    }


def files_below(root: Path):
    for file in sorted(root.rglob("*")):
        if file.suffix in {".h", ".cpp", ".inc", ".hpp"}:
            yield file


def check_root(root: Path, generated: Path | None = None) -> list[str]:
    """All violations below a repository root as `file:line: message`."""
    places = [(root / "src", False), (root / "include/cresset", True)]
    if generated:
        places += [(generated / "src", False), (generated / "include/cresset", True)]
    problems = []
    for base, public in places:
        for file in files_below(base):
            layer = layer_of_folder(file.relative_to(base).parts)
            if layer == "umbrella" and file.name == "version.h":
                layer = "base"
            if layer not in ALLOWED:
                problems.append(f"{file}: the folder '{layer}' is no layer")
                continue
            for line, message in check_text(file.read_text(errors="replace"), layer, public, file):
                shown = file.relative_to(root) if file.is_relative_to(root) else file
                problems.append(f"{shown}:{line}: {message}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gen", type=Path, help="folder of generated files (build/dev/gen)")
    options = parser.parse_args()
    problems = check_root(ROOT, options.gen)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
