"""cresset.as_torch: what a program that knows the package as `torch` sees printed."""

import subprocess
import sys

PROGRAM = """
from cresset import as_torch
import cresset
before = repr(cresset.float32)
as_torch.install()
import torch
assert before == "cresset.float32"
print(torch.float32, torch.strided, torch.channels_last, torch.Size([2, 3]), torch.ones(2, dtype=torch.int8))
print(torch.ops.aten.add.Tensor.__module__, torch.ops.aten.mul.__module__)
print(getattr(torch, str(torch.bfloat16).split(".")[1]) is torch.bfloat16, torch.Size([1]) == cresset.Size([1]))
"""


def test_names_print_as_the_program_knows_them():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "torch.float32 torch.strided torch.channels_last torch.Size([2, 3]) tensor([1, 1], dtype=torch.int8)",
        "torch._ops.aten torch._ops.aten",
        "True True",
    ], done.stderr


def test_operators_say_where_they_are():
    import cresset

    assert cresset.ops.aten.add.Tensor.__module__ == cresset.ops.aten.add.__module__ == "cresset._ops.aten"
    assert cresset._C._printed_name() == "cresset"
