from answers import show
import torch
import tvm
from lowered import answers
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program, from_fx


def _flat(value):
    return [value.numpy()] if hasattr(value, "numpy") else [a for v in value for a in _flat(v)]


def _run(module, x):
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return _flat(machine["main"](tvm.runtime.tensor(x.numpy())))


answers(show, "program", lambda m, x: _run(from_exported_program(torch.export.export(m, (x,))), x))
answers(show, "core", lambda m, x: _run(from_exported_program(torch.export.export(m, (x,)).run_decompositions()), x))
answers(show, "symbolic_trace", lambda m, x: _run(from_fx(torch.fx.symbolic_trace(m), [(tuple(x.shape), str(x.dtype).split(".")[-1])]), x))
