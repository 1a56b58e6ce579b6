"""The samples of the operator table under test, known differences, and NumPy copies of results."""

import tomllib
from pathlib import Path

import cresset
import numpy as np
from cresset.testing.samples import Call, Row, cast, flat, operators, qualified, rows, table_file  # noqa: F401

HERE = Path(__file__).resolve().parent
# Differences with a reason: [[difference]] check, op, reason and optionally sample (its number, from 0).
KNOWN = tomllib.loads((HERE / "known_differences.toml").read_text())["difference"]


def array(t):
    """NumPy copy of a tensor of any type; bfloat16 as float32, complex32 as complex64."""
    wider = {cresset.bfloat16: cresset.float32, cresset.complex32: cresset.complex64}
    t = t.detach().resolve_conj().resolve_neg()
    return np.array(t.to(wider.get(t.dtype, t.dtype)).numpy())


class Failure(AssertionError):
    """A check that did not hold for one sample."""


def check_samples(check, row, test):
    """Runs test(call) for every sample. A known difference must differ, everything else must hold.

    The number of samples for which the test had something to check, which is when it did not return False.
    """
    problems, checked = [], 0
    for index, call in row.calls():
        known = [d for d in KNOWN if d["check"] == check and d["op"] == row.id and d.get("sample", index) == index]
        problem = None
        try:
            checked += test(call) is not False
        except Exception as error:
            problem = error
        if problem is not None and not known:
            problems.append(f"{row.id}({row['samples'][index]}): {type(problem).__name__}: {problem}")
        elif problem is None and known:
            problems.append(f"{row.id}({row['samples'][index]}) holds, but is listed as a known difference: {known[0]['reason']}")
    assert not problems, "\n".join(problems)
    return checked
