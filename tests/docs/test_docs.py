"""Runs the Python blocks of every page, in order and in one process a page, and compiles the C++ example of the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cresset.utils.cpp_extension import link_flags

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md")), *sorted((ROOT / "docs/recipes").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_python_blocks_run(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_readme_loss_is_small(tmp_path):
    script = tmp_path / "readme.py"
    script.write_text(blocks(ROOT / "README.md", "python")[0])
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert float(out.split()[1]) < 1.0


def test_readme_cpp_example(tmp_path):
    source = tmp_path / "scale.cpp"
    source.write_text(blocks(ROOT / "README.md", "cpp")[0])
    build = ROOT / "build" / "dev"
    program = tmp_path / "scale"
    command = ["g++", "-std=c++20", f"-I{ROOT}/include", f"-I{build}/gen/include", str(source), "-o", str(program), f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", *link_flags(program=True)]
    subprocess.run(command, check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "18\n"


def test_links_lead_somewhere():
    for page in PAGES + [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs/design").glob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)  # code has brackets of its own
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
