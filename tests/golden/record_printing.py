"""Records printing.json with PyTorch: `python record_printing.py` where torch is installed."""

import json
import pathlib

import printing_cases
import torch

rows = printing_cases.texts(torch)
text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n"
(pathlib.Path(__file__).parent / "printing.json").write_text(text)
