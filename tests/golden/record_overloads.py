"""Records overloads.json with PyTorch: `python record_overloads.py` where torch is installed."""

import json
import pathlib

import overload_cases
import torch

tables = {"passed": overload_cases.passed(torch), "chosen": overload_cases.chosen(torch)}
parts = []
for name, rows in tables.items():
    lines = [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()]
    parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
(pathlib.Path(__file__).parent / "overloads.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")
