"""Device backends as their authors have them: built against the installed package, found by name, tested in a process of their own."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def program(name):
    found = shutil.which(name)
    if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
        return found
    return f"/usr/bin/{name}"


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-6000:]}{result.stderr[-3000:]}"
    return result.stdout


def build(source, folder, prefix):
    run(program("cmake"), "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={sys.executable}")
    run(program("cmake"), "--build", folder)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder with the installed package (`prefix`) and the backends, made once for all workers of a test run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "backends"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            run(program("cmake"), "--install", ROOT / "build/dev", "--prefix", folder / "prefix")
            for name in ("minimal", "simulated"):
                build(ROOT / "backends" / name, folder / name, folder / "prefix")
            (folder / "golden").mkdir()
            for name, version, *flags in (("golden1", "v1"), ("golden2", "v2"), ("golden3", "v3"), ("golden4", "v4"), ("golden5", "v5"), ("golden6", "v6"), ("toonew", "v6", "-DTABLE_VERSION=99")):
                source = ROOT / "tests/golden/plugins"
                run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f'-DDEVICE_NAME="{name}"', f"-I{source / version}",
                    *flags, source / "golden.c", "-o", folder / "golden" / f"{name}.so")  # fmt: skip
            (folder / "done").touch()
    return folder


def environment(built, **more):
    path = ":".join(str(built / name) for name in ("minimal", "simulated", "golden"))
    return {**os.environ, "CRESSET_BACKEND_PATH": path, **more}


def pytest_in(built, files, **more):
    run(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-x",
        *files,
        env=environment(built, **more),
        cwd=ROOT,
    )


@pytest.mark.parametrize("name", ["minimal", "simulated"])
def test_own_tests(built, name):
    pytest_in(built, [ROOT / "backends" / name / "tests"])


@pytest.mark.parametrize("device", ["minimal", "simulated", "opaque"])
def test_every_operator(built, device):
    pytest_in(built, [ROOT / "tests/backends/operators.py"], CRESSET_TEST_DEVICE=device)


@pytest.mark.parametrize("device", ["minimal", "simulated", "opaque"])
def test_everything_else(built, device):
    pytest_in(built, [ROOT / "tests/backends/everything.py"], CRESSET_TEST_DEVICE=device)


@pytest.mark.parametrize("device", ["simulated", "opaque"])
def test_no_call_holds_the_lock_of_python(built, device):
    pytest_in(built, [ROOT / "tests/backends/locks.py"], CRESSET_TEST_DEVICE=device)


def test_opencl(built):
    """backends/opencl on PoCL: its operators against the CPU, and the digits."""
    build(ROOT / "backends/opencl", built / "opencl", built / "prefix")
    pytest_in(
        built, [ROOT / "backends/opencl/tests"], CRESSET_BACKEND_PATH=str(built / "opencl"), CRESSET_REQUIRE_OPENCL="1"
    )


def test_golden_plugins(built):
    pytest_in(built, [ROOT / "tests/backends/golden.py"])


def test_the_current_header_is_frozen_as_its_version():
    current = (ROOT / "include/cresset/core/backend_table.h").read_text()
    version = re.search(r"#define CRESSET_BACKEND_TABLE_VERSION (\d+)", current).group(1)
    frozen = (ROOT / f"tests/golden/plugins/v{version}/backend_table.h").read_text()
    assert frozen.split("\n", 1)[1] == current, (
        "plug-ins may be built with it: append under a new version instead of changing this one"
    )


def test_nobody_waits(built):
    pytest_in(built, [ROOT / "tests/backends/waiting.py"])


def test_devices_together_and_errors(built):
    pytest_in(built, [ROOT / "tests/backends/together.py", ROOT / "tests/backends/errors.py"])


def test_a_new_backend_passes_its_tests_at_once(built, tmp_path):
    command = built / "prefix/bin/cresset"
    run(command, "new-backend", "mychip", "--folder", tmp_path / "mychip")
    build(tmp_path / "mychip", tmp_path / "build", built / "prefix")
    env = {**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path / "build")}
    run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "mychip/tests", env=env, cwd=tmp_path
    )
    assert "works" in run(command, "doctor", "mychip", env=env)


EXAMPLES = """
import cresset
x = cresset.tensor([-1.0, 0.0, 2.0], device="mychip", requires_grad=True)
x.abs().sum().backward()
assert x.grad.tolist() == [-1.0, 1.0, 1.0]                                # autograd
assert cresset.ops.mychip.scale(x.detach(), 3.0).tolist() == [-3.0, 0.0, 6.0]  # operator
with cresset.autocast("mychip"):
    assert (cresset.ones(2, 2, device="mychip") @ cresset.ones(2, 2, device="mychip")).dtype == cresset.bfloat16
