"""The comparison behind tools/oracle.py. Runs where both PyTorch and Cresset can be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import cresset
import replay
import torch
from side_by_side import Unsupported, copied, difference, mapped, opened, other_strides, same_class, to_cresset
from torch.overrides import TorchFunctionMode, resolve_name
from torch.testing._internal.common_methods_invocations import op_db


def full_name(op) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def names() -> list[str]:
    return [full_name(op) for op in op_db]


# The calls of a sample: the operator itself where it has a public name, else the public functions that it calls.


@dataclass
class Case:
    """One call of a named function, and copies of its arguments for PyTorch."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def case(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Case:
    # A leaf that requires grad cannot be changed in place.
    track = not (name.endswith("_") and not name.endswith("__"))
    copies = mapped([tuple(args), dict(kwargs)], lambda v: copied(v, track) if isinstance(v, torch.Tensor) else v)
    return Case(name, function, *copies)


def public_name(op) -> str | None:
    """The path below torch under which the operator's function is found, or None."""
    if isinstance(op.op, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"ops.{op.op}"
    for path in (op.name, f"Tensor.{op.name}"):
        found: Any = torch
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None and found is op.op:
            return path
    return None


class Recorder(TorchFunctionMode):
    """Keeps the calls of public functions, with the arguments as they were before."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = resolve_name(function)
        if name is None:
            name = f"torch.{getattr(function, '__name__', '')}"
        prefix, _, path = name.partition(".")
        path = f"ops.{name}" if prefix == "aten" else path.removeprefix("functional.")
        self.cases.append(case(path, function, args, kwargs or {}))
        return function(*args, **(kwargs or {}))


# Reading a property and copying prepare a call; they count where nothing else is called.
PREPARATION = ("__get__", ".clone", ".dim", ".is_complex", "_set_grad_enabled")


def cases(op, sample) -> list[Case]:
    args = (sample.input, *sample.args)
    name = public_name(op)
    if name is not None:
        if name.startswith("Tensor.") and not isinstance(sample.input, torch.Tensor):
            raise Unsupported("a method of something else")
        return [case(name, op.op, args, sample.kwargs)]
    with Recorder() as recorder:
        try:
            op.op(*args, **sample.kwargs)
        except Unsupported:
            raise
        except Exception:
            if not recorder.cases:
                raise Unsupported("the call fails before a public function is reached") from None
    return [c for c in recorder.cases if not c.name.endswith(PREPARATION)] or recorder.cases


def double_error(c: Case, results: list[Any]) -> float:
    """How far PyTorch's single precision results lie from those in double precision."""
    wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}

    def widen(v: Any) -> Any:
        if isinstance(v, torch.Tensor):
            return v.detach().to(wide.get(v.dtype, v.dtype))
        return wide.get(v, v) if isinstance(v, torch.dtype) else v

    try:
        args, kwargs = mapped([c.args, c.kwargs], widen)
        exact = opened(c.function(*args, **kwargs))
        pairs = [(a.detach(), b.detach()) for a, b in zip(results, exact) if isinstance(a, torch.Tensor) and a.is_floating_point() | a.is_complex()]
        errors = [(a - b).abs().nan_to_num(0.0, 0.0, 0.0).max().item() for a, b in pairs if a.numel()]
        return max(errors, default=0.0)
    except Exception:
        return 0.0


def gradients(package: Any, arguments: Any, result: Any) -> list[Any]:
    """Gradients of the leaves for the cotangents of the recorded calls."""
    outputs = [t for t in opened(result) if isinstance(t, package.Tensor) and t.requires_grad]
    inputs = [t for t in opened(arguments) if isinstance(t, package.Tensor) and t.requires_grad and t.is_leaf]
    weights = [package.cos(package.arange(t.numel(), dtype=package.float64) * 0.7 + 0.3).reshape(t.shape).to(t.dtype) for t in outputs]
    return list(package.autograd.grad(outputs, inputs, weights, allow_unused=True)) if outputs and inputs else []


@dataclass
class Verdict:
    calls: int = 0
    problems: list[str] = field(default_factory=list)
    strides: list[str] = field(default_factory=list)
    missing: bool = False

    def as_dict(self) -> dict[str, Any]:
        status = "passed" if not self.problems else "missing" if self.missing else "failed"
        return {"status": status, "calls": self.calls, "differ": len(self.problems), "problems": self.problems[:20], "strides": self.strides[:20]}


