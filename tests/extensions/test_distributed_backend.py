"""A backend for process groups as a C++ extension: PyTorch's tutorial compiles, registers itself and serves."""

import subprocess
import sys
from pathlib import Path

import pytest
from compiling import needs_pybind11

import cresset
from cresset.utils import cpp_extension

USES = """
import importlib.util, sys
from cresset import as_torch

as_torch.install()
import torch
import torch.distributed as dist

spec = importlib.util.spec_from_file_location("dummy_backend", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
store = dist.HashStore()
dist.init_process_group("cpu:gloo,cuda:dummy", rank=0, world_size=1, store=dist.HashStore())
assert dist.get_backend_config() == "cpu:gloo,cuda:dummy"
dist.destroy_process_group()
dist.init_process_group("dummy", rank=0, world_size=1, store=store)
x = torch.ones(6)
dist.all_reduce(x)
assert x.tolist() == [0.0] * 6
y, out = torch.ones(2), [torch.ones(2), torch.ones(2)]
work = dist.all_gather(out, y, async_op=True)
assert work.wait() and work.is_completed() and [t.tolist() for t in work.get_future().wait()[0]] == [[0.0, 0.0]] * 2
for call, words in ((lambda: dist.broadcast(x, 0), "does not support broadcast"), (dist.barrier, "not supported")):
    try:
        call()
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
dist.destroy_process_group()
print("good")
"""


@needs_pybind11
@pytest.mark.skipif(not cresset.distributed.is_available(), reason="this build has no communication between processes (libgloo-dev)")
def test_the_tutorials_backend(tmp_path):
    source = Path(__file__).parent / "sources/dummy_backend.cpp"
    command = [
        cpp_extension.get_cxx_compiler(), "-std=c++20", "-O0", "-fPIC", "-shared", "-DTORCH_EXTENSION_NAME=dummy_backend",
        *(f"-I{p}" for p in (*cpp_extension.include_paths(), cpp_extension.sysconfig.get_path("include"))), source, "-o", tmp_path / "dummy_backend.so",
        *(f"-L{p}" for p in cpp_extension.library_paths()), *(f"-Wl,-rpath,{p}" for p in cpp_extension.library_paths()), *cpp_extension.link_flags(),
    ]  # fmt: skip
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:3000]
    used = subprocess.run([sys.executable, "-c", USES, str(tmp_path / "dummy_backend.so")], capture_output=True, text=True)
    assert (used.returncode, used.stdout) == (0, "good\n"), used.stderr
