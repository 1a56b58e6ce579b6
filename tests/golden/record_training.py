"""Records training.json (optimisers) and schedules.json with PyTorch: `python record_training.py` where torch is installed."""

import json
import pathlib
import warnings

import torch
import training_cases

here = pathlib.Path(__file__).parent
warnings.simplefilter("ignore")


def write(name, rows):
    (here / name).write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in rows.items()) + "\n}\n"
    )


write("training.json", {e: training_cases.train(torch, e) for e in training_cases.OPTIMIZERS} | {e: training_cases.train_with_closure(torch, e) for e in training_cases.CLOSURES})
write("schedules.json", {e: training_cases.schedule(torch, e) for e in training_cases.SCHEDULES})
