"""Calls without elements take no time, however large the other sizes are: one clock of two seconds for each."""

import subprocess
import sys

import pytest

# Expressions over `c` (cresset), `t` (1e11 by 0) and `z` (0 by 1e11); the results have no elements, or few.
CALLS = """
t.sum()
z.sum()
t.sum(0)
t.prod(0)
t.mean(0)
t.norm()
t.std()
t.all()
t.any(0)
t.clone()
t.t().contiguous()
z.tolist()
repr(t)
t + t
t.exp_()
t.normal_()
t.cumsum(1)
t.cummax(1)[0]
t.logcumsumexp(1)
t.softmax(1)
t.sort(1)[0]
t.unique()
t.nonzero()
t.flip(0)
t.roll(1, 0)
t.tril()
t.triu(3)
t[c.tensor([1, 2])]
t.unfold(0, 2, 2).sum()
t.diagonal().sum()
t.expand(3, 10**11, 0).sum(0)
t.masked_fill(t.bool(), 1.0)
t.scatter(0, c.empty(0, 0, dtype=c.long), 1.0)
t.index_add(1, c.empty(0, dtype=c.long), t)
c.cat([t, t])
c.stack([t, t])
c.equal(t, t)
c.empty(10**9, 0) @ c.empty(0, 0)
c.bmm(c.empty(10**11, 0, 2), c.empty(10**11, 2, 0))
c.baddbmm(c.empty(10**11, 0, 0), c.empty(10**11, 0, 2), c.empty(10**11, 2, 0))
c.fft.fft(c.empty(10**11, 0, 4))
c.nn.functional.pad(t, (0, 0))
c.nn.functional.max_pool1d(c.empty(0, 10**6, 10**6), 2)
c.nn.functional.adaptive_avg_pool2d(c.ones(1, 1, 2, 3), (2**40, 0))
c.nn.functional.adaptive_avg_pool3d(c.ones(1, 1, 2, 2, 3), (2**31, 2**20, 0))
c.nn.functional.adaptive_max_pool2d(c.ones(1, 1, 2, 3), (2**40, 0))
c.nn.functional.adaptive_max_pool3d(c.ones(1, 1, 2, 2, 3), (0, 2**40, 2))
c.nn.functional.embedding(c.empty(0, dtype=c.long), t)
c.triu_indices(2**31 - 1, 0)
c.tril_indices(2**31 - 1, 0)
c.triu_indices(2**40, 1)
c.tril_indices(2**40, 2**40, -(2**40))
c.triu_indices(2**40, 2**40, 2**62)
""".strip().splitlines()

SCRIPT = """
import os, signal, sys
import cresset as c
for call in sys.stdin.read().splitlines():
    child = os.fork()
    if child == 0:
        t, z = c.empty(10**11, 0), c.empty(0, 10**11)
        signal.setitimer(signal.ITIMER_VIRTUAL, 2)
        eval(call)
        os._exit(0)
    print(call, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sep="\\t")
"""


@pytest.fixture(scope="module")
def statuses():
    done = subprocess.run([sys.executable, "-c", SCRIPT], input="\n".join(CALLS), capture_output=True, text=True, check=True)
    return dict(line.rsplit("\t", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("call", CALLS)
def test_no_elements_take_no_time(statuses, call):
    assert statuses[call] == "0"  # -26: the clock rang
