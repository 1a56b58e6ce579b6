"""Names that graphs mention, as constants of C++: the operators, their arguments, and those of src/ops/symbols.txt.

Each has a number that other names do not move: those of the file count from 1, the others have a number made of their text, so that a new row
changes nothing for programs that are compiled already.
"""

from output import header

KEYWORDS = set(
    "alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extern"
    " false float for friend goto if inline int long mutable namespace new not operator or private protected public register return short signed sizeof"
    " static struct switch template this throw true try typedef typeid typename union unsigned using virtual void volatile while xor".split()
)


def read_names(path):
    """(space, name) in the order of the file; none without the file (tables of a test)."""
    names, space = [], None
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("["):
            space = line.strip("[]")
        elif line and not line.startswith("#"):
            names += [(space, name) for name in line.split()]
    return dict.fromkeys(names)


def number(text):
    """FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) in the upper half of the numbers, as src/ir/graph/symbol.cpp computes it."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value | 0x80000000


def emit(table, out):
    listed = read_names(table.folder / "symbols.txt")
    names = {("aten", op.schema.name) for op in table.ops()} | {("attr", argument.name) for op in table.ops() for argument in op.schema.args}
    numbers = {name: i for i, name in enumerate(listed, 1)}
    taken = set()
    for space, name in sorted(names - listed.keys()):
        value = number(f"{space}::{name}")
        while value in taken:  # the later one in the alphabet moves on; Symbol's table is told all numbers
            value = value + 1 | 0x80000000
        taken.add(value)
        numbers[space, name] = value
    lines = [f"  _({space}, {name}, {numbers[space, name]}u) \\\n" for space, name in sorted(numbers) if name not in KEYWORDS]
    text = f"#define CRESSET_LISTED_SYMBOLS {len(listed)}\n#define CRESSET_FORALL_SYMBOLS(_) \\\n{''.join(lines)}\n"
    out.add("core-header", "include/cresset/ir/symbol_names.h", header(None, [], text))
