"""What programs ask before they talk to other processes."""

import json

import pytest

import cresset as torch


def test_a_build_without_gloo_says_what_to_install(monkeypatch):
    import importlib
    import importlib.util

    import cresset.distributed as dist

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "cresset._C_distributed" else find(name, *rest))
    spec = find("cresset.distributed")
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    words = r"this build has no communication between processes: install libgloo-dev \(tools/setup does\) and pybind11, then build again"
    assert torch.distributed is dist and not without.is_available() and not without.is_initialized()
    with pytest.raises(AttributeError, match=f"^distributed.all_reduce: {words}. Ask distributed.is_available"):
        without.all_reduce(torch.ones(1))
    with pytest.raises(RuntimeError, match=f"^ProcessGroup: {words}"):
        without.ProcessGroup()


def test_import_loads_none_of_it():
    import subprocess
    import sys

    code = "import sys, cresset; print([m for m in sys.modules if m.startswith('cresset') and 'distributed' in m])"
    # The names of parts of PyTorch's extension module, which load when they are asked.
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "['cresset._C._distributed_c10d', 'cresset._C._distributed_rpc']\n"


def test_what_programs_import_before_they_ask():
    import cresset.distributed.autograd as dist_autograd
    import cresset.distributed.rpc as rpc
    from cresset.distributed.device_mesh import DeviceMesh
    from cresset.distributed.tensor import DTensor

    assert not rpc.is_available() and not dist_autograd.is_available()
    assert not isinstance(torch.ones(1), DTensor) and not isinstance(None, (DeviceMesh, torch.distributed.ProcessGroup))
    # torchrl asks this of each of its collectors.
    assert not isinstance(None, torch._C._distributed_rpc.PyRRef)
    with pytest.raises(RuntimeError, match="PyRRef: calls in other processes are not part of this build"):
        torch._C._distributed_rpc.PyRRef(1)
    with pytest.raises(RuntimeError, match="not part of Cresset"):
        dist_autograd.context().__enter__()


def test_a_failing_process_writes_down_why(tmp_path, monkeypatch):
    from cresset.distributed.elastic.multiprocessing.errors import record

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "deep/error.json"))

    @record
    def main(x):
        return 1 / x

    assert main(2) == 0.5 and not (tmp_path / "deep").exists()
    with pytest.raises(ZeroDivisionError):
        main(0)
    assert json.loads((tmp_path / "deep/error.json").read_text())["message"]["message"] == "ZeroDivisionError: division by zero"


def test_what_needs_a_group_says_that_there_is_none():
    from cresset.distributed import nn
    from cresset.distributed.nn import functional
    from cresset.distributed.optim import ZeroRedundancyOptimizer

    words = "Default process group has not been initialized, please make sure to call init_process_group."
    weight = torch.ones(1, requires_grad=True)
    for call in (lambda: nn.all_reduce(weight), lambda: functional.all_gather(weight), lambda: ZeroRedundancyOptimizer([weight], torch.optim.SGD, lr=0.1)):
        with pytest.raises(ValueError, match=words):
            call()
    assert not isinstance(torch.optim.SGD([weight], lr=0.1), ZeroRedundancyOptimizer)
