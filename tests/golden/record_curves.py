"""Records curves.json with PyTorch: `python record_curves.py` where torch is installed."""

import json
import pathlib

import curve_cases
import torch

torch.set_num_threads(1)
rows = {name: script(torch) for name, script in curve_cases.SCRIPTS.items()}
text = (
    "{\n"
    + ",\n".join(f'"{name}": {json.dumps([round(v, 7) for v in losses])}' for name, losses in rows.items())
    + "\n}\n"
)
(pathlib.Path(__file__).parent / "curves.json").write_text(text)