assert cresset.Stream("mychip").stream_id != 0
marks = [cresset.Event("mychip", enable_timing=True) for _ in range(2)]   # events
marks[0].record()
cresset.full((5,), 1.5, device="mychip")
marks[1].record()
assert 0 <= marks[0].elapsed_time(marks[1]) < 60000
assert cresset.ones(3).pin_memory().is_pinned()                         # memory
assert cresset.full((3, 2), 1.5, device="mychip").tolist() == [[1.5, 1.5]] * 3
cresset.accelerator.reset_fallback_counts()
cresset.manual_seed(3); a = cresset.empty(4001, device="mychip").uniform_(2, 4)
cresset.manual_seed(3); b = cresset.empty(4001, device="mychip").uniform_(2, 4)
assert cresset.accelerator.fallback_counts() == []
a, b = a.cpu(), b.cpu()
assert cresset.equal(a, b) and a.min() >= 2 and a.max() < 4 and abs(a.mean().item() - 3) < 0.05
"""


def test_a_new_backend_with_all_examples(built, tmp_path):
    command = built / "prefix/bin/cresset"
    run(command, "new-backend", "mychip", "--folder", tmp_path / "mychip", "--with", "streams,events,memory,autocast,rng", "--with", "operator,autograd")
    build(tmp_path / "mychip", tmp_path / "build", built / "prefix")
    env = {**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path / "build")}
    run(sys.executable, "-c", EXAMPLES, env=env, cwd=tmp_path)
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "mychip/tests", env=env, cwd=tmp_path)
    refused = subprocess.run([command, "new-backend", "other", "--with", "colours"], capture_output=True, text=True, cwd=tmp_path)
    assert refused.returncode != 0 and "examples are streams, events, memory, autocast, rng, operator and autograd; 'colours' was given" in refused.stderr


def test_a_backend_in_plain_c(built, tmp_path):
    """examples/backend_c: one header of the library, nothing to link with."""
    build(ROOT / "examples/backend_c", tmp_path, built / "prefix")
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "examples/backend_c/test_chalk.py",
        env={**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path)}, cwd=tmp_path)  # fmt: skip
    symbols = run("nm", "-D", "--undefined-only", tmp_path / "chalk.so")
    assert "cresset" not in symbols and "_Z" not in symbols


# ---- what goes wrong in a backend is said, never run on the CPU in silence

FOUR_METHODS = """
  int device_count() { return 1; }
  void* allocate(int, std::size_t n) { return std::malloc(n); }
  void deallocate(int, void* p, std::size_t) { std::free(p); }
  void copy(const cresset_copy& c) { std::memcpy(c.target, c.source, c.nbytes); }
"""


def backend_source(name, methods, blocks):
    return f"""#include <cstdlib>