def ours(path: str) -> Callable[..., Any]:
    found: Any = cresset
    for part in path.split("."):
        found = getattr(found, part)
    return found


def shown(c: Case) -> str:
    """The call in short, for the report."""
    def leaf(v: Any) -> Any:
        return f"{str(v.dtype).split('.')[-1]}{list(v.shape)}" if isinstance(v, torch.Tensor) else v

    args = [str(mapped(a, leaf)) for a in c.args] + [f"{k}={mapped(v, leaf)}" for k, v in c.kwargs.items()]
    return f"{c.name}({', '.join(args)})".replace("'", "")[:160]


def check(c: Case, operator: str, verdict: Verdict) -> None:
    """Runs one case in both packages and notes what differs."""
    args, kwargs = mapped([c.args, c.kwargs], to_cresset)
    verdict.calls += 1

    def note(problem: str) -> None:
        verdict.problems.append(f"{problem}   in {shown(c)}")

    try:
        function = ours(c.name)
    except AttributeError:
        verdict.missing = True
        return note(f"no {c.name}")
    before = mapped([c.args, c.kwargs], lambda v: copied(v, False) if isinstance(v, torch.Tensor) else v)
    try:
        want, raised = c.function(*c.args, **c.kwargs), None
    except Exception as error:
        want, raised = None, error
    try:
        got = function(*args, **kwargs)
    except Exception as error:
        if raised is None:
            note(f"raised {replay.described(error)}")
        elif not same_class(raised, error):
            note(f"raised {replay.described(error)}, want {replay.described(raised)}")
        return
    if raised is not None:
        return note(f"no error, want {replay.described(raised)}")

    values = not replay.SHAPE_ONLY.match(operator)
    e, g = opened(want), opened(got)
    if len(e) != len(g):
        return note(f"{len(g)} results, want {len(e)}")
    untouched = Case(c.name, c.function, *before)
    for index, (x, y) in enumerate(zip(e, g)):
        if problem := difference(x, y, operator, values, lambda: double_error(untouched, e)):
            return note(f"out{index} {problem}")
        if other_strides(x, y):
            verdict.strides.append(f"out{index} want {x.stride()}, got {tuple(y.stride())} of {tuple(x.shape)}   in {shown(c)}")
    if not values:
        return
    try:
        e = gradients(torch, [c.args, c.kwargs], want)
    except Exception:
        return
    try:
        g = gradients(cresset, [args, kwargs], got)
    except Exception as error:
        return note(f"backward raised {replay.described(error)}")
    if len(e) != len(g):
        return note(f"{len(g)} gradients, want {len(e)}")
    for index, (x, y) in enumerate(zip(e, g)):
        if (x is None) != (y is None):
            return note(f"grad{index} want {'no gradient' if x is None else 'a gradient'}")
        # "linalg": a gradient is always a longer chain of arithmetic.
        if x is not None and (problem := difference(x, y, operator + " linalg", True, lambda: 4 * double_error(untouched, opened(want)))):
            return note(f"grad{index} {problem}")


def samples(op, dtype: torch.dtype, limit: int) -> Iterator[Any]:
    track = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    return islice(op.sample_inputs("cpu", dtype, requires_grad=track), limit or None)


def verdicts(number: int, dtypes: list[str], limit: int) -> dict[str, dict]:
    """All verdicts of one operator: {"name|dtype": {status, calls, differ, problems, strides}}."""
    op = op_db[number]
    found: dict[str, Verdict] = {}

    def check_sample(key: str, sample: Any) -> None:
        verdict = found.setdefault(key, Verdict())
        try:
            for c in cases(op, sample):
                check(c, full_name(op), verdict)
        except Unsupported:
            pass

    for name in dtypes:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        try:
            for sample in samples(op, dtype, limit):
                check_sample(f"{full_name(op)}|{name}", sample)
        except AssertionError:
            pass  # this PyTorch cannot make samples, for want of a GPU
    if op.error_inputs_func is not None:
        for error in error_inputs(op):
            check_sample(f"{full_name(op)}|errors", error.sample_input)
    return {key: verdict.as_dict() for key, verdict in found.items() if verdict.calls}


def error_inputs(op) -> list[Any]:
    try:
        return list(op.error_inputs("cpu"))
    except Exception:
        return []
