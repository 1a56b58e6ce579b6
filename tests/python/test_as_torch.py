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


NAMES = """
import pickle, pickletools
import cresset.nn
from cresset import as_torch
as_torch.install()
import torch
import torch.optim.lr_scheduler, torch.utils.data
print(torch.nn.Linear, torch.Tensor, torch.nn.Parameter, torch.optim.AdamW, torch.utils.data.Dataset, torch.optim.lr_scheduler.StepLR)
assert torch.__name__ == "torch" and torch.fft.fft and not hasattr(torch, "nothing")
print(type(torch.float32), torch.Size, torch.device, torch.FloatStorage, torch._utils._rebuild_tensor_v2.__module__)
data = pickle.dumps([torch.ones(2), torch.nn.Linear(1, 1), torch.float32, torch.Size([1]), torch.device("cpu"), torch.Generator()], 2)
print(sorted({arg.split(" ")[0] for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL" and "torch" in arg}), b"cresset" in data)
assert pickle.loads(data)[0].tolist() == [1, 1]
scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.GELU()))
assert scripted(torch.ones(1)).shape == (1,)
import sys
assert all(sys.modules[k.__module__] for k in (torch.nn.Linear, torch.optim.lr_scheduler.StepLR, torch.utils.data.Dataset))
"""


def test_classes_and_pickles_say_torch():
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "<class 'torch.nn.modules.linear.Linear'> <class 'torch.Tensor'> <class 'torch.nn.parameter.Parameter'> <class 'torch.optim.adamw.AdamW'> "
        "<class 'torch.utils.data.dataset.Dataset'> <class 'torch.optim.lr_scheduler.StepLR'>",
        "<class 'torch.dtype'> <class 'torch.Size'> <class 'torch.device'> <class 'torch.FloatStorage'> torch._utils",
        "['torch', 'torch._utils', 'torch.nn.modules.linear', 'torch.storage'] False",
    ], done.stderr


FINDER = """
import sys
from importlib.abc import MetaPathFinder
from cresset import as_torch
as_torch.install()

class Finder(MetaPathFinder):  # the interpreter always gives three arguments, so none has to have a default
    def find_spec(self, fullname, path, target):
        return None

sys.meta_path.insert(0, Finder())
import torch.package
from torch.nn.utils import stateless
print(torch.package.PackageExporter.__module__, callable(stateless.functional_call))
"""


def test_finders_of_the_program_need_no_defaults():
    done = subprocess.run([sys.executable, "-c", FINDER], capture_output=True, text=True)
    assert done.stdout.split() == ["torch.package.package_exporter", "True"], done.stderr


REWRITTEN = """
from cresset import as_torch
as_torch.install()
import torch
from torch.fx.experimental.rewriter import RewritingTracer

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(2)

    def forward(self, x):
        assert x.dim() == 4, "images"
        return self.norm(x)

print([str(n.target) for n in RewritingTracer().trace(Block()).nodes if n.op == "call_module"])
torch._dynamo.reset()
layer = torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)), fullgraph=True)
print(layer(torch.ones(2, 3)).shape)
"""


def test_layers_of_the_package_are_its_own(tmp_path):
    (tmp_path / "program.py").write_text(REWRITTEN)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["['norm']", "torch.Size([2, 3])"], done.stderr


PLACES = """
from cresset import as_torch
import cresset
early = cresset.min(cresset.ones(1, 2), 1)
as_torch.install()
import pickle, pickletools, torch
named = lambda obj: [arg for op, arg, _ in pickletools.genops(pickle.dumps(obj, 2)) if op.name == "GLOBAL"]
for obj in (torch.nn.functional.gelu, torch.nn.functional.relu, torch.as_tensor, torch.linalg.eigh, torch.relu, torch.einsum, type(early), type(torch.max(torch.ones(1, 2), 1))):
    print(*named(obj), pickle.loads(pickle.dumps(obj)) is obj)
print(repr(early).split("(")[0])
"""


def test_functions_and_results_say_torch():
    done = subprocess.run([sys.executable, "-c", PLACES], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "torch._C._nn gelu True",
        "torch.nn.functional relu True",
        "torch as_tensor True",
        "torch._C._linalg linalg_eigh True",
        "torch relu True",
        "torch einsum True",
        "torch.return_types min True",
        "torch.return_types max True",
        "torch.return_types.min",
    ], done.stderr
