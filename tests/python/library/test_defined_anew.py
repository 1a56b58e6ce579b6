"""An operator that is defined again under its name, with another alias analysis, is another one for scripts; and the type None of schemas."""

import cresset
from cresset.library import Library, define


def _kept(alias_analysis):
    library = Library("defined_anew", "DEF")
    define(library, "_op() -> None", alias_analysis=alias_analysis)(lambda *args: None)
    graph = cresset.jit.CompilationUnit("def f():\n    torch.ops.defined_anew._op()\n").f.graph
    library._destroy()
    return "defined_anew::_op" in str(graph)


def test_what_was_defined_last_counts():
    assert [_kept("FROM_SCHEMA"), _kept("CONSERVATIVE"), _kept("FROM_SCHEMA")] == [False, True, False]


def test_none_is_a_type():
    schema = cresset._C.parse_schema("f(None x) -> (None, Tensor)")
    assert str(schema) == "f(NoneType x) -> (NoneType, Tensor)"
