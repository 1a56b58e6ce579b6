"""What the system refuses (memory, threads) is an error or less speed; the state afterwards is sound."""

import subprocess
import sys

PRELUDE = """
import os, resource
import cresset
def limit(kind, value):
    resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))
def mapped():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_idle_blocks_are_given_back_before_an_allocation_fails():
    out = run("""
blocks = [cresset.ones(16 << 20, dtype=cresset.uint8) for _ in range(16)]
limit(resource.RLIMIT_AS, mapped() + (64 << 20))
del blocks  # 256 MB, kept for reuse in blocks of 16
print(cresset.ones(200 << 20, dtype=cresset.uint8)[-1].item())
""")
    assert out == "1\n"


def test_statistics_after_a_failed_allocation():
    out = run("""
before = cresset._C._cpu_memory_stats()
for size in (2**40, 2**50):
    try:
        cresset.empty(size)
    except RuntimeError as error:
        print("tried to allocate" in str(error))
print(cresset._C._cpu_memory_stats() == before)
""")
    assert out.split() == ["True"] * 3


def test_operators_run_serially_where_no_thread_starts():
    out = run("""
cresset.set_num_threads(1)
x, y = cresset.ones(1 << 20), cresset.empty(1 << 20)
threads = len(os.listdir("/proc/self/task"))
limit(resource.RLIMIT_AS, mapped() + (6 << 20))  # a stack has 8 MB
cresset.set_num_threads(4)
print(cresset.add(x, x, out=y).sum().item())
print(len(os.listdir("/proc/self/task")) - threads)
""")
    assert out.split() == [str(float(2 << 20)), "0"]
