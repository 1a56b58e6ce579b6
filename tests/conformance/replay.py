"""Replays recorded calls and compares results, dtypes, shapes, gradients and errors.

usage: python tests/conformance/replay.py [--only REGEX] [-v] [--json FILE] [--write-known]
A verdict is about all calls of one operator with one dtype, or about all its errors; it passes when every call agrees.
Strides of results are not compared.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cresset
import known
import numpy as np
import records

# Relative and absolute tolerance by dtype; integers and bools agree exactly.
TOLERANCE = {
    "float16": (1e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
# How many times the tolerance results may differ: sums in another order, and longer chains of arithmetic.
FACTOR, LONG_FACTOR = 8, 100
LONG_ARITHMETIC = re.compile(
    r"linalg|cholesky|inverse|pinverse|solve|lu|det|matrix|cdist|conv|baddbmm|logcumsumexp|lgamma|gamma|zeta|erfinv|fft|"
    r"bessel|norm|var|std|cov|corrcoef|ormqr|triangular|orgqr|householder|polygamma|renorm|pdist|trapz|gradient"
)
# Results that are random, uninitialised or not unique: their dtype and shape count, values and gradients do not.
SHAPE_ONLY = re.compile(
    r"(empty|empty_like|empty_strided|empty_permuted|new_empty|new_empty_strided|rand|randn|randint|normal|bernoulli|multinomial|"
    r"uniform|cauchy|exponential|geometric|log_normal|svd|linalg\.svd|linalg\.eig|linalg\.eigh|linalg\.qr|qr|geqrf|linalg\.lstsq|"
    r"svd_lowrank|pca_lowrank|eig|resize_|resize_as_|nn\.functional\.(dropout|alpha_dropout|feature_alpha_dropout|"
    r"fractional_max_pool|rrelu|gumbel_softmax))"
)


@dataclass
class Outcome:
    """What a verdict is based on: the number of calls and one line for each call that differs."""

    calls: int = 0
    problems: list[str] = field(default_factory=list)
    gradient_problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.problems and not self.gradient_problems

    @property
    def first(self) -> str:
        return [*self.problems, *self.gradient_problems, ""][0]


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:90]}"


def opened(value: Any) -> list[Any]:
    """The leaves of a result or of arguments: lists, tuples and dictionaries opened, sizes not."""
    if isinstance(value, (tuple, list)) and not isinstance(value, cresset.Size):
        return [leaf for item in value for leaf in opened(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in opened(item)]
    return [value]


def compare_tensor(meta: dict[str, Any], got: Any, operator: str, slack: float, values: bool) -> str | None:
    if not isinstance(got, cresset.Tensor):
        return f"type: want tensor, got {type(got).__name__}"
    if str(got.dtype).split(".")[-1] != meta["dtype"]:
        return f"dtype: want {meta['dtype']}, got {got.dtype}"
    if list(got.shape) != meta["shape"]:
        return f"shape: want {meta['shape']}, got {list(got.shape)}"
    if not values:
        return None
    want, step = records.numbers(meta)
    got = got.detach().resolve_conj().resolve_neg()
    if meta["dtype"] == "bfloat16":
        got = got.float()
        want = (want.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    have = got.numpy().reshape(-1)[::step]
    if want.dtype.kind not in "fc":
        return None if np.array_equal(want, have) else "value: integer results differ"
    relative, absolute = TOLERANCE[meta["dtype"]]
    factor = LONG_FACTOR if LONG_ARITHMETIC.search(operator) else FACTOR
    if np.allclose(have, want, rtol=relative * factor, atol=absolute * factor + 8 * slack, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"value: max abs diff {np.nanmax(np.abs(have - want)):.3g}"


def compare(want: Any, got: Any, operator: str, slack: float = 0.0, values: bool = True) -> str | None:
    """The first difference between an encoded recorded result and a result, or None."""
    if isinstance(want, dict) and "T" in want:
        return compare_tensor(want["T"], got, operator, slack, values)
    if isinstance(want, dict) and "f" in want:
        number = float.fromhex(want["f"])
        same = isinstance(got, (int, float)) and (
            number == got or abs(number - got) <= 1e-6 * max(1, abs(number)) or (number != number and got != got)
        )
        return None if same else f"scalar: want {number}, got {got!r}"
    if want is None or isinstance(want, (bool, int, str)):
        return None if want == got or not values else f"scalar: want {want!r}, got {got!r}"
    return None


def cotangent(t: cresset.Tensor) -> cresset.Tensor:
    """The incoming gradient of the recording."""
    return cresset.cos(cresset.arange(t.numel(), dtype=cresset.float64) * 0.7 + 0.3).reshape(t.shape).to(t.dtype)


def compare_gradients(call: records.Call, operator: str, arguments: Any, result: Any) -> str | None:
    try:
        outputs = [t for t in opened(result) if isinstance(t, cresset.Tensor) and t.requires_grad]
        inputs = [t for t in opened(arguments) if isinstance(t, cresset.Tensor) and t.requires_grad and t.is_leaf]
        gradients = cresset.autograd.grad(outputs, inputs, [cotangent(t) for t in outputs], allow_unused=True)
        slack = 4 * max(call.from_double, default=0.0)
        for index, (want, got) in enumerate(zip(records.leaves(call.grads), gradients)):
            if (want is None) != (got is None):
                return f"grad{index} None-ness of gradient differs"
            # "linalg": a gradient is always a longer chain of arithmetic.
            if difference := compare(want, got, operator + " linalg", slack):
                return f"grad{index} {difference}"
    except Exception as error:
        return f"backward raised {described(error)}"
    return None


def replay_call(call: records.Call, operator: str) -> tuple[str | None, str | None]:
    """What differs in the results of a call, and what differs in its gradients."""
    try:
        function, args, kwargs = records.function(call.function), records.decode(call.args), records.decode(call.kwargs)
    except Exception as error:
        return f"setup {described(error)}", None
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return (None if call.raises else f"raised {described(error)}"), None
    if call.raises:
        return f"no error, want {call.raises}", None
    values = not SHAPE_ONLY.match(operator)
    want, got = records.leaves(call.out), opened(result)
    if len(want) != len(got):
        return f"{len(got)} results, want {len(want)}", None
    for index, (x, y) in enumerate(zip(want, got)):
        slack = call.from_double[index] if index < len(call.from_double) else 0.0
        if difference := compare(x, y, operator, slack, values):
            return f"out{index} {difference}", None
    if not call.has_gradients or not values:
        return None, None
    return None, compare_gradients(call, operator, [args, kwargs], result)


def replay_error(call: records.Call) -> str | None:
    """A call of the list of errors must raise the recorded class or one derived from it."""
    try:
        records.function(call.function)(*records.decode(call.args), **records.decode(call.kwargs))
    except Exception as error:
        return None if call.raises in [base.__name__ for base in type(error).__mro__] else f"{described(error)}, want {call.raises}"
    return f"no {call.raises}"


def replay(verdict: records.Verdict) -> Outcome:
    operator, dtype = verdict
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, call in enumerate(records.calls()[verdict]):
            outcome.calls += 1
            problem, gradient_problem = (replay_error(call), None) if dtype == "errors" else replay_call(call, operator)
            if problem:
                outcome.problems.append(f"#{index} {problem}")
            if gradient_problem:
                outcome.gradient_problems.append(f"#{index} {gradient_problem}")
    return outcome


FAMILIES = ("nn.functional", "linalg", "fft", "special", "masked", "signal", "torch.ops")


def family(operator: str) -> str:
    """The namespace of an operator; functions and methods without one are `tensor`."""
    return next((name for name in FAMILIES if operator.startswith(name + ".")), "tensor")


def print_table(outcomes: dict[records.Verdict, Outcome]) -> None:
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for verdict, outcome in outcomes.items():
        line = "quarantine" if verdict in records.quarantine() else family(verdict[0])
        total[line] += 1
        passed[line] += outcome.passed
    for line in [*sorted(total.keys() - {"quarantine"}), *({"quarantine"} & total.keys())]:
        note = "   (the recording PyTorch does not reproduce them; no test)" if line == "quarantine" else ""
        print(f"{line:14} {passed[line]:5}/{total[line]}{note}")
    print(f"{passed.total()} passed, {total.total() - passed.total()} failed   ({sum(o.calls for o in outcomes.values())} calls)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="operators whose name contains a match")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the first difference of each verdict that fails")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts")
    parser.add_argument("--write-known", action="store_true", help="rewrite known_failures.toml, keeping reasons written by hand")
    options = parser.parse_args()

    outcomes = {v: replay(v) for v in records.calls() if re.search(options.only, v[0])}
    if options.verbose:
        for (operator, dtype), outcome in outcomes.items():
            if not outcome.passed:
                print(f"{operator} [{dtype}] {len(outcome.problems)}+{len(outcome.gradient_problems)}/{outcome.calls}: {outcome.first}")
    if options.json:
        options.json.write_text(json.dumps(
            {"|".join(v): {"n": o.calls, "bad": o.problems, "grad_bad": o.gradient_problems} for v, o in outcomes.items()}))
    if options.write_known:
        known.write({v: None if o.passed else o.first for v, o in outcomes.items() if v not in records.quarantine()})
    print_table(outcomes)


if __name__ == "__main__":
    main()
