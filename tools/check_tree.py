"""Compares the map of folders in ARCHITECTURE.md with the tree, the source lists of CMake with the sources, and names of files with the files.

ARCHITECTURE.md names a folder as `path/` in backquotes. Every folder it names must exist, and it must name every top
folder and every folder directly below src/. Source lists are complete and in alphabetical order, tests of C++ stand in the folder of a
layer, and a file that a comment or a page of the design names exists. In src/ops itself stand files of families only. README.md links
every guide and recipe. Prints one line a difference; the exit status is 1 when there is one.
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
SOURCE_LINE = re.compile(r"\s+([\w./-]+\.cpp)\)?")
FILE_NAME = re.compile(r"(?<![\w/.*<-])((?:[\w-]+/)*[\w-]+\.(?:cpp|h|toml|py|inc|cmake|md))(?![\w.])")
# Names that stand for any file, files of others, and the one generated file that is named.
NO_FILES = {"y.h", "y.cpp", "y_test.cpp", "_test.cpp", "file.h", "file.py", "app.cpp", "Python.h", "symbol_names.h"}
PYTORCHS = ("torch/", "ATen/", "c10/")  # headers, which compat/ provides
COMMENTS = {".cpp": "//", ".h": "//", ".inc": "//", ".py": "#", ".toml": "#", ".cmake": "#", ".txt": "#"}


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


def check_order(root: Path, files: list[Path]) -> list[str]:
    """The sources of a list, one a line, are in alphabetical order."""
    problems = []
    for file in files:
        if file.name != "CMakeLists.txt":
            continue
        before = ""
        for number, line in enumerate((root / file).read_text().splitlines(), 1):
            found = SOURCE_LINE.fullmatch(line)
            name = found[1] if found else ""
            if name and name < before:
                problems.append(f"{file}:{number}: {name} stands behind {before}; sources are listed in alphabetical order")
            before = name
    return problems


def check_test_rooms(files: list[Path]) -> list[str]:
    """Tests of C++ stand in tests/cpp/X, where src/X or src/backends/X is a folder."""
    folders = folders_of(files)
    rooms = sorted({file.parts[2] for file in files if file.parts[:2] == ("tests", "cpp") and len(file.parts) > 3})
    return [f"tests/cpp/{room} has no room src/{room}" for room in rooms if not {f"src/{room}", f"src/backends/{room}"} & folders]


def check_families(files: list[Path]) -> list[str]:
    """Sources directly in src/ops are of a family: its name, or its name and a part's."""
    names = {file.stem for file in files if file.parent == Path("src/ops") and file.suffix == ".toml"}
    sources = [file for file in files if file.parent == Path("src/ops") and file.suffix in (".cpp", ".h")]
    return [f"{file} is of no family of operators (<family> or <family>_<part>); what several share is src/ops/shared"
            for file in sources if not any(file.stem == name or file.stem.startswith(name + "_") for name in names)]  # fmt: skip


def check_root(files: list[Path]) -> list[str]:
    """At the root stand files that tools and people look for there; anything else was left behind by a run."""
    return [f"{file} is not one of the files at the root" for file in files
            if len(file.parts) == 1 and file.suffix not in (".md", ".json", ".toml", ".yaml", ".txt")
            and file.name not in (".clang-format", ".editorconfig", ".gitignore", "LICENSE", "Makefile")]  # fmt: skip


def check_pages(readme: str, files: list[Path]) -> list[str]:
    """README.md links every guide and recipe, or nobody finds it."""
    pages = [file for file in files if file.parent in (Path("docs/guide"), Path("docs/recipes")) and file.suffix == ".md"]
    return [f"README.md has no link to {page}" for page in pages if f"({page})" not in readme]


def prose_of(file: Path, text: str):
    """(line, text) of a page's lines outside of code, and of a source's comments."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if file.suffix == ".md":
            code ^= line.startswith("```")
            if not code:
                yield number, line
        elif (begin := line.find(COMMENTS[file.suffix])) >= 0:
            yield number, line[begin:]


def check_file_names(root: Path, files: list[Path]) -> list[str]:
    """A file that a comment, or a page of the design, names is there: by its name alone, or by the end of its path."""
    paths = {}
    for file in files:
        paths.setdefault(file.name, []).append(f"/{file}")
    problems = []
    for file in files:
        pages = file.suffix == ".md" and (file.parent in (Path("."), Path("docs/design")) and file.name != "CHANGELOG.md")
        sources = file.suffix in COMMENTS and (file.parts[0] in ("src", "include", "cmake", "python", "tools") or file.name == "CMakeLists.txt")
        for number, text in prose_of(file, (root / file).read_text()) if pages or sources else ():
            for name in FILE_NAME.findall(text):
                last = name.rpartition("/")[2]
                ours = last not in NO_FILES and not name.startswith(PYTORCHS)
                if ours and not any(path.endswith(f"/{name}") for path in paths.get(last, ())):
                    problems.append(f"{file}:{number}: names {name}, which does not exist")
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
    problems = check_map((ROOT / "ARCHITECTURE.md").read_text(), files) + check_source_lists(ROOT, files) + check_order(ROOT, files)
    problems += check_test_rooms(files) + check_families(files) + check_root(files) + check_file_names(ROOT, files)
    problems += check_pages((ROOT / "README.md").read_text(), files)
    print("\n".join(problems), end="\n" if problems else "")
    if options.sizes:
        for lines, file in long_files(ROOT, files):
            print(f"note: {file} has {lines} lines; the soft limit is {SOFT_LIMIT}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
