"""Names that other layers look up: tags, which operator another stands for, which arguments are written without the schema saying so."""

import cpp
from output import header, source
from table import TAGS


def emit(table, out):
    body = "/// What an operator promises about itself; the dispatcher keeps the name (OperatorHandle::getTags).\n"
    body += "enum class Tag : uint8_t {\n" + "".join(f"  {tag},\n" for tag in TAGS) + "};\n"
    body += "inline constexpr const char* tag_names[] = {\n" + "".join(f"    \"{tag}\",\n" for tag in TAGS) + "};\n"
    out.add("core-header", "include/cresset/dispatch/tags.h", header(None, ["<cstdint>"], body, "cresset"))
    rows = sorted(canonical_names(table).items())
    body = "const OperatorAlias k_aliases[] = {\n" + "".join(f"    {{{cpp.quote(a)}, {cpp.quote(b)}}},\n" for a, b in rows) + "};\n\n"
    writes = [(op.schema.qualified, name) for row in table.rows() for op in row.ops for name in row.get("writes", [])]
    body += "const UnmarkedWrite k_writes[] = {\n" + "".join(f"    {{{cpp.quote(a)}, {cpp.quote(b)}}},\n" for a, b in writes) + "};\n\n"
    body += "ArrayRef<OperatorAlias> operator_aliases() { return k_aliases; }\nArrayRef<UnmarkedWrite> unmarked_writes() { return k_writes; }\n"
    out.add("ops", "src/ops/names.cpp", source(None, ['"ops/shared/operator_aliases.h"', '"ops/shared/written_arguments.h"'], body, "cresset::ops"))


def canonical_names(table):
    """Each name that another operator's stands for; never a name that is replaced itself."""
    names = {}
    for row in table.rows():
        names |= dict.fromkeys(row.get("aliases", []), row.schema.name)
        if row.get("canonical"):
            names[row.schema.name] = row.get("canonical")
    known = {row.schema.name for row in table.rows()}
    for name in names:
        while names[name] in names:
            names[name] = names[names[name]]
        if names[name] not in known:
            raise ValueError(f"{name}: canonical = {names[name]}: no such operator")
    return names
