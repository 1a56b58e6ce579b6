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
