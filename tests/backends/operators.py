"""Every row of the operator table on a device: values, in-place and out forms, gradients, against the CPU.

Run by tests/extensions/test_backends.py with the device's name in CRESSET_TEST_DEVICE.
"""

import os
import sys
import tomllib
from pathlib import Path

import cresset
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
import op_samples
from cresset.testing import samples
from op_samples import Failure, array, flat

DEVICE = os.environ["CRESSET_TEST_DEVICE"]
ROWS = op_samples.rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
# Uninitialised memory has no values to compare.
SKIPPED = {"aten::empty_like", "aten::new_empty", "aten::new_empty_strided", "aten::_empty_affine_quantized"}
# Arguments that are required on the CPU, as in PyTorch: names of arguments by operator.
ON_HOST = {"_pack_padded_sequence": "lengths", "_pad_packed_sequence": "batch_sizes", "tensor_split.tensor_indices_or_sections": "tensor_indices_or_sections"}
ON_HOST |= {f"{name}.data": "batch_sizes" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}


def moved(row, call, move=lambda t: t.detach().to(DEVICE)):
    """The same call with its tensors on the device."""
    names = [a["name"] for a in row["arguments"]]
    stays = ON_HOST.get(row.id)
    args = [a if name == stays else samples._map(a, move) for name, a in zip(names, call.args)]
    return op_samples.Call(args, {k: samples._map(v, move) for k, v in call.kwargs.items()})


def same(what, have, want):
    if len(have) != len(want):
        raise Failure(f"{what}: {len(have)} tensors, {len(want)} wanted")
    for number, (h, w) in enumerate(zip(have, want)):
        if h.device.type != DEVICE and not what.startswith("packed"):
            raise Failure(f"{what} {number} is on {h.device}")
        if h.dtype != w.dtype or h.shape != w.shape:
            raise Failure(f"{what} {number}: {h.dtype} {list(h.shape)}, wanted {w.dtype} {list(w.shape)}")
        if not np.allclose(array(h.cpu()), array(w), rtol=1e-6, atol=1e-9, equal_nan=True):
            raise Failure(f"{what} {number}: values differ")


def run(row, test):
    if row["name"] in SKIPPED or row.random:
        return
    problems = []
    for index, call in row.calls():
        if not call.tensors():
            continue
        try:
            test(call)
        except Exception as error:
            problems.append(f"{row.id}({row['samples'][index]}): {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


@each_row
def test_values(row):
    def check(call):
        plain = call.map(lambda t: t.detach())
        want = flat(row.op()(*plain.args, **plain.kwargs))
        device = moved(row, call)
        same("packed" if "_padded_sequence" in row.id or "_packed_sequence" in row.id else "result", flat(row.op()(*device.args, **device.kwargs)), want)

    run(row, check)


# Rows that a device without a kernel composes of others: what the table calls `elsewhere`.
TABLES = [tomllib.loads(path.read_text()) for path in sorted((Path(__file__).resolve().parents[2] / "src/ops").glob("*.toml"))]
COMPOSED = {row["schema"].partition("(")[0]: row.get("out", "").partition("(")[0] for table in TABLES for row in table.get("op", []) if "elsewhere" in row}


@pytest.mark.parametrize("row", [row for row in ROWS if row.id in COMPOSED], ids=lambda row: row.id)
def test_composed_rows_stay_on_the_device(row):
    base = row.id.partition(".")[0]
    own = {f"aten::{row.id}", f"aten::{base}.{COMPOSED[row.id]}"}

    def check(call):
        device = moved(row, call)
        cresset._C._fallback_reset()
        row.op()(*device.args, **device.kwargs)
        brought = own.intersection(count[0] for count in cresset._C._fallback_counts())
        if brought:
            raise Failure(f"{brought} ran on the CPU")

    run(row, check)


@each_row
def test_gradients(row):
    if not row.differentiable:
        return

    def check(call):
        want_leaves = call.leaves()
        if not want_leaves:
            return
        outputs = [t for t in flat(row.op()(*call.args, **call.kwargs)) if t.requires_grad]
        if not outputs:
            return
        sum(t.abs().sum() for t in outputs).backward()
        leaves = {}

        def move(t):
            if id(t) not in leaves:
                leaves[id(t)] = t.detach().to(DEVICE).requires_grad_(t.requires_grad)
            return leaves[id(t)]

        device = moved(row, call, move)
        outputs = [t for t in flat(row.op()(*device.args, **device.kwargs)) if t.requires_grad]
        sum(t.abs().sum() for t in outputs).backward()
        for t in want_leaves:
            have = leaves[id(t)].grad
            if (have is None) != (t.grad is None):
                raise Failure("a gradient is missing")
            if have is not None:
                same("gradient", [have], [t.grad])

    run(row, check)


@each_row
def test_inplace(row):
    if row.inplace is None:
        return

    def check(call):
        plain = call.map(lambda t: t.detach().clone())
        try:
            row.op(row.inplace)(*plain.args, **plain.kwargs)
        except RuntimeError:
            return  # not possible for these sizes or types
        device = moved(row, call)
        row.op(row.inplace)(*device.args, **device.kwargs)
        same("self", flat(device.args[:1]), flat(plain.args[:1]))

    run(row, check)


@each_row
def test_out(row):
    if row.out is None:
        return

    def check(call):
        plain = call.map(lambda t: t.detach())
        want = flat(row.op()(*plain.args, **plain.kwargs))
        names = [a["name"] for a in row.out["arguments"] if a["kwarg_only"] and a["write"] and a["type"] == "Tensor"]
        if len(names) != len(want):
            return  # a list of tensors
        device = moved(row, call)
        outs = [cresset.empty(0, dtype=t.dtype, device=DEVICE) for t in want]
        taken = {a["name"] for a in row.out["arguments"]}  # no options of a result that is there
        options = {name: value for name, value in device.kwargs.items() if name in taken}
        row.op(row.out)(*device.args, **options, **dict(zip(names, outs)))
        same("out", outs, want)

    run(row, check)
