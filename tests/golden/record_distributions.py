"""Records distributions.json with PyTorch: `python record_distributions.py` where torch is installed."""

import json
import pathlib

import distribution_cases as cases
import distribution_errors
import torch

torch.set_num_threads(1)
rows = {
    "distributions": {name: cases.distribution(torch, name) for name in cases.DISTRIBUTIONS},
    "divergences": cases.divergences(torch),
    "transforms": {name: cases.transform(torch, name) for name in cases.transform_names()},
    "constraints": cases.constraint_checks(torch),
    "errors": {case: distribution_errors.answer(torch, case) for case in distribution_errors.CASES},
}
text = "{\n"
for part, entries in rows.items():
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in entries.items())
    text += f"{json.dumps(part)}: {{\n{lines}\n}},\n"
(pathlib.Path(__file__).parent / "distributions.json").write_text(text.rstrip(",\n") + "\n}\n")
