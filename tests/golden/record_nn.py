"""Records nn_layers.json and nn_initial.json with PyTorch: `python record_nn.py` where torch is installed."""

import json
import pathlib
import warnings

import nn_cases
import torch

here = pathlib.Path(__file__).parent
warnings.simplefilter("ignore")


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


def write(name, rows):
    text = "[\n" + ",\n".join(json.dumps(rounded(row), separators=(",", ":")) for row in rows) + "\n]\n"
    (here / name).write_text(text)


layers = []
for case in nn_cases.LAYERS:
    layers.append({"case": case[0], **nn_cases.run(torch, torch.nn, case)})
write("nn_layers.json", layers)

initial = []
for expression in nn_cases.INITIAL:
    torch.manual_seed(0)
    module = eval(expression, vars(torch.nn))
    state = [[k, list(v.shape), *nn_cases.digest(v)] for k, v in module.state_dict().items()]
    initial.append({"case": expression, "state": state, "next": torch.rand(1).item()})
write("nn_initial.json", initial)
