"""Names that graphs mention, as constants of C++: the operators, their arguments, and those of src/ops/symbols.txt."""

from output import header

KEYWORDS = set(
    "alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extern"
    " false float for friend goto if inline int long mutable namespace new not operator or private protected public register return short signed sizeof"
    " static struct switch template this throw true try typedef typeid typename union unsigned using virtual void volatile while xor".split()
)


def read_names(path):
    """Section to names; none without the file (tables of a test)."""
    names = {"prim": set(), "aten": set(), "attr": set()}
    section = None
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("["):
            section = names[line.strip("[]")]
        elif line and not line.startswith("#"):
            section.update(line.split())
    return names


def emit(table, out):
    names = read_names(table.folder / "symbols.txt")
    for op in table.ops():
        names["aten"].add(op.schema.name)
        names["attr"] |= {argument.name for argument in op.schema.args}
    lines = ["#define CRESSET_FORALL_SYMBOLS(_)"]
    for space in ("prim", "aten", "attr"):
        lines += [f"  _({space}, {name})" for name in sorted(names[space] - KEYWORDS)]
    out.add("core-header", "include/cresset/ir/symbol_names.h", header(None, [], " \\\n".join(lines) + "\n"))
