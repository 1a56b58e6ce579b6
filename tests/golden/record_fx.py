"""Records fx.json with PyTorch: `python record_fx.py` where torch is installed."""

import json
import pathlib

import fx_cases
import torch
import torch.fx

rows = fx_cases.texts(torch)
text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n"
(pathlib.Path(__file__).parent / "fx.json").write_text(text)