#include <cstring>
#include <cresset/backend.h>
using cresset::Tensor;
struct Faulty {{
  static constexpr const char* kName = "{name}";
{methods}
}};
CRESSET_BACKEND(Faulty);
{blocks}
"""


def compiler(built, source, *flags):
    command = ["g++", "-std=c++20", "-O0", f"-I{built / 'prefix/include'}", "-x", "c++", "-", *map(str, flags)]
    return subprocess.run(command, input=source, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (FOUR_METHODS + "void synchronize() {}", "the method 'synchronize' cannot be called as required: void synchronize(int device)"),
        (FOUR_METHODS + "void set_devcie(int) {}", "the method 'set_devcie' is never called; the name in the table is 'set_device'"),
        (FOUR_METHODS + "cresset_stream stream_create(int, int) { return 1; }", "'stream_create' needs the method 'stream_query' as well"),
        (FOUR_METHODS.replace("copy(", "copy_bytes("), "the method 'copy' is required: void copy(const cresset_copy& c)"),
        (FOUR_METHODS.replace("int, std::size_t n)", "std::size_t n)"), "the method 'allocate' cannot be called as required"),
    ],
    ids=["signature", "name", "together", "missing", "required"],
)
def test_methods_that_would_be_left_out_do_not_compile(built, methods, message):
    result = compiler(built, backend_source("faulty", methods, ""), "-fsyntax-only")
    assert result.returncode != 0 and message in result.stderr


FAULTY_KERNELS = {
    "signature": (
        'Tensor neg(const Tensor& self, const Tensor&) { return self; }\nCRESSET_BACKEND_IMPL(Faulty, aten, m) { m.impl("neg", &neg); }',
        ["aten::neg(Tensor self) -> Tensor", "(Tensor _0, Tensor _1) -> Tensor", "<stdin>:"],
    ),
    "name": (
        'Tensor neg(const Tensor& self) { return self; }\nCRESSET_BACKEND_IMPL(Faulty, aten, m) { m.impl("negg", &neg); }',
        ['impl("aten::negg"): there is no such operator', "aten::neg", "<stdin>:"],
    ),
}
USE_IT = """
import sys, cresset
words = sys.argv[2].split("|")
def refused(use):
    try:
        use()
    except RuntimeError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise SystemExit("the device worked")
refused(lambda: cresset.device(sys.argv[1]))
refused(lambda: cresset.ones(3, device=sys.argv[1]))  # nor is it used when somebody goes on
refused(lambda: cresset.ones(3).to(sys.argv[1]))
assert cresset.accelerator.report(sys.argv[1])["problem"]
"""


@pytest.mark.parametrize("fault", FAULTY_KERNELS)
def test_a_kernel_that_does_not_register_stops_the_device(built, tmp_path, fault):
    blocks, words = FAULTY_KERNELS[fault]
    name = f"faulty_{fault}"
    flags = ["-fPIC", "-shared", "-o", tmp_path / f"{name}.so", f"-L{built / 'prefix/lib'}", "-lcresset"]
    result = compiler(built, backend_source(name, FOUR_METHODS, blocks), *flags)
    assert result.returncode == 0, result.stderr
    env = {**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path)}
    run(sys.executable, "-c", USE_IT, name, "|".join(words), env=env, cwd=ROOT)
    doctor = subprocess.run([built / "prefix/bin/cresset", "doctor", name], env=env, capture_output=True, text=True)
    assert doctor.returncode != 0 and words[0] in doctor.stdout


CONTRACT = """
bool contract_relu(cresset::KernelCall& call) {
  if (call.result().scalar_type() != cresset::kFloat) return false;
  const Tensor x = call.operand(0);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float v = x.const_data_ptr<float>()[i];
    call.result().mutable_data_ptr<float>()[i] = v < 0 ? 0 : v;
  }
  return true;
}
bool contract_add(cresset::KernelCall& call) {
  if (call.result().scalar_type() != cresset::kFloat || call.common_type({0, 1}) != cresset::kFloat) return false;
  const Tensor a = call.operand(0), b = call.operand(1);
  const float alpha = static_cast<float>(call.scalar(2).toDouble());
  for (int64_t i = 0; i < a.numel(); ++i)
    call.result().mutable_data_ptr<float>()[i] = a.const_data_ptr<float>()[i] + alpha * b.const_data_ptr<float>()[i];
  return true;
}
std::tuple<Tensor, Tensor> contract_sort(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  return cresset::call_cpu_fallback<std::tuple<Tensor, Tensor>>("aten::sort.stable", self, stable, dim, descending);
}
CRESSET_BACKEND_IMPL(Faulty, aten, m) {
  cresset::register_kernel(m, "relu", "relu.out", &contract_relu);
  cresset::register_kernel(m, "add.Tensor", "add.out", &contract_add);
  m.impl("sort.stable", &contract_sort);
}
"""
USE_CONTRACT = """
import cresset
x = cresset.arange(12.0).reshape(3, 4) - 5
d = x.to("contract")
def same(have, want):
    assert have.device.type == "contract" and have.dtype == want.dtype and cresset.equal(have.cpu(), want), (have, want)
