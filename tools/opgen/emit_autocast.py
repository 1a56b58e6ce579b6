"""The autocast policies of the table: which operators compute in the lower precision, which in float32, which in the widest type."""

import cpp
from output import source

POLICIES = {"lower_precision_fp": "LowerPrecision", "fp32": "Float32", "promote": "Promote"}


def emit(table, out):
    lines = []
    for op in table.ops():
        policy = op.row.get("autocast")
        if policy and op.form == "functional":
            lines.append(f"    {{{cpp.quote(op.schema.qualified)}, Policy::{POLICIES[policy]}}},\n")
    body = f"const PolicyRow policy_rows[] = {{\n{''.join(lines)}}};\nconst std::size_t policy_row_count = std::size(policy_rows);\n"
    out.add("autograd", "src/autograd/autocast_table.cpp", source(None, ["<iterator>", '"autograd/autocast_kernels.h"'], body, "cresset::autocast"))
