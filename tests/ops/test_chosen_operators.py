"""Which operators the calls of a Python program are, beside those that PyTorch 2.13 records (chosen_operators.json)."""

import json
import re
import warnings
from pathlib import Path

import cresset
from record_chosen_operators import calls, chosen

RECORDED = json.loads((Path(__file__).parent / "chosen_operators.json").read_text())
# Calls that are other operators here, and why.
DIFFERENT = {
    r"(function|method) (add|sub)\(T\(3,4\), 2, 3\)": "an old order of arguments, which PyTorch makes a tensor of",
    r"(function|method) stft\(": "one operator pads here: PyTorch pads in Python",
    r"function conj\(|method _?conj\(": "conj is the operator of the view",
    r"(function|method) split\(T\(5,2\), \[1,4\]\)": "split has an overload for sizes; PyTorch's method calls split_with_sizes",
    r"method to\(T\(3,4\), T\(2\)\)": "nothing is done",
    r"method (_is_all_true|_is_any_true|_addmm_activation)\(": "no methods here",
}  # fmt: skip


def test_calls_are_pytorchs_operators():
    problems, compared = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text, function, args, kwargs in calls(cresset):
            if text not in RECORDED:
                continue
            compared += 1
            listed = next((reason for pattern, reason in DIFFERENT.items() if re.match(pattern, text)), None)
            found = chosen(cresset, function, args, kwargs)
            if (found == RECORDED[text]) is (listed is not None):
                problems.append(f"{text}: {found}, PyTorch has {RECORDED[text]}" if listed is None else f"{text} is the same, but listed: {listed}")
    assert not problems, "\n".join(problems)
    assert compared > 1500
