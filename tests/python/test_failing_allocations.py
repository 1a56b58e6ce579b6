"""Each C++ allocation of a scenario fails once: an error or a result, never the end of the process, and the same scenario works afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

# By name: what is made before, and a function that gives something to compare.
SCENARIOS = {
    "operators": "def scenario():\n    x = cresset.arange(24.0).reshape(4, 6)\n    return (x @ x.T + x.sum(1)).exp().sort().values.cumsum(0).sum().item()",
    "gradients": """
def scenario():
    x = cresset.arange(6.0).reshape(2, 3).requires_grad_()
    y = cresset.nn.functional.softmax(x * x, 1).log().sum()
    y.backward()
    return x.grad.sum().item()
""",
    "a Function": """
class F(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
def scenario():
    x = cresset.ones(3, requires_grad=True)
    F.apply(x).sum().backward()
    return x.grad.tolist()
""",
    "registrations": """
def scenario():
    lib = cresset.library.Library("failing", "DEF")
    try:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
        return cresset.ops.failing.f(cresset.ones(2)).tolist()
    finally:
        lib._destroy()
""",
    "a fallback": """
def scenario():
    lib = cresset.library.Library("_", "IMPL")
    try:
        lib.fallback(lambda op, *args, **kwargs: op(*args, **kwargs), "PrivateUse2")
        return 1
    finally:
        lib._destroy()
""",
    "scripts": """
def scenario():
    u = cresset.jit.CompilationUnit("def f(n: int) -> List[int]:\\n    l = [1]\\n    d = {'a': 1}\\n    for i in range(n):\\n        l.append(i * d['a'])\\n    return l\\ndef g(x: Tensor) -> Tensor:\\n    return torch.relu(x) + f(3)[1]")
    return (u.f(5), u.g(cresset.ones(2)).tolist())
""",
    "archives": """
import io
cresset.jit.CompilationUnit("def f(x: int) -> int:\\n    return x + 1")
m = cresset.jit.trace(cresset.nn.Linear(2, 2), (cresset.ones(1, 2),))
def scenario():
    b = io.BytesIO()
    cresset.jit.save(m, b)
    b.seek(0)
    return cresset.jit.load(b)(cresset.ones(1, 2)).tolist()
""",
    "transforms": "def scenario():\n    return cresset.func.vmap(cresset.func.grad(lambda t: (t * t).sum()))(cresset.ones(2, 3)).tolist()",
    "a profiler": "def scenario():\n    with cresset.profiler.profile(profile_memory=True) as p:\n        y = cresset.ones(3) + 1\n    return y.tolist()",
    "modes": """
from cresset.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
def scenario():
    with Mode():
        return (cresset.ones(3) + 1).tolist()
""",
    "linear algebra": "def scenario():\n    x = cresset.eye(4) * 3 + 1\n    return (cresset.linalg.solve(x, x).sum() + cresset.linalg.svd(x).S.sum() + cresset.fft.fft(x).real.sum() + cresset.einsum('ij,jk->i', x, x).sum()).round().item()",
    "a network": """
cresset.manual_seed(0)
net = cresset.nn.Sequential(cresset.nn.Conv2d(1, 2, 3), cresset.nn.BatchNorm2d(2), cresset.nn.ReLU(), cresset.nn.MaxPool2d(2), cresset.nn.Flatten(), cresset.nn.Linear(8, 2)).eval()
x = cresset.ones(2, 1, 6, 6)
def scenario():
    net.zero_grad()
    cresset.nn.functional.cross_entropy(net(x), cresset.tensor([0, 1])).backward()
    return [round(p.grad.abs().sum().item(), 4) for p in net.parameters()]
""",
    "a recurrent network": """
cresset.manual_seed(0)
lstm = cresset.nn.LSTM(2, 3, 2)
def scenario():
    y, (h, c) = lstm(cresset.ones(4, 1, 2))
    lstm.zero_grad()
    (y.sum() + h.sum() + c.sum()).backward()
    return round(sum(p.grad.sum().item() for p in lstm.parameters()), 3)
""",
    "an optimizer": """
def scenario():
    p = cresset.nn.Parameter(cresset.ones(3))
    optimizer = cresset.optim.Adam([p, cresset.nn.Parameter(cresset.ones(2))])
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    return [round(v, 4) for v in p.tolist()]
""",
    "indexing": """
def scenario():
    x = cresset.arange(24.0).reshape(2, 3, 4)
    x[:, cresset.tensor([0, 2])] = -1
    x[x > 20] = 0
    return (x[..., None, 1:3].sum() + x[1, [0, 1], ::2].sum() + x.index_select(1, cresset.tensor([1])).sum()).item()
""",
    "hooks": """
def scenario():
    seen = []
    x = cresset.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.sum().item()))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
    with cresset.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = (y * y).sum()
    z.backward()
    return seen
