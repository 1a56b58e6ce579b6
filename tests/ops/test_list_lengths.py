"""Lists of a promised length (int[2], float[3], bool[3]) that have another: an error, or an answer that does not depend on what lies behind the list.

Schemas promise lengths that nobody checks for kernels. AddressSanitizer (`make asan`) sees what is read or written behind a list; without it a wild
size mostly shows as a crash, or as an answer that changes.
"""

import cresset
import op_samples
import pytest
from op_samples import array, flat

ERRORS = (RuntimeError, ValueError, IndexError, TypeError)


def fixed_lists(row):
    """(position, name, promised length) of the arguments that are such lists."""
    for position, argument in enumerate(row["arguments"]):
        base, bracket, length = argument["type"].rstrip("?").partition("[")
        if bracket and length.rstrip("]").isdigit() and base in ("int", "SymInt", "float", "bool"):
            yield position, argument["name"], int(length.rstrip("]"))


def values_of(call, row, position, name):
    given = call.args[position] if position < len(call.args) else call.kwargs.get(name)
    return list(given) if isinstance(given, (list, tuple)) else None if given is None else [given]


def answer(row, args, kwargs):
    try:
        return [array(t) for t in flat(row.op()(*args, **kwargs))]
    except ERRORS as error:
        return type(error), str(error)


ROWS = [row for row in op_samples.rows() if any(fixed_lists(row)) and not row.random]


def test_there_are_such_rows():
    assert len(ROWS) > 60


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_other_lengths(row):
    tried = 0
    for _, call in row.calls():
        call = call.map(lambda t: t.detach())
        for position, name, length in fixed_lists(row):
            values = values_of(call, row, position, name)
            if not values:
                continue
            for n in {0, 1, length - 1, length + 1, length + 2, 2 * length + 9} - {length, -1}:
                other = (values * (n + 1))[:n]
                args, kwargs = list(call.args), dict(call.kwargs)
                if position < len(args):
                    args[position] = other
                else:
                    kwargs[name] = other
                first, second = answer(row, args, kwargs), answer(row, args, kwargs)
                tried += 1
                if isinstance(first, tuple) or isinstance(second, tuple):
                    assert first == second, (name, other)
                else:
                    assert all(cresset.equal(cresset.as_tensor(a).nan_to_num(), cresset.as_tensor(b).nan_to_num()) for a, b in zip(first, second)), (name, other)
    assert tried or all(not values_of(call, row, p, name) for _, call in row.calls() for p, name, _ in fixed_lists(row))
