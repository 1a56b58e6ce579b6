"""Writes chosen_operators.json: the operators that PyTorch's graphs have for a call of a Python function or method. Run it with PyTorch's Python.

The calls are the samples of the operator table, as functions of `torch`, as methods, and as functions of torch.linalg, .special, .fft and _C._nn.
"""

import importlib
import json
import sys
import tomllib
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SPACES = ("linalg", "special", "fft")


def samples():
    """(name of the operator, arguments as text) of the table."""
    for path in sorted((FOLDER.parents[1] / "src/ops").glob("*.toml")):
        for row in tomllib.loads(path.read_text()).get("op", []):
            name = row["schema"].split("(")[0].split(".")[0]
            yield from ((name, sample) for sample in row.get("samples", []) if "::" not in name)


def functions(torch, name):
    """{place: function} where Python has the operator."""
    found = {"function": getattr(torch, name, None), "nn": getattr(torch._C._nn, name, None)}
    for space in SPACES:
        found[space] = getattr(getattr(torch, space), name[len(space) + 1 :], None) if name.startswith(space + "_") else None
    if hasattr(torch.Tensor, name):
        found["method"] = lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)
    return {place: function for place, function in found.items() if function is not None}


def arguments(torch, sample):
    """(args, kwargs) of a sample, with any values."""
    generator = torch.Generator().manual_seed(0)

    def real(*shape):
        return torch.rand(shape, generator=generator) + 0.1

    def whole(*shape):
        return torch.randint(0, 2, shape, generator=generator)

    def definite(*shape):
        a = real(*shape)
        return a @ a.mT + torch.eye(shape[-1])

    names = {
        "T": real, "P": real, "U": real, "SQ": real, "SPD": definite, "I": whole, "B": lambda *s: whole(*s).bool(),
        "C": lambda *s: torch.complex(real(*s), real(*s)), "torch": torch,
    }  # fmt: skip
    return eval(f"(lambda *args, **kwargs: (args, kwargs))({sample})", names)


def chosen(torch, function, args, kwargs):
    """The operators of a call as the program makes it, None where it does not run."""
    make_fx = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors):
        again = list(leaves)
        for i, tensor in zip(places, tensors):
            again[i] = tensor
        positional, named = torch.utils._pytree.tree_unflatten(again, spec)
        return function(*positional, **named)

    try:
        graph = make_fx(call, pre_dispatch=True)(*[leaves[i] for i in places]).graph
    except Exception:
        return None
    names = [str(n.target) for n in graph.nodes if n.op == "call_function"]
    return " ".join(n.removeprefix("aten.") for n in names if n.startswith("aten.") and "detach" not in n)


def calls(torch):
    """(text, function, args, kwargs) of every call that there is."""
    for name, sample in samples():
        try:
            args, kwargs = arguments(torch, sample)
        except Exception:
            continue  # values of a special kind
        for place, function in functions(torch, name).items():
            if place != "method" or args and isinstance(args[0], torch.Tensor):
                yield f"{place} {name}({sample})", function, args, kwargs


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    found = {text: chosen(torch, function, args, kwargs) for text, function, args, kwargs in calls(torch)}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items() if v)
    (FOLDER / "chosen_operators.json").write_text("{\n" + lines + "\n}\n")
    sys.exit(0)
