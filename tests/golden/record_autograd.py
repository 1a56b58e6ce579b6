"""Records autograd.json with PyTorch: `python record_autograd.py` where torch is installed."""

import json
import pathlib

import autograd_cases
import torch

torch.set_warn_always(True)  # otherwise one case hears a warning that others cause, too
rows = {name: autograd_cases.observe(function, torch) for name, function in autograd_cases.cases().items()}
text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n"
(pathlib.Path(__file__).parent / "autograd.json").write_text(text)
