"""Kernels for autocast from the policies of the table: which operators compute in the lower precision, in float32, in the widest type."""

import cpp
from output import source

POLICIES = {"lower_precision_fp": "LowerPrecision", "fp32": "Float32", "promote": "Promote"}
DEVICES = ("CPU", "PrivateUse1")


def emit(table, out):
    body = ""
    for family in table.families:
        ops = [o for o in family.ops() if o.row.get("autocast") and o.form == "functional"]
        for device in DEVICES if ops else ():
            name = f"k_{family.name}_{device}"
            lines = [f"    {{{cpp.quote(o.schema.qualified)}, &kernel<Policy::{POLICIES[o.row.get('autocast')]}, k{device}>, {o.row.line}}},\n" for o in ops]
            body += f"const tables::KernelRow {name}[] = {{\n{''.join(lines)}}};\n"
            body += f"const tables::KernelTable {name}_table(DispatchKey::Autocast{device}, {cpp.quote(family.source)}, {name}, std::size({name}));\n\n"
    out.add("autograd", "src/autograd/autocast_table.cpp", source(None, ["<iterator>", '"autograd/autocast_kernels.h"'], body, "cresset::autocast"))
