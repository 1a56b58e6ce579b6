"""What a TorchDispatchMode sees of the programs of tests/ir/traced_programs.py, forward and backward. Run with PyTorch, this writes what it sees there:

python tests/python/overrides/seen_operators.py    (with the oracle; writes seen_operators.json)
"""

import importlib.util
import json
import warnings
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

HERE = Path(__file__).parent


class Seen(TorchDispatchMode):
    """Keeps the names of operators."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func).removeprefix("aten.").removesuffix(".default"))
        return func(*args, **(kwargs or {}))


def tensors_in(value):
    """The tensors of nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_in(v)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def with_gradient(value):
    """A copy that requires grad, of what can."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.clone().requires_grad_()
    return value


def seen_operators():
    """{program: [operators forward, operators backward]}; an error's class for what cannot be run so."""
    spec = importlib.util.spec_from_file_location("traced_programs", HERE.parents[1] / "ir/traced_programs.py")
    programs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(programs)
    found = {}
    for name, (program, inputs) in programs.PROGRAMS.items():
        torch.manual_seed(0)
        leaves = [with_gradient(value) for value in inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with Seen() as forward:
                    results = [t for t in tensors_in(program(*leaves)) if t.requires_grad]
                with Seen() as backward:
                    if results:
                        sum((t.abs() if t.is_complex() else t).sum() for t in results).backward()
            except Exception as error:
                found[name] = [type(error).__name__, ""]
                continue
        found[name] = [" ".join(forward.names), " ".join(backward.names)]
    return found


if __name__ == "__main__":
    text = json.dumps({"torch": torch.__version__, **seen_operators()}, indent=0)
    Path(__file__).with_name("seen_operators.json").write_text(text + "\n")
