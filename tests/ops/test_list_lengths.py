"""Lists of numbers (int[2], float[], bool[3]) of other lengths: an error, or an answer that does not depend on what lies behind the list.

Schemas promise lengths, or dimensions do, and nobody checks them for kernels. AddressSanitizer (`make asan`) sees what is read or written behind a list; without it a wild
size mostly shows as a crash, or as an answer that changes.
"""

import numpy as np
import op_samples
import pytest
from op_samples import array, flat

ERRORS = (RuntimeError, ValueError, IndexError, TypeError)


def lists(row):
    """(position, name) of the arguments that are such lists."""
    for position, argument in enumerate(row["arguments"]):
        base, bracket, _ = argument["type"].rstrip("?").partition("[")
        if bracket and base in ("int", "SymInt", "float", "bool"):
            yield position, argument["name"]


def values_of(call, row, position, name):
    given = call.args[position] if position < len(call.args) else call.kwargs.get(name)
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def answer(row, args, kwargs):
    try:
        return [array(t) for t in flat(row.op()(*args, **kwargs))]
    except ERRORS as error:
        return type(error), str(error)


ROWS = [row for row in op_samples.rows() if any(lists(row)) and not row.random]


def test_there_are_such_rows():
    assert len(ROWS) > 200


def with_list(call, position, name, values):
    args, kwargs = list(call.args), dict(call.kwargs)
    if position < len(args):
        args[position] = values
    else:
        kwargs[name] = values
    return args, kwargs


def same(first, second):
    if isinstance(first, tuple) or isinstance(second, tuple):
        return first == second
    return len(first) == len(second) and all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, second))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_other_lengths(row):
    given = []
    for _, call in row.calls():
        call = call.map(lambda t: t.detach())
        for position, name in lists(row):
            values = values_of(call, row, position, name)
            for n in {0, 1, len(values) - 1, len(values) + 1, len(values) + 2, 2 * len(values) + 9} - {len(values), -1} if values else ():
                changed = with_list(call, position, name, (values * (n + 1))[:n])
                given.append(n)
                assert same(answer(row, *changed), answer(row, *changed)), (name, n)
    assert given or not any(values_of(call, row, p, name) for _, call in row.calls() for p, name in lists(row))
