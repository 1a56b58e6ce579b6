"""PyTorch's own examples as snippets: `tools/differential examples FOLDER [--docs DOCS]`.

Writes FOLDER/docstrings.py with a snippet for each docstring of the installed PyTorch that holds `>>>` lines, and FOLDER/pages.py with one for each
page of reStructuredText or Markdown below DOCS (PyTorch's docs/source) that holds Python; `tools/differential snippets FOLDER --rounding` then runs
them. A statement is a step: an error does not end the snippet, as many examples need what they do not define.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

# Modules about compilers, exporters and devices that Cresset does not have.
LEFT_OUT = re.compile(
    r"torch\.(_inductor|_dynamo|onnx|ao|testing|_C|quantization|_numpy|_lazy|_export|xpu|cuda|mtia|jit\.mobile|_vendor|utils\.tensorboard)\b"
    r"|torch\.distributed\.(elastic|examples|benchmarks)\b|torch\.nn\.(quantized|quantizable|intrinsic|qat)\b"
)
PAGES_LEFT_OUT = re.compile("onnx|dynamo|inductor|cuda|quantiz|xpu|elastic")
BLOCK = re.compile(r"^(\s*)(\.\. (code|code-block|sourcecode|testcode)::.*|```\s*(python|py)\s*$|.*::\s*$)")
PREAMBLE = "import random; random.seed(0); np.random.seed(0); torch.manual_seed(0)\nfrom torch.distributions import *\nimport torch.distributed as dist, torch.optim as optim"


def prompts(text: str) -> list[str]:
    """The statements behind `>>>`, with their `...` lines."""
    found: list[list[str]] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(">>> "):
            found.append([bare[4:]])
        elif bare.startswith("...") and found:
            found[-1].append(bare[4:])
    return ["\n".join(lines) for lines in found]


def statements(block: str) -> list[str]:
    """Those of a block of a page; none of what is no Python."""
    if ">>>" in block:
        return prompts(block)
    try:
        tree = ast.parse(block)
    except SyntaxError:
        return []
    lines = block.splitlines()
    starts = [min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) for node in tree.body]
    return ["\n".join(lines[start - 1 : node.end_lineno]) for start, node in zip(starts, tree.body)]


def blocks(page: str) -> Iterator[str]:
    """Literal blocks and fenced Python of a page."""
    lines = page.split("\n")
    at = 0
    while at < len(lines):
        begin = BLOCK.match(lines[at])
        at += 1
        if not begin:
            continue
        inside = []
        if "```" in begin[0]:
            while at < len(lines) and not lines[at].strip().startswith("```"):
                inside.append(lines[at])
                at += 1
        else:
            indent = len(begin[1])
            while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > indent):
                if not re.match(r"\s*:\w+:", lines[at]):
                    inside.append(lines[at])
                at += 1
        yield textwrap.dedent("\n".join(inside)).strip("\n")


def members() -> Iterator[tuple[str, object]]:
    """(name, object) of modules of torch, their functions and classes, and what classes define."""
    import torch

    modules = ["torch", *(m.name for m in pkgutil.walk_packages(torch.__path__, "torch.") if not LEFT_OUT.match(m.name))]
    for name in modules:
        try:
            module = importlib.import_module(name)
        except BaseException:
            continue
        yield name, module
        for key, value in list(vars(module).items()):
            if key.startswith("__") or inspect.ismodule(value) or not str(getattr(value, "__module__", "torch") or "torch").startswith("torch"):
                continue
            yield f"{name}.{key}", value
            for attribute, member in list(vars(value).items()) if inspect.isclass(value) else []:
                yield f"{name}.{key}.{attribute}", member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    for attribute in dir(torch.Tensor):
        yield f"torch.Tensor.{attribute}", getattr(torch.Tensor, attribute, None)


def docstrings() -> dict[str, list[str]]:
    """Statements of each docstring with examples, once."""
    found: dict[str, list[str]] = {}
    seen = set()
    for name, thing in members():
        text = getattr(thing, "__doc__", None)
        if isinstance(text, str) and ">>>" in text and text not in seen:
            seen.add(text)
            found[name] = prompts(text)
    return found


def pages(folder: Path) -> dict[str, list[str]]:
    files = sorted(file for ending in ("*.rst", "*.md") for file in folder.rglob(ending) if not PAGES_LEFT_OUT.search(str(file.relative_to(folder))))
    found = {str(file.relative_to(folder)): [s for b in blocks(file.read_text(errors="ignore")) for s in statements(b)] for file in files}
    return {name: steps for name, steps in found.items() if steps}


def write(file: Path, examples: dict[str, list[str]]) -> None:
    parts = [f"### {name}\n{PREAMBLE}\n" + "".join(f"step({step!r})\n" for step in steps) for name, steps in examples.items()]
    file.write_text("".join(parts))
    print(f"{file}: {len(examples)} snippets, {sum(map(len, examples.values()))} statements")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/differential examples", description="Writes PyTorch's own examples as snippets.")
    parser.add_argument("folder", type=Path, help="where the snippets go")
    parser.add_argument("--docs", type=Path, help="PyTorch's docs/source")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not options.here:
        import oracle

        return subprocess.run([oracle.oracle_python(), __file__, *arguments, "--here"]).returncode
    options.folder.mkdir(parents=True, exist_ok=True)
    del sys.argv[1:]  # some modules are programs and read it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(options.folder / "docstrings.py", docstrings())
    if options.docs:
        write(options.folder / "pages.py", pages(options.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