with cresset.accelerator.set_fallback_mode("forbid"):
    same(d.relu(), x.relu())
    same(d.t().relu(), x.t().relu())
    same(d[1:, ::2].relu(), x[1:, ::2].relu())
    same(d.clone().relu_(), x.relu())
    same(d + d[0], x + x[0])
    same(d.add(2, alpha=3), x.add(2, alpha=3))
    same(d + cresset.tensor(2.5), x + 2.5)                                   # a number of the CPU
    same(cresset.relu(d, out=cresset.empty(0, device="contract")), x.relu())  # grows
    out = cresset.zeros(4, 3, device="contract").t()
    same(cresset.add(d, d, out=out), x + x)                                  # strided
    assert out.stride() == (1, 3)
    y = d.clone()
    same(cresset.add(y, y[0], out=y), x + x[0])                              # one of the inputs, read more than once
same(cresset.add(d, d, out=cresset.empty(3, 4, dtype=cresset.float64, device="contract")), (x + x).double())
same(d.long() + d.long(), x.long() + x.long())                               # not its case
values, places = d.sort(1, descending=True)
want = x.sort(1, descending=True)
same(values, want[0]), same(places, want[1])
for refused in (lambda t: t + t[:, :3], lambda t: cresset.relu(t, out=cresset.empty(3, 4, dtype=cresset.int64, device=t.device))):
    texts = []
    for t in (x, d):
        try:
            refused(t)
        except RuntimeError as error:
            texts.append(str(error).splitlines()[0])
    assert len(texts) == 2, texts
"""


def test_kernels_that_only_compute(built, tmp_path):
    """cresset/kernel.h keeps the contract of operators around a kernel; the card has nothing to say."""
    flags = ["-fPIC", "-shared", "-o", tmp_path / "contract.so", f"-L{built / 'prefix/lib'}", "-lcresset"]
    source = backend_source("contract", FOUR_METHODS, CONTRACT).replace("backend.h>", "backend.h>\n#include <cresset/kernel.h>\n#include <cresset/ops/cpu_fallback.h>")
    result = compiler(built, source, *flags)
    assert result.returncode == 0, result.stderr
    env = {**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path)}
    run(sys.executable, "-c", USE_CONTRACT, env=env, cwd=ROOT)
    card = run(sys.executable, "-m", "cresset.conform", "--device", "contract", "--ops", "^(relu|add.Tensor)$", "--no-models", env=env, cwd=ROOT)
    assert card.startswith("contract: 100.0 %"), card


def test_minimal_is_small():
    files = [f for f in (ROOT / "backends/minimal").rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    lines = {f.name: len(f.read_text().splitlines()) for f in files}
    assert sum(lines.values()) - lines["examples.h"] <= 200  # what a device is made of
    assert lines["examples.h"] <= 120  # off until somebody asks for one


def test_pip_install(built, tmp_path):
    """The package built by pip finds Cresset, and its device is found by its entry point alone."""
    run(sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--target", tmp_path / "site",
        ROOT / "backends/minimal", env={**os.environ, "CMAKE_PREFIX_PATH": str(built / "prefix")})  # fmt: skip
    env = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}:{ROOT / 'python'}"}
    env.pop("CRESSET_BACKEND_PATH", None)
    out = run(
        sys.executable,
        "-c",
        "import cresset; print(cresset.ones(2, device='minimal') + 1); print(cresset.minimal.device_count())",
        env=env,
        cwd=tmp_path,
    )
    assert out == "tensor([2., 2.], device='minimal:0')\n2\n"
    told = run(built / "prefix/bin/cresset", "doctor", "minimal", env={**env, "CRESSET_PYTHON": sys.executable})
    assert re.search(r"^state +works$", told, re.M) and str(tmp_path / "site") in told, "the command asks Python for its entry points"


def test_layout_example(built, tmp_path):
    source = ROOT / "examples/layout_blocked_q8"
    build(source, tmp_path, built / "prefix")
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_q8.py", cwd=source,
        env={**os.environ, "Q8_LIBRARY": str(tmp_path / "libblocked_q8.so")})  # fmt: skip
