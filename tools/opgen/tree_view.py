"""What the sources of this tree see of the generated functions and methods.

A header of declarations that only gained names which nothing in the tree calls stays as it was for the tree, so that a new row compiles its
own family and not everything that calls an older operator. Users see the complete headers, and so does a fresh build: nothing was left out yet.
"""

import re

CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
HEAD = re.compile(r"^[A-Za-z_][^\n(;{=]*\(", re.M)
OWN = re.compile(r"^CRESSET_API [^\n(;{=]*?(\w+)\(", re.M)
DECLARED = re.compile(r"(\w+)\(")
SYMBOL = re.compile(r"_\((\w+), (\w+), \w+\)")  # symbol_names.h


def headers(folder):
    """The complete headers that have a second form for the tree."""
    return [folder / "ops/tensor_methods.inc", *sorted(folder.glob("ops/functions_*.h")), folder / "ir/symbol_names.h"]


def added(complete, seen):
    """Names of the declarations that `seen` lacks (symbols as aten::name); None where it has a line that is gone or stands for another one."""
    complete, seen = complete.splitlines(), set(seen.splitlines())
    if not seen <= set(complete):
        return None
    new = [line for line in complete if line not in seen]
    symbols = [SYMBOL.search(line) for line in new]
    if new and all(symbols):
        return {f"{match[1]}::{match[2]}" for match in symbols}
    found = [DECLARED.search(line) for line in new]
    return {match[1] for match in found} if all(found) else None


def calls(text, names):
    """Those of `names` that C++ text mentions: not as the name of a function that begins in the first column, nor in another namespace, nor
    declared by the text itself."""
    text = CODE.sub('""', text)
    names = names - set(OWN.findall(text))
    symbols = {name for name in names if "::" in name}
    found = {name for name in symbols if name in text}
    names = names - symbols
    if not names:
        return found
    text = HEAD.sub("", text)
    word = re.compile(rf"(?:(?<![\w:])|(?<=\bcresset::)|(?<=\bTensor::))({'|'.join(map(re.escape, sorted(names)))})(?!\w)")
    return found | set(word.findall(text))


def sources(root, generated):
    for folder in ("src", "include", "tests/cpp", "benchmarks"):
        yield from (path for path in (root / folder).rglob("*") if path.suffix in (".cpp", ".h"))
    # The definitions of functions are compiled with the complete headers.
    yield from (path for path in (generated / "src").rglob("*.cpp") if not path.name.startswith("functions_"))


def write(root, generated):
    """Brings <generated>/tree up to date. Returns how many files changed."""
    waiting, stale = {}, []
    for header in headers(generated / "include/cresset"):
        seen = generated / "tree" / header.relative_to(generated / "include")
        complete = header.read_text()
        before = seen.read_text() if seen.exists() else None
        if before == complete:
            continue
        names = added(complete, before) if before is not None else None
        if names is None:
            stale.append((seen, complete))
        else:
            waiting[header.name] = (names, seen, complete)
    if waiting:
        wanted = set().union(*(names for names, _, _ in waiting.values()))
        texts = [path.read_text() for path in sources(root, generated)]
        used = set().union(*(calls(text, wanted) for text in texts if any(name in text for name in wanted)))
        stale += [(seen, complete) for names, seen, complete in waiting.values() if names & used]
    for seen, complete in stale:
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.write_text(complete)
    # A family that is gone.
    known = {header.name for header in headers(generated / "include/cresset")}
    for path in (generated / "tree/cresset/ops").glob("*"):
        if path.name not in known:
            path.unlink()
    return len(stale)
