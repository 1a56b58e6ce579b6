"""Policies of autocast from the table: which operators compute in the lower precision, in float32, in the widest type. The CPU gets kernels."""

import cpp
from output import source

POLICIES = {"lower_precision_fp": "LowerPrecision", "fp32": "Float32", "promote": "Promote"}


def emit(table, out):
    body, rows = "", ""
    for family in table.families:
        ops = [
            (cpp.quote(o.schema.qualified), POLICIES[o.row.get("autocast")], o.row.line)
            for o in family.ops()
            if o.row.get("autocast") and o.form == "functional"
        ]
        if not ops:
            continue
        rows += "".join(f"    {{{name}, Policy::{policy}}},\n" for name, policy, _ in ops)
        lines = "".join(f"    {{{name}, reinterpret_cast<const void*>(&cpu_kernel<Policy::{policy}>), {line}, tables::Entry::Maker}},\n" for name, policy, line in ops)
        body += f"const tables::KernelRow k_{family.name}[] = {{\n{lines}}};\n"
        body += f"const tables::KernelTable k_{family.name}_table(DispatchKey::AutocastCPU, {cpp.quote(family.source)}, k_{family.name}, std::size(k_{family.name}));\n\n"
    body += (
        f"const PolicyRow kPolicies[] = {{\n{rows}}};\nstd::span<const PolicyRow> policies() {{ return kPolicies; }}\n"
    )
    out.add(
        "autograd",
        "src/autograd/autocast_table.cpp",
        source(None, ["<iterator>", '"autograd/autocast_kernels.h"'], body, "cresset::autocast"),
    )
