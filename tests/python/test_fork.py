"""Forked children of processes with busy threads, other interpreters, and threads that are there when the process ends."""

import subprocess
import sys

import pytest

PRELUDE = """
import os, signal, sys, threading, time
import cresset

stop = threading.Event()
def busy(work):
    def forever():
        while not stop.is_set():
            work()
    thread = threading.Thread(target=forever, daemon=True)
    thread.start()
    return thread

# Children that do not end in time are stuck.
def children_work(work, count=40):
    for _ in range(count):
        child = os.fork()
        if child == 0:
            try:
                work()
            except BaseException as e:
                print(type(e).__name__, e, file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        end = time.monotonic() + 20
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0, status
                break
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                sys.exit("a child is stuck")
            time.sleep(0.002)
"""

# By name: what the threads of the parent do, and what the children do.
WORK = {
    "registrations": (
        """
n = 0
def work():
    global n
    n += 1
    lib = cresset.library.Library(f"fork{n}", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
    getattr(cresset.ops, f"fork{n}").f(cresset.ones(1))
    lib._destroy()
""",
        """
lib = cresset.library.Library("forked", "DEF")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
assert cresset.ops.forked.f(cresset.ones(1)).item() == 2
""",
    ),
    "a profiler": (
        """
x = cresset.ones(100)
def work():
    with cresset.profiler.profile() as p:
        (x + x).sum()
    p.key_averages()
""",
        """
with cresset.profiler.profile() as p:
    assert (cresset.ones(3) + 1).sum().item() == 6
p.key_averages()
""",
    ),
    "random numbers": (
        "def work():\n    cresset.randn(200_000)\n",
        "cresset.manual_seed(1)\nassert cresset.randn(10).shape == (10,)\nassert cresset.randn(200_000).numel() == 200_000\n",
    ),
    "big operators": (
        "a = cresset.ones(400, 400)\ndef work():\n    (a @ a).exp().sum()\n",
        "assert (cresset.ones(300, 300) @ cresset.ones(300, 300)).sum().item() == 300**3\nassert cresset.ones(1 << 20).sum().item() == 1 << 20\n",
    ),
    "scripts": (
        """
def work():
    u = cresset.jit.CompilationUnit("def f(x: int) -> int:\\n    s = 0\\n    for i in range(x):\\n        s += i\\n    return s\\ndef g(x: Tensor) -> Tensor:\\n    a = torch.jit.fork(h, x)\\n    return torch.jit.wait(a)\\ndef h(x: Tensor) -> Tensor:\\n    return x + 1")
    u.f(10000)
    u.g(cresset.ones(2))
""",
        """
u = cresset.jit.CompilationUnit("def f(x: int) -> int:\\n    s = 0\\n    for i in range(x):\\n        s += i\\n    return s\\ndef h(x: Tensor) -> Tensor:\\n    return x + 1\\ndef g(x: Tensor) -> Tensor:\\n    a = torch.jit.fork(h, x)\\n    return torch.jit.wait(a)")
assert u.f(10) == 45 and u.g(cresset.ones(2)).tolist() == [2, 2]
""",
    ),
    "gradients and transforms": (
        """
def work():
    x = cresset.ones(50, requires_grad=True)
    (x * x).sum().backward()
    cresset.func.vmap(cresset.func.grad(lambda t: (t * t).sum()))(cresset.ones(3, 4))
    cresset.fft.fft(cresset.ones(1009))
""",
        """
x = cresset.ones(3, requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [2, 2, 2]
assert cresset.func.vmap(cresset.func.grad(lambda t: (t * t).sum()))(cresset.ones(3, 4)).sum().item() == 24
assert cresset.fft.fft(cresset.ones(1013)).real[0].item() == 1013
""",
    ),
}


def run(code, seconds=240):
    done = subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done.stdout


@pytest.mark.parametrize("name", WORK)
def test_children_of_a_process_with_busy_threads(name):
    parent, child = WORK[name]
    body = "".join(f"    {line}\n" for line in child.strip().splitlines())
    run(f"{parent}\ndef in_child():\n{body}\nwork()\nthreads = [busy(work)]\ntime.sleep(0.1)\nchildren_work(in_child)\nstop.set()\nthreads[0].join()\nwork()\n")


def test_other_interpreters_are_refused_and_break_nothing():
    pytest.importorskip("_xxsubinterpreters")
    out = run("""
import _xxsubinterpreters as interpreters
for _ in range(2):
    other = interpreters.create()
    try:
        interpreters.run_string(other, "import cresset")
    except Exception as e:
        print("main interpreter only" in str(e))
    interpreters.destroy(other)
print(cresset.ones(3).sum().item())
x = cresset.ones(2, requires_grad=True)
x.sum().backward()
print(x.grad.tolist(), repr(cresset.ones(1)))
""")
    assert out.split("\n")[:4] == ["True", "True", "3.0", "[1.0, 1.0] tensor([1.])"]


@pytest.mark.parametrize(
    "work",
    [
        "(cresset.ones(300, 300) @ cresset.ones(300, 300)).sum()",
        "x = cresset.ones(100, requires_grad=True); x.exp().sum().backward()",
        "cresset.jit.CompilationUnit('def f(x: int) -> int:\\n    for i in range(1000000):\\n        x = x + i\\n    return x').f(1)",
        "cresset.func.vmap(lambda t: t * 2)(cresset.ones(100))",
    ],
)
def test_daemon_threads_at_the_end_of_the_process(work):
    for _ in range(3):
        run(f"def work():\n    {work}\nwork()\nfor _ in range(3):\n    busy(work)\ntime.sleep(0.3)\n")
