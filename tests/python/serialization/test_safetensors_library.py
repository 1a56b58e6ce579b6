"""What the package safetensors makes of torch: its files and load's are the same, under the alias."""

import subprocess
import sys

import pytest

pytest.importorskip("safetensors")

PROGRAM = """
from cresset import as_torch
as_torch.install()
import sys
import safetensors.torch as st
import torch
from safetensors import safe_open

path = sys.argv[1] + "/x.safetensors"
x = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16), "i": torch.tensor([1, 2])}

def same(read):
    assert read.keys() == x.keys() and all(torch.equal(read[k], v) and read[k].dtype == v.dtype for k, v in x.items())

st.save_file(x, path)
same(torch.load(path))
same(st.load_file(path))
torch.save(x, path)
same(st.load_file(path))
same(st.load(open(path, "rb").read()))
with safe_open(path, "pt") as f:
    assert torch.equal(f.get_tensor("a"), x["a"]) and torch.equal(f.get_slice("a")[:, 1:], x["a"][:, 1:])
net, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
net.tied, other.tied = net.weight, other.weight
st.save_model(net, path)
assert st.load_model(other, path) == (set(), []) and torch.equal(other.tied, net.weight)
"""


def test_the_library_under_the_alias(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
