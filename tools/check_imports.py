"""Refuses circles among the modules of python/cresset: modules that import one another, at their top or inside of functions.

A module that needs what stands above it imports it inside of a function; that hides a circle from Python, not from readers. KNOWN_CIRCLES are
those that are left, each with its reason: no module may join one, and one that is gone must be taken off the list. `import cresset`
itself, of which everything is a part, does not count.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

KNOWN_CIRCLES: dict[frozenset[str], str] = {
    frozenset({"cresset._jit_internal", *(f"cresset.jit{name}" for name in (
        "", "._classes", "._concrete", "._containers", "._dataclasses", "._definitions", "._hooks", "._names", "._overloads", "._recursive",
        "._script", "._state", "._types", ".serialization"))}):
        "compiling a function compiles the classes, functions and modules that it names",
    frozenset({"cresset.fx.graph_module", "cresset.fx._lazy_graph_module", "cresset.fx._symbolic_trace"}):
        "PyTorch's modules of these names: unpickling a GraphModule traces it again",
    frozenset({"cresset.fx.node", "cresset.fx.operator_schemas"}): "PyTorch's modules of these names: Node.normalized_arguments",
    frozenset({f"cresset.fx.passes.utils.{name}" for name in ("common", "fuser_utils", "matcher_utils")}):
        "PyTorch's modules of these names",
    frozenset({"cresset.sparse", *(f"cresset.sparse.{name}" for name in ("_create", "_gradients", "_rules", "_tensor", "_text"))}):
        "methods and operators of sparse tensors make others of their class",
    frozenset({"cresset.utils._pytree", "cresset.utils._treespec_text"}): "the text of a TreeSpec names the kinds of nodes, and TreeSpec's module has dumps and loads",
}  # fmt: skip


def modules_below(package: Path) -> dict[str, Path]:
    """Dotted name to file, the package's own first."""
    out = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return out


def imports_of(name: str, file: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports anywhere but under `if TYPE_CHECKING`."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    pending = [ast.parse(file.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending += node.orelse
            continue
        if isinstance(node, ast.ImportFrom):
            base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], *filter(None, [node.module])]) if node.level else node.module
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in modules else base)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        pending += ast.iter_child_nodes(node)
    return {target for target in found if target in modules and target != name}


def circles(graph: dict[str, set[str]]) -> list[frozenset[str]]:
    """Strongly connected components of more than one module (Tarjan 1972, with an explicit stack)."""
    order, low, on_stack, stack, out = {}, {}, set(), [], []
    for start in graph:
        if start in order:
            continue
        walk = [(start, iter(sorted(graph[start])))]
        order[start] = low[start] = len(order)
        stack.append(start)
        on_stack.add(start)
        while walk:
            name, rest = walk[-1]
            for target in rest:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    walk.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_stack:
                    low[name] = min(low[name], order[target])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[name])
                if low[name] == order[name]:
                    at = stack.index(name)
                    component = frozenset(stack[at:])
                    del stack[at:]
                    on_stack -= component
                    if len(component) > 1:
                        out.append(component)
    return out


def check_package(package: Path, known: dict[frozenset[str], str]) -> list[str]:
    """One line for each circle that is not known and each known one that is gone."""
    modules = modules_below(package)
    graph = {name: imports_of(name, file, modules) - {package.name} for name, file in modules.items()}
    found = circles(graph)
    problems = [f"modules import one another: {', '.join(sorted(circle))}" for circle in found if not any(circle <= k for k in known)]
    problems += [f"KNOWN_CIRCLES: {', '.join(sorted(k))} is no circle any more" for k in known if not any(circle <= k for circle in found)]
    return sorted(problems)


def main() -> int:
    problems = check_package(ROOT / "python/cresset", KNOWN_CIRCLES)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
