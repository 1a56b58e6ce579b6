"""cresset compile and cresset partition: modules with engines from the command line."""

import json
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
    assert "\nengines               1\nlargest difference    " in done.stdout and "with engines" in done.stdout
    x = cresset.randn(1, 3, 8, 8)
    assert cresset.allclose(cresset.jit.load(str(folder / "out.cre"))(x), module(x), atol=1e-6)
    numpy.save(folder / "x.npy", x.numpy())
    assert cli("run", folder / "out.cre", "-i", folder / "x.npy", "-o", folder / "y.npy").returncode == 0
    assert cresset.allclose(cresset.from_numpy(numpy.load(folder / "y.npy")), module(x), atol=1e-6)


@pytest.mark.parametrize("arguments, words", [
    (["--require-full-compilation", "--teo", "aten::relu"], "exclude each other"),
    (["--backend", "mine"], "no backend 'mine' builds engines; there are: cpu"),
    (["--teo", "relu"], "a name like aten::relu was required"),
    # What is wrong with PyTorch's command of this kind: blanks and words are sizes, what follows the parenthesis is ignored, ranges are not looked at.
    (["(1,,3)"], "input specification '(1,,3)': a size was expected; column 4"),
    (["(a)"], "input specification '(a)': a size was expected"),
    (["(1,3)x"], "the end, @dtype or %format was expected; column 6"),
    (["{(1,3);(2,3);(4,3)}"], "'(' was expected; column 1"),
    (["[(1,3);(2,3);(4,3)"], "']' was expected"),
    (["[(4,3);(2,3);(1,3)]"], "min <= opt <= max was required; (4,3), (2,3) and (1,3) were given"),
    (["[(1,3);(2,3);(4,3,1)]"], "min, opt and max must have as many sizes"),
    (["(2,3,8,8)@f33"], "'f33' is no dtype"),
    (["(2,3,8,8)%channel_last"], "'channel_last' is no format; contiguous and channels_last are"),
    (["-p", "f33"], "--enable-precision: 'f33' is no dtype"),
    (["-p", "i8,int4"], "is no dtype"),
    (["--mbs", "-1"], "--mbs"),
    (["--custom-torch-ops", "none.so"], "none.so cannot be loaded"),
    (["--calibrate", "none.npy"], "none.npy"),
    (["--embed-engine"], "engine file: this is none"),
])  # fmt: skip
def test_refusals(archive, arguments, words):
    done = cli("compile", archive[1] / "in.pt", archive[1] / "none.cre", *arguments)
    assert done.returncode != 0 and words in done.stderr
    assert not (archive[1] / "none.cre").exists()


def test_min_block_size_is_its_value(archive):
    """Also without a forced operator, and not 0 or 1."""
    text = cli("partition", archive[1] / "in.pt", "--teo", "aten::relu", "--mbs", "2").stdout
    assert text.count("engine,") == 1 and cli("partition", archive[1] / "in.pt", "--teo", "aten::relu", "--mbs", "5").stdout.count("engine,") == 0


def test_format_and_dtype_in_any_order(archive):
    for spec in ("(2,3,8,8)@f32%NHWC", "(2,3,8,8)%contiguous@Float32", "[(1,3,8,8);(2,3,8,8);(4,3,8,8)]@f32%channels_last"):
        assert cli("compile", archive[1] / "in.pt", archive[1] / "spec.cre", spec).returncode == 0


def test_results_of_any_form_are_compared(tmp_path):
    class Nested(nn.Module):
        def forward(self, x):
            return {"a": [x.relu()], "b": [x.exp(), x + 1]}, (x * 2).sum()

    cresset.jit.script(Nested().eval()).save(str(tmp_path / "in.pt"))
    done = cli("compile", tmp_path / "in.pt", tmp_path / "out.cre", "(4)", "--mbs", "1")
    assert done.returncode == 0 and "largest difference    0\n" in done.stdout, done.stderr


def test_engine_files(archive):
    module, folder = archive
    done = cli("compile", folder / "in.pt", folder / "engine.bin", "(2,3,8,8)", "--save-engine", "-p", "fp32")
    assert done.returncode == 0 and "engine file           " in done.stdout, done.stderr
    assert cli("compile", "--embed-engine", folder / "engine.bin", folder / "embedded.cre").returncode == 0
    x = cresset.randn(2, 3, 8, 8)
    assert cresset.allclose(cresset.jit.load(str(folder / "embedded.cre"))(x), module(x), atol=1e-6)
    numpy.save(folder / "x.npy", x.numpy())
    for name in ("engine.bin", "embedded.cre"):
        assert cli("run", folder / name, "-i", folder / "x.npy", "-o", folder / "y.npy").returncode == 0
        assert cresset.allclose(cresset.from_numpy(numpy.load(folder / "y.npy")), module(x), atol=1e-6)


