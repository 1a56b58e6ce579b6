from answers import show
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16), "c": torch.tensor([True, False]), "d": torch.tensor(3, dtype=torch.int64)}
with tempfile.TemporaryDirectory() as place:
    save_file(tensors, f"{place}/x.safetensors", {"note": "hello"})
    show("file", {k: v for k, v in sorted(load_file(f"{place}/x.safetensors").items())})
    with safe_open(f"{place}/x.safetensors", framework="pt") as f:
        show("open", [sorted(f.keys()), f.metadata(), f.get_slice("a")[:, 1:], f.get_tensor("b")])
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    save_model(model, f"{place}/m.safetensors")
    show("model", [load_model(model, f"{place}/m.safetensors")[0], list(model.parameters())])
show("bytes", load(save(tensors))["a"])
