"""Which headers of generated functions a piece of generated C++ needs, so that a new row rebuilds its own family only."""

import re
from functools import lru_cache

from emit_functions import functions_of, redispatch_name

CALL = re.compile(r"(?<![.>\w])(redispatch::)?(\w+)\(")


@lru_cache(maxsize=1)
def _index(table):
    """Function name -> names of the families that declare one, and the same for redispatch functions."""
    functions, redispatch = {}, {}
    for family in table.families:
        for op in family.ops():
            redispatch.setdefault(redispatch_name(op), set()).add(family.name)
            for f in functions_of(op):
                functions.setdefault(f.name, set()).add(family.name)
    return functions, redispatch


@lru_cache(maxsize=1)
def _formulas(table):
    """Name of each function that src/autograd/formulas_*.h mention -> those headers."""
    found = {}
    for path in sorted((table.families[0].path.parent.parent / "autograd").glob("formulas_*.h")):
        for _, name in CALL.findall(path.read_text()):
            found.setdefault(name, set()).add(f'"autograd/{path.name}"')
    return found


def formula_headers(table, text):
    """The headers of gradient formulas that `text` calls, after the general one."""
    found = _formulas(table)
    return ['"autograd/formulas.h"', *sorted(set().union(*(found.get(name, ()) for _, name in CALL.findall(text))))]


def headers(table, text):
    """#include names, in a fixed order, for the calls in `text`. A local name that equals a function's costs one header too many."""
    functions, redispatch = _index(table)
    needed = set()
    for behind, name in CALL.findall(text):
        kind, index = ("redispatch", redispatch) if behind else ("functions", functions)
        needed |= {f"<cresset/ops/{kind}_{family}.h>" for family in index.get(name, ())}
    return sorted(needed)