""",
    "higher derivatives": """
def scenario():
    f = lambda t: (t ** 3).sum()
    x = cresset.ones(2)
    return cresset.func.hessian(f)(x).tolist(), cresset.func.jvp(f, (x,), (x,))[1].item(), cresset.func.jacrev(lambda t: t * t)(x).tolist()
""",
    "a subclass": """
class Sub(cresset.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
def scenario():
    x = cresset.ones(2).as_subclass(Sub)
    return type(x + 1).__name__, (x * 2).sum().item()
""",
    "a custom operator": """
@cresset.library.custom_op("failing_custom::g", mutates_args=())
def g(x: cresset.Tensor) -> cresset.Tensor:
    return x * 2
g.register_autograd(lambda ctx, grad: grad * 2)
def scenario():
    x = cresset.ones(2, requires_grad=True)
    g(x).sum().backward()
    return x.grad.tolist()
""",
    "files": """
import io
def scenario():
    b = io.BytesIO()
    cresset.save({"a": cresset.ones(2), "b": [cresset.zeros(1, dtype=cresset.int64), "x"]}, b)
    b.seek(0)
    back = cresset.load(b)
    return back["a"].tolist(), back["b"][0].item(), back["b"][1]
""",
    "IR text": """
text = "graph(%x : Tensor, %n : int):\\n  %o : int = prim::Constant[value=1]()\\n  %y : Tensor = aten::add(%x, %x, %o)\\n  %z : Tensor = aten::relu(%y)\\n  return (%z)"
def scenario():
    graph = cresset._C.parse_ir(text)
    return str(graph)
""",
    "an exported program": """
program_file = "tests/conformance/files/pt2/mlp/model.pt2"
def scenario():
    return str(cresset.export._load.ir_module(cresset.export.load(program_file)).graph)
""",
    "a frozen module": """
m = cresset.jit.script(cresset.nn.Sequential(cresset.nn.Linear(2, 2), cresset.nn.ReLU()).eval())
for p in m.parameters():
    p.data.fill_(1)
def scenario():
    return cresset.jit.freeze(m)(cresset.ones(1, 2)).tolist()
""",
    "NumPy and DLPack": """
import numpy
def scenario():
    x = cresset.from_numpy(numpy.ones(3, dtype="float32"))
    return (x + cresset.from_dlpack(x)).numpy().sum().item()
""",
}  # fmt: skip

DRIVER = """
import ctypes, gc, os, sys
import cresset
program = ctypes.CDLL(None)
fail_at = program.allocations_fail_at
fail_at.argtypes = [ctypes.c_long]
seen = program.allocations_seen
cresset.set_num_threads(1)
{scenario}
for _ in range(3):
    wanted = scenario()
fail_at(-1)
assert scenario() == wanted
count = seen()
failed = aborted = 0
for k in sorted(set(range(1, count + 1, max(1, count // {most}))) | set(range(1, min(count, 20)))):
    child = os.fork()
    if child == 0:
        try:
            fail_at(k)
            try:
                result = scenario()
            except (MemoryError, RuntimeError):
                result = wanted
            fail_at(-1)
            gc.collect()
            os._exit(0 if result == wanted and scenario() == wanted else 1)
        except BaseException as e:
            print(k, type(e).__name__, e, flush=True)
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    if status:
        print("allocation", k, "of", count, "ends with", status, flush=True)
        aborted += os.WIFSIGNALED(status)
        failed += 1
print("bad:", failed, "aborts:", aborted, "of", count)
sys.exit(failed != 0)
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    library = tmp_path_factory.mktemp("preloaded") / "failing.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "failing_allocations.cpp")], check=True)
    return os.environ | {"LD_PRELOAD": str(library)}


def run(name, environment, most):
    code = DRIVER.replace("{scenario}", SCENARIOS[name]).replace("{most}", str(most))
    path = Path(environment["LD_PRELOAD"]).with_name("driver.py")
    path.write_text(code)
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", SCENARIOS)
def test_some(name, preloaded):
    run(name, preloaded, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_all(name, preloaded):
    run(name, preloaded, 100_000)
