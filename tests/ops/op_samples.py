"""Rows of the operator table and their samples as calls: which arguments, which tensors, which overload."""

import functools
import json
import os
import tomllib
import zlib
from pathlib import Path

import cresset
import numpy as np

HERE = Path(__file__).resolve().parent
# Differences with a reason: [[difference]] check, op, reason and optionally sample (its number, from 0).
KNOWN = tomllib.loads((HERE / "known_differences.toml").read_text())["difference"]


def table_file():
    """operators.json of the build that is tested: CRESSET_OPERATORS, else beside the generated headers."""
    if "CRESSET_OPERATORS" in os.environ:
        return Path(os.environ["CRESSET_OPERATORS"])
    from cresset import _build_info

    for folder in _build_info.include_dirs:
        file = Path(folder).parent / "data/operators.json"
        if file.exists():
            return file
    raise FileNotFoundError("operators.json was not found beside the generated headers; set CRESSET_OPERATORS.")


class Maker:
    """The names of sample expressions. Values depend on the expression alone, lie apart from each other and from kinks."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(zlib.crc32(seed.encode()))

    def _tensor(self, values, grad=True):
        return cresset.from_numpy(np.ascontiguousarray(values)).reshape(np.shape(values)).requires_grad_(grad)

    def _spread(self, shape):
        """Distinct values in (0, 1), at least 1/(4n) apart: an order that a small step does not change."""
        n = int(np.prod(shape, dtype=int))
        return ((self.rng.permutation(n) + 0.25 + self.rng.random(n) / 2) / max(n, 1)).reshape(shape)

    def T(self, *shape):
        return self._tensor(self._spread(shape) * 3 - 1.5 + 0.001)

    def P(self, *shape):
        return self._tensor(self._spread(shape) * 1.7 + 0.3)

    def U(self, *shape):
        return self._tensor(self._spread(shape) * 1.8 - 0.9 + 0.001)

    def C(self, *shape):
        return self._tensor(self._spread(shape) * 3 - 1.5 + 1j * (self._spread(shape) * 3 - 1.4))

    def I(self, *shape, high=5):  # noqa: E743
        return self._tensor(self.rng.integers(0, high, shape), False)

    def B(self, *shape):
        values = self.rng.random(shape) < 0.5
        if values.size:
            values.flat[0] = True
        return self._tensor(values, False)

    def SQ(self, *shape):
        """Square matrices far from singular, (…, n) for (…, n, n); det > 0."""
        shape = (*shape, shape[-1])
        return self._tensor(self._spread(shape) * 1.6 - 0.8 + 2 * np.diag(np.arange(1.0, shape[-1] + 1)))

    def TRI(self, *shape):
        """Lower triangles of such matrices. No gradient: an operator that reads one triangle does not see the other."""
        return self._tensor(np.tril(self.SQ(*shape).detach().numpy()), False)

    def SPD(self, *shape):
        """Symmetric positive-definite matrices. No gradient: their elements cannot move one by one."""
        x = self.SQ(*shape).detach().numpy()
        return self._tensor(x @ np.swapaxes(x, -1, -2), False)

    def PIV(self, *shape_and_rows):
        """Row exchanges of an LU factorisation, int32, each at least its own place: (…, k) of matrices with the last argument's rows."""
        *shape, rows = shape_and_rows
        values = [[self.rng.integers(i, rows) + 1 for i in range(shape[-1])] for _ in range(int(np.prod(shape[:-1], dtype=int)))]
        return self._tensor(np.array(values, dtype=np.int32).reshape(shape), False)

    def names(self):
        types = {"f32": cresset.float32, "f64": cresset.float64, "i64": cresset.int64, "bool_": cresset.bool, "c128": cresset.complex128,
                 "c64": cresset.complex64, "inf": float("inf"), "nan": float("nan"), "sigmoid": cresset.sigmoid}
        return types | {n: getattr(self, n) for n in [*"TPUCIB", "SQ", "TRI", "SPD", "PIV"]}


class Call:
    """Arguments of one call. `leaves` are the floating tensors in it that a gradient may go to."""

    def __init__(self, args, kwargs):
        self.args, self.kwargs = args, kwargs

    def map(self, f):
        """The same call with every tensor t replaced by f(t)."""
        return Call(_map(self.args, f), {k: _map(v, f) for k, v in self.kwargs.items()})

    def tensors(self):
        found = []
        self.map(lambda t: found.append(t) or t)
        return found

    def leaves(self):
        return [t for t in self.tensors() if t.requires_grad]


def _map(value, f):
    if isinstance(value, cresset.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, cresset.Size):
        return type(value)(_map(v, f) for v in value)
    return value


class Row:
    """One functional row with samples."""

    def __init__(self, data, forms):
        self.data = data
        self.id = data["name"].removeprefix("aten::") + ("." + data["overload"] if data["overload"] else "")
        self.out, self.inplace = forms.get(data["out"]), forms.get(data["inplace"])

    def __getitem__(self, key):
        return self.data[key]

    def op(self, form=None):
        data = form or self.data
        namespace, name = data["name"].split("::")
        return getattr(getattr(getattr(cresset.ops, namespace), name), data["overload"] or "default")

    def call(self, index):
        text = self["samples"][index]
        args, kwargs = eval(f"_({text})", {"_": lambda *a, **k: (a, k)} | Maker(f"{self.id} {text}").names())
        # Leaves of this call, not of the expression that made them.
        return Call(args, kwargs).map(lambda t: t.detach().requires_grad_(t.requires_grad))

    def calls(self):
        return [(index, self.call(index)) for index in range(len(self["samples"]))]

    @property
    def differentiable(self):
        return self["differentiable"] in ("formula", "composite") and self["nondiff"] is not True

    @property
    def random(self):
        return "nondeterministic_seeded" in self["tags"]


def qualified(data):
    return data["name"] + ("." + data["overload"] if data["overload"] else "")


@functools.cache
def operators():
    """The whole table: every operator of every row."""
    return json.loads(table_file().read_text())


@functools.cache
def rows():
    """All rows that have samples, in table order."""
    table = operators()
    forms = {qualified(r): r for r in table}
    return [Row(r, forms) for r in table if r["samples"]]


def flat(result):
    """The tensors of a result, one level of lists opened."""
    if isinstance(result, cresset.Tensor):
        return [result]
    return [t for item in result for t in flat(item)] if isinstance(result, (list, tuple)) else []


def array(t):
    """NumPy copy of a tensor of any type; bfloat16 as float32."""
    t = t.detach().resolve_conj().resolve_neg()
    return np.array(t.float().numpy() if t.dtype == cresset.bfloat16 else t.numpy())


class Failure(AssertionError):
    """A check that did not hold for one sample."""


def check_samples(check, row, test):
    """Runs test(call) for every sample. A known difference must differ, everything else must hold.

    The number of samples for which the test had something to check, which is when it did not return False.
    """
    problems, checked = [], 0
    for index, call in row.calls():
        known = [d for d in KNOWN if d["check"] == check and d["op"] == row.id and d.get("sample", index) == index]
        problem = None
        try:
            checked += test(call) is not False
        except Exception as error:
            problem = error
        if problem is not None and not known:
            problems.append(f"{row.id}({row['samples'][index]}): {type(problem).__name__}: {problem}")
        elif problem is None and known:
            problems.append(f"{row.id}({row['samples'][index]}) holds, but is listed as a known difference: {known[0]['reason']}")
    assert not problems, "\n".join(problems)
    return checked
