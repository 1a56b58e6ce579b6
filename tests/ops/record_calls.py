"""Writes recorded_calls.json: what PyTorch gives for each call in recorded_calls.txt. Run it with PyTorch's Python."""

import json
import math
import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def calls():
    """The calls of the list, one a line; "#" begins a heading."""
    return [line for line in (FOLDER / "recorded_calls.txt").read_text().splitlines() if line and not line.startswith("#")]


def plain(torch, value):
    """A result as JSON holds it: tensors with their types, numbers that are none as words."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.is_meta:
            return [str(value.dtype).split(".")[-1], list(value.shape)]
        listed = torch.view_as_real(value.resolve_conj()).tolist() if value.is_complex() else value.tolist()
        return [str(value.dtype).split(".")[-1], plain(torch, listed)]
    if isinstance(value, (list, tuple)):
        return [plain(torch, v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def outcome(torch, call):
    """The result of a call, or the class and the first line of its error."""

    def gradient(f, *values, order=1):
        """The derivatives of f's sum for leaves of these values, once or twice."""
        leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
        found = torch.autograd.grad(f(*leaves).sum(), leaves, create_graph=order > 1)
        return found if order == 1 else torch.autograd.grad(sum(g.sum() for g in found), leaves)

    names = {"torch": torch, "F": torch.nn.functional, "aten": torch.ops.aten, "nan": math.nan, "inf": math.inf, "gradient": gradient}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {"result": plain(torch, eval(call, names))}
        except Exception as error:
            return {"error": type(error).__name__, "words": str(error).split("\n")[0]}


if __name__ == "__main__":
    import torch

    found = {call: outcome(torch, call) for call in calls()}
    (FOLDER / "recorded_calls.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    sys.exit(0)
