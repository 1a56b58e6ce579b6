"""The kernels that graphics processors get, on whatever device there is."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# What has two kinds of kernels, or work groups of another shape.
TWOFOLD = "products or softmax or norms or reductions or not_a_number or convolutions or turned"


def run(kind, *words):
    return subprocess.run([sys.executable, *words], env=os.environ | {"CRESSET_OPENCL_KERNELS": kind}, capture_output=True, text=True)


def test_kernels_for_graphics_processors():
    done = run("gpu", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / "test_operators.py"), str(FOLDER / "test_device.py"), "-k", TWOFOLD)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


TILES = """
import cresset
x, wide = cresset.rand(2, 65, 130).to("opencl"), cresset.rand(2, 130, 17).to("opencl")
for dtype in (cresset.float32, cresset.int64, cresset.float16):
    a, b = (x * 4).to(dtype), (wide * 4).to(dtype)
    for left, right in ((a, b), (a.mT.contiguous().mT, b), (a[:, :16], b), (a[0], b[0])):
        have, want = (left @ right).cpu(), left.cpu() @ right.cpu()
        cresset.testing.assert_close(have, want, rtol=2e-3, atol=1e-3)
    bias = cresset.ones(17, dtype=dtype).to("opencl")
    cresset.testing.assert_close(cresset.addmm(bias, a[0], b[0], beta=2).cpu(), cresset.addmm(bias.cpu(), a[0].cpu(), b[0].cpu(), beta=2), rtol=2e-3, atol=1e-3)
    turned = a.permute(2, 0, 1).contiguous()
    assert cresset.equal(turned.cpu(), a.cpu().permute(2, 0, 1))
"""


def test_tiles_in_local_memory(tmp_path):
    done = run("gpu", "-c", "import os; os.environ['POCL_CACHE_DIR'] = " + repr(str(tmp_path)) + "\n" + TILES)
    assert done.returncode == 0, done.stderr
    groups = {path.parent.parent.name + " " + path.parent.name.partition("-goffs")[0] for path in tmp_path.rglob("*.so")}
    assert not groups or {"gemm 16-16-1", "run 32-8-1"} <= groups  # PoCL names what it compiled by the size of work groups


def test_unknown_kind():
    done = run("tpu", "-c", "import cresset; cresset.ones(1, device='opencl')")
    assert 'CRESSET_OPENCL_KERNELS: "cpu" or "gpu" was required; it is "tpu"' in done.stderr