@pytest.mark.skipif(cresset.int8 not in cresset.engine.precisions(), reason="the processor has no products of int8")
def test_calibration(archive, tmp_path):
    module, folder = archive
    numpy.save(tmp_path / "x.npy", cresset.randn(9, 3, 8, 8).double().numpy())  # four calls of two rows, in float32
    command = ["compile", folder / "in.pt", tmp_path / "out.cre", "(2,3,8,8)", "-p", "i8"]
    done = cli(*command, "--calibrate", tmp_path / "x.npy", "--calibration-method", "max")
    assert done.returncode == 0, done.stderr
    assert "\naccuracy over 4 calls: largest difference " in done.stdout
    x = cresset.randn(2, 3, 8, 8)
    got, want = cresset.jit.load(str(tmp_path / "out.cre"))(x), module(x)
    assert not cresset.equal(got, want) and (got - want).norm() < 0.05 * want.norm()  # int8, and near
    for rows, words in ((1, "has 1 rows; a call takes 2"), (0, "has no rows; an example in each was required")):
        numpy.save(tmp_path / "few.npy", numpy.zeros((rows, 3, 8, 8), "float32"))
        assert words in cli(*command, "--calibrate", tmp_path / "few.npy").stderr
    numpy.save(tmp_path / "other.npy", numpy.zeros((2, 3, 8, 8), "float32"))
    assert "has rows for 2 calls" in cli(*command, "--calibrate", f"{tmp_path / 'x.npy'},{tmp_path / 'other.npy'}").stderr
    assert "max, percentile or entropy was required; got 'least'" in cli(*command, "--calibrate", tmp_path / "x.npy", "--calibration-method", "least").stderr
    assert "calibrat" in cli(*command).stderr  # int8 without data


def test_support(archive, tmp_path):
    done = cli("compile", archive[1] / "in.pt", "--check-method-support", "forward")
    assert done.returncode == 0 and done.stdout == "the engine has all of forward\n"

    class Loops(nn.Module):
        def forward(self, x, n: int):
            for _ in range(n):
                x = x + 1
            return x

    cresset.jit.script(Loops().eval()).save(str(tmp_path / "loops.pt"))
    done = cli("compile", tmp_path / "loops.pt", "--check-method-support", "forward")
    assert done.returncode == 1 and done.stdout.startswith("prim::Loop (")


def test_what_if_and_page(archive, tmp_path):
    done = cli("partition", archive[1] / "in.pt", "--mbs", "1", "--backend", "cpu", "--teo", "aten::relu", "--what-if", "aten::sort,aten::index", "--html", tmp_path / "page.html")
    assert done.returncode == 0 and "now: 2 engines with " in done.stdout and "with them: 2 engines with " in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert "<td>aten::relu</td><td>forced by operator</td>" in page and 'class="engine"' in page and "2 engines" in page


def test_programs_of_export(tmp_path):
    program = Path(__file__).resolve().parents[1] / "conformance/files/pt2/mlp/model.pt2"
    done = cli("compile", program, tmp_path / "out.cre", "(5,8)", "--mbs", "1", "--atol", "1e-6")
    assert done.returncode == 0 and "warning: results differ" not in done.stderr, done.stderr
    x = cresset.randn(5, 8)
    assert cresset.allclose(cresset.jit.load(str(tmp_path / "out.cre"))(x), cresset.export.load(str(program)).module()(x), atol=1e-6)


def test_bench(archive):
    done = cli("bench", archive[1] / "in.pt", "(2,3,8,8)", "-n", "5", "--against", archive[1] / "in.pt")
    assert done.returncode == 0 and "median ms" in done.stdout and "times as quick as" in done.stdout
    rows = json.loads(cli("--json", "bench", archive[1] / "in.pt", "(2,3,8,8)", "-n", "5").stdout)
    assert rows[0]["min_ms"] <= rows[0]["median_ms"] <= rows[0]["p90_ms"]
