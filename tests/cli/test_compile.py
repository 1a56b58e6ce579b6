"""cresset compile and cresset partition: modules with engines from the command line."""

import subprocess
from pathlib import Path

import cresset
import numpy
import pytest
from cresset import nn

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")


def cli(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compile")
    cresset.manual_seed(3)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()
    cresset.jit.script(module).save(str(folder / "in.pt"))
    return module, folder


def test_partition(archive):
    done = cli("partition", archive[1] / "in.pt", "--explain", "--teo", "aten::relu", "--mbs", "1")
    assert done.returncode == 0, done.stderr
    assert "segment 1: interpreter, 1 node" in done.stdout and "aten::relu: forced by operator" in done.stdout
    assert "aten::relu" not in cli("partition", archive[1] / "in.pt").stdout


def test_compile(archive):
    module, folder = archive
    done = cli("compile", folder / "in.pt", folder / "out.cre", "(2,3,8,8)@f32", "--require-full-compilation")
    assert done.returncode == 0, done.stderr
    assert "1 engine\nlargest difference from the interpreter: " in done.stdout
    x = cresset.randn(1, 3, 8, 8)
    assert cresset.allclose(cresset.jit.load(str(folder / "out.cre"))(x), module(x), atol=1e-6)
    numpy.save(folder / "x.npy", x.numpy())
    assert cli("run", folder / "out.cre", "-i", folder / "x.npy", "-o", folder / "y.npy").returncode == 0
    assert cresset.allclose(cresset.from_numpy(numpy.load(folder / "y.npy")), module(x), atol=1e-6)


@pytest.mark.parametrize("arguments, words", [
    (["--require-full-compilation", "--teo", "aten::relu"], "exclude each other"),
    (["--backend", "mine"], "no backend 'mine' builds engines; there are: cpu"),
    (["--teo", "relu"], "a name like aten::relu was required"),
    (["(1,,3)"], "(1,,3)"),
])  # fmt: skip
def test_refusals(archive, arguments, words):
    done = cli("compile", archive[1] / "in.pt", archive[1] / "none.cre", *arguments)
    assert done.returncode != 0 and words in done.stderr
    assert not (archive[1] / "none.cre").exists()
