"""Records stored.json with PyTorch: `python record_stored.py` where torch is installed."""

import json
import pathlib
import warnings

import stored_cases
import torch

warnings.simplefilter("ignore")
rows = {"texts": stored_cases.texts(torch)}
for kind, record in (("values", stored_cases.values), ("steps", stored_cases.steps)):
    rows[kind] = {dtype: record(torch, dtype) for dtype in stored_cases.FLOAT8}
text = json.dumps(rows["texts"], indent=0)
for kind in ("values", "steps"):
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows[kind].items())
    rows[kind] = "{\n" + lines + "\n}"
(pathlib.Path(__file__).parent / "stored.json").write_text(f'{{"texts": {text},\n"values": {rows["values"]},\n"steps": {rows["steps"]}}}\n')
