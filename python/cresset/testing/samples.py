"""Rows of the operator table and their samples as calls: which arguments, which tensors, which overload.

A sample is the text of an argument list, `T(3,4), [0], True`. The names in it make tensors whose values depend on the text alone, so a
sample is the same call on every device and in every process.
"""

import functools
import json
import os
import random
import zlib
from pathlib import Path

import cresset

# Arguments whose values the shape of the result depends on; they stay on the CPU for every device, as in PyTorch.
# "operator.argument" where the name alone says too little.
HOST_ARGUMENTS = {"batch_sizes", "tensor_indices_or_sections", "_pack_padded_sequence.lengths"}

__all__ = ["Call", "Maker", "Row", "cast", "flat", "operators", "row_of", "rows", "table_file"]


def table_file():
    """operators.json of this build: CRESSET_OPERATORS, else beside the headers of the build tree or of the installed package."""
    if "CRESSET_OPERATORS" in os.environ:
        return Path(os.environ["CRESSET_OPERATORS"])
    from cresset import _build_info

    for folder in map(Path, _build_info.include_dirs):
        for file in (folder.parent / "data/operators.json", folder / "cresset/ops/operators.json"):
            if file.exists():
                return file
    raise FileNotFoundError("operators.json was not found beside the headers of this build; set CRESSET_OPERATORS.")


def _count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


