"""Compares the map of folders in ARCHITECTURE.md with the tree, and the source lists of CMake with the sources.

ARCHITECTURE.md names a folder as `path/` in backquotes. Every folder it names must exist, and it must name every top
folder and every folder directly below src/. Prints one line a difference; the exit status is 1 when there is one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOFT_LIMIT = 800
TEXT = {".h", ".cpp", ".inc", ".py", ".toml", ".cmake", ".md"}


def files_of(root: Path) -> list[Path]:
    """The files of the repository, tracked or new, as paths relative to its root."""
    output = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, check=True, text=True).stdout
    return sorted({Path(name) for name in output.split("\0") if name and (root / name).is_file()})


def folders_of(files: list[Path]) -> set[str]:
    return {str(parent) for file in files for parent in file.parents if str(parent) != "."}


def check_map(text: str, files: list[Path]) -> list[str]:
    """Differences between the folders named in the text and the folders that hold files."""
    named = {match.rstrip("/") for match in re.findall(r"`([\w./-]+/)`", text)}
    folders = folders_of(files)
    required = {f for f in folders if "/" not in f and not f.startswith(".")}
    required |= {f for f in folders if f.startswith("src/") and f.count("/") == 1}
    problems = [f"ARCHITECTURE.md names `{name}/`, which does not exist" for name in sorted(named - folders)]
    problems += [f"ARCHITECTURE.md does not name `{name}/`" for name in sorted(required - named)]
    return problems


def check_source_lists(root: Path, files: list[Path]) -> list[str]:
    """Every .cpp below src/ and tests/cpp/ must be named in the nearest CMakeLists.txt above it."""
    problems = []
    for file in files:
        if file.suffix != ".cpp" or not (file.is_relative_to("src") or file.is_relative_to("tests/cpp")):
            continue
        for folder in file.parents:
            lists = root / folder / "CMakeLists.txt"
            if lists.exists():
                words = lists.read_text().split()
                inside = str(file.relative_to(folder))
                # tests/cpp names the layer's folder once and the files without it
                if not any(word.strip("()") in (inside, file.name) for word in words):
                    problems.append(f"{file} is not in {folder}/CMakeLists.txt")
                break
    return problems


def long_files(root: Path, files: list[Path]) -> list[tuple[int, Path]]:
    """Text files above the soft limit of lines, longest first."""
    sizes = [(len((root / f).read_text(errors="replace").splitlines()), f) for f in files if f.suffix in TEXT]
    return sorted(((n, f) for n, f in sizes if n > SOFT_LIMIT), reverse=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", action="store_true", help="also print the files above the soft limit of lines")
    options = parser.parse_args()
    files = files_of(ROOT)
    problems = check_map((ROOT / "ARCHITECTURE.md").read_text(), files) + check_source_lists(ROOT, files)
    print("\n".join(problems), end="\n" if problems else "")
    if options.sizes:
        for lines, file in long_files(ROOT, files):
            print(f"note: {file} has {lines} lines; the soft limit is {SOFT_LIMIT}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
