"""The table of batching rules: how each operator that is not a composite runs under vmap."""

import cpp
from output import source

DIM_ARGS = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", "axis"}
# These rules do not know written arguments; in place they go by the functional form.
FUNCTIONAL_ONLY = {"full", "broadcast", "fold", "code", "loop", "dynamic"}


def emit(table, out):
    rows = []
    for op in table.ops():
        rule = rule_of(op)
        if rule:
            word, inner = rule
            rows.append(f"    {{{cpp.quote(op.schema.qualified)}, ops::BatchRule::{word.title()}, {inner}}},\n")
    rows.sort(key=lambda row: row.split('"')[1].encode())
    body = f"const BatchRow k_rows[] = {{\n{''.join(rows)}}};\n\nArrayRef<BatchRow> batch_table() {{ return k_rows; }}\n"
    out.add("ops", "src/ops/batch_table.cpp", source(None, ['"ops/shared/batch_table.h"'], body, "cresset::ops"))


def rule_of(op):
    """(word, inner dimensions) of one operator; None for those that need no rule: composites, and makers of tensors from numbers."""
    if op.implicit and (op.alias_of or not op.row.get("batch")):
        return None
    if op.form == "out":
        return "out", 0
    row = op.row
    if row.get("batch"):
        word, _, number = row.get("batch").partition(" ")
        if op.derived and op.form == "inplace" and word in FUNCTIONAL_ONLY:
            return "functional", 0
        return word, int(number) if number else spatial_dims(op.schema.name) + 1 if word == "fold" else 0
    return derived(op), 0


def derived(op):
    row, schema = op.row, op.schema
    if "dynamic_output_shape" in row.tags:
        return "dynamic"
    if "nondeterministic_seeded" in row.tags:
        return "random"
    if "pointwise" in row.tags:
        return "pointwise"
    if row.kind == "foreach":
        return "decompose"
    if any(a.name in DIM_ARGS for a in schema.args) and schema.tensor_args:
        return "dim"
    return "decompose" if row.kind == "explicit" and op.form == "functional" else "functional" if op.derived else "loop"


def spatial_dims(name):
    """2 for max_pool2d."""
    digits = [c for c, d in zip(name, name[1:]) if d == "d" and c.isdigit()]
    if len(digits) != 1:
        raise ValueError(name)
    return int(digits[0])