class Maker:
    """The names of sample expressions. Values depend on the expression alone, lie apart from each other and from kinks."""

    def __init__(self, seed):
        self.rng = random.Random(zlib.crc32(seed.encode()))

    def _tensor(self, values, shape, dtype, grad=True):
        return cresset.tensor(values, dtype=dtype).reshape(shape).requires_grad_(grad)

    def _spread(self, shape, scale, shift):
        """shift + scale * u for distinct u in (0, 1), at least 1/(4n) apart: an order that a small step does not change."""
        n = _count(shape)
        places = list(range(n))
        self.rng.shuffle(places)
        return [shift + scale * (place + 0.25 + self.rng.random() / 2) / n for place in places]

    def T(self, *shape):
        return self._tensor(self._spread(shape, 3, -1.499), shape, cresset.float64)

    def P(self, *shape):
        return self._tensor(self._spread(shape, 1.7, 0.3), shape, cresset.float64)

    def U(self, *shape):
        return self._tensor(self._spread(shape, 1.8, -0.899), shape, cresset.float64)

    def C(self, *shape):
        parts = zip(self._spread(shape, 3, -1.5), self._spread(shape, 3, -1.4))
        return self._tensor([complex(x, y) for x, y in parts], shape, cresset.complex128)

    def I(self, *shape, high=5):  # noqa: E743
        return self._tensor([self.rng.randrange(high) for _ in range(_count(shape))], shape, cresset.int64, False)

    def B(self, *shape):
        values = [self.rng.random() < 0.5 for _ in range(_count(shape))]
        if values:
            values[0] = True
        return self._tensor(values, shape, cresset.bool, False)

    def _square(self, shape):
        """Flat values of matrices far from singular, (…, n) for (…, n, n), and that shape; det > 0."""
        n = shape[-1]
        values = self._spread((*shape, n), 1.6, -0.8)
        for k in range(len(values)):
            row, column = k // n % n, k % n
            if row == column:
                values[k] += 2 * (row + 1)
        return values, (*shape, n)

    def SQ(self, *shape):
        return self._tensor(*self._square(shape), cresset.float64)

    def TRI(self, *shape):
        """Lower triangles of such matrices. No gradient: an operator that reads one triangle does not see the other."""
        values, shape = self._square(shape)
        n = shape[-1]
        return self._tensor([v if k // n % n >= k % n else 0.0 for k, v in enumerate(values)], shape, cresset.float64, False)

    def SPD(self, *shape):
        """Symmetric positive-definite matrices. No gradient: their elements cannot move one by one."""
        values, shape = self._square(shape)
        n = shape[-1]
        products = []
        for start in range(0, len(values), n * n):
            lines = [values[start + i * n : start + (i + 1) * n] for i in range(n)]
            products += [sum(x * y for x, y in zip(a, b)) for a in lines for b in lines]
        return self._tensor(products, shape, cresset.float64, False)

    def PIV(self, *shape_and_rows):
        """Row exchanges of an LU factorisation, int32, each at least its own place: (…, k) of matrices with the last argument's rows."""
        *shape, rows = shape_and_rows
        values = [self.rng.randrange(i, rows) + 1 for _ in range(_count(shape[:-1])) for i in range(shape[-1])]
        return self._tensor(values, shape, cresset.int32, False)

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


def cast(call, dtype):
    """The call with its floating tensors in another dtype, without gradients; complex ones stay complex for a floating dtype."""
    return call.map(lambda t: t.detach().to(dtype) if t.is_floating_point() or t.is_complex() and not dtype.is_floating_point else t.detach())


class Row:
    """One functional row with samples."""

    def __init__(self, data, forms):
        self.data = data
        self.id = data["name"].removeprefix("aten::") + ("." + data["overload"] if data["overload"] else "")
        self.out, self.inplace = forms.get(data["out"]), forms.get(data["inplace"])

    def __getitem__(self, key):
        return self.data[key]

    def __repr__(self):
        return f"Row({self.id})"

    def op(self, form=None):
        data = form or self.data
        namespace, name = data["name"].split("::")
        return getattr(getattr(getattr(cresset.ops, namespace), name), data["overload"] or "default")

    def call(self, index):
        text = self["samples"][index]
        args, kwargs = eval(f"_({text})", {"_": lambda *a, **k: (a, k)} | Maker(f"{self.id} {text}").names())
        # Leaves of this call, not of the expression that made them.
        return Call(args, kwargs).map(lambda t: t.detach().requires_grad_(t.requires_grad))

    @property
    def host_arguments(self):
        """Names of the arguments that stay on the CPU; a row that has some may also give results there."""
        names = [a["name"] for a in self["arguments"]]
        return {n for n in names if n in HOST_ARGUMENTS or f"{self.id}.{n}" in HOST_ARGUMENTS}

    def place(self, call, device, arrange=None):
        """The call with new tensors on a device. What requires grad is a leaf there; arguments for the CPU stay. arrange(t, device), when
        given, makes the others."""
        def move(name, value):
            if arrange is None or name in host:
                there = "cpu" if name in host else device
                return _map(value, lambda t: t.detach().clone().to(there).requires_grad_(t.requires_grad))
            return _map(value, lambda t: arrange(t.detach(), device).requires_grad_(t.requires_grad))

        names, host = [a["name"] for a in self["arguments"]], self.host_arguments
        return Call(tuple(move(n, v) for n, v in zip(names, call.args)), {n: move(n, v) for n, v in call.kwargs.items()})

    def calls(self):
        return [(index, self.call(index)) for index in range(len(self["samples"]))]

    @property
    def differentiable(self):
        return self["differentiable"] in ("formula", "composite") and self["nondiff"] is not True

    @property
    def random(self):
        return draws(self.data)


def draws(data):
    """Do all calls of an operator draw random numbers? What drops parts of its input does so only where it is asked to, and samples do not ask."""
    return "nondeterministic_seeded" in data["tags"] and not {"dropout", "dropout_p"} & {a["name"] for a in data["arguments"]}


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


@functools.cache
def _rows_by_id():
    return {row.id: row for row in rows()}


def row_of(name):
    """The row with that id: row_of("add.Tensor")."""
    return _rows_by_id()[name]


def flat(result):
    """The tensors of a result, lists opened."""
    if isinstance(result, cresset.Tensor):
        return [result]
    return [t for item in result for t in flat(item)] if isinstance(result, (list, tuple)) else []
