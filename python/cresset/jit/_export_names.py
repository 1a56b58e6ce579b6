"""Which operators a script module calls."""

__all__ = ["export_opnames"]


def _names(block, found):
    for node in block.nodes():
        schema = str(node.schema())
        if "(" in schema and not node.kind().startswith(("prim::", "prims::")) and schema != "(no schema)":
            found.add(schema.partition("(")[0])
        for inner in node.blocks():
            _names(inner, found)


def export_opnames(m):
    """The operators that the methods of a script module and of the modules in it call, "ns::name.overload", sorted. AttributeError for what
    is no script module."""
    found = set()
    for module in m.modules():
        for name in module._c._method_names():
            _names(getattr(module, name).inlined_graph, found)
    return sorted(found)
