"""Records promotion.json with PyTorch: `python record_promotion.py` where torch is installed."""

import json
import pathlib

import promotion_cases
import torch

rows = promotion_cases.table(torch)
lines = [f" {json.dumps(left)}: {{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in row.items()) + "}" for left, row in rows.items()]
(pathlib.Path(__file__).parent / "promotion.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
