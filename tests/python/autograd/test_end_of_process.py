"""Graphs that are alive when the interpreter ends."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import cresset

class Holder:
    pass

def make():
    leaf = cresset.ones(2, requires_grad=True)
    leaf.note = [1]  # the leaf keeps its object, which only the graph holds
    holder = Holder()
    holder.result, holder.itself = leaf * 2, holder
    return holder

keep = [make() for _ in range(50)]
print("done", flush=True)
"""


@pytest.mark.parametrize("perturb", ["0", "165"])
def test_leaves_that_only_a_graph_holds(perturb):
    """Freed memory has another content with MALLOC_PERTURB_, so that reading it shows."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "MALLOC_PERTURB_": perturb}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
