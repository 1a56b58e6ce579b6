"""What many tests share: totals of data-driven tests, printed as tables after the run (also with workers: they travel in the reports), a device, a browser."""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PROPERTY = "count"


@pytest.fixture
def count(record_property):
    """count(table, line, **numbers) adds the numbers to the columns of a line of a table."""

    def add(table, line, **numbers):
        record_property(PROPERTY, [table, line, numbers])

    return add


def collect(reports):
    """{table: {line: {column: sum}}} of the reports of finished tests."""
    tables = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for report in reports:
        if getattr(report, "when", None) != "call":
            continue
        for name, value in report.user_properties:
            if name == PROPERTY:
                table, line, numbers = value
                for column, number in numbers.items():
                    tables[table][line][column] += number
    return tables


def pytest_terminal_summary(terminalreporter):
    reports = [report for group in terminalreporter.stats.values() for report in group]
    for table, lines in sorted(collect(reports).items()):
        terminalreporter.write_sep("-", table)
        width = max(map(len, lines))
        for line in sorted(lines, key=lambda name: (name == "total", name)):
            numbers = "   ".join(f"{number:6} {column}" for column, number in lines[line].items())
            terminalreporter.write_line(f"{line:{width}}  {numbers}")


@pytest.fixture(scope="session")
def run_as_torch():
    """run_as_torch(file, function) calls a function of a file that imports `torch`, which is Cresset meanwhile."""

    def run(file, function):
        names = ("", ".nn", ".nn.functional", ".utils", ".utils._python_dispatch")
        here = {f"torch{name}": importlib.import_module(f"cresset{name}") for name in names}
        before = {name: sys.modules.get(name) for name in here}
        sys.modules.update(here)
        try:
            spec = importlib.util.spec_from_file_location(file.stem, file)
            programs = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(programs)
            return getattr(programs, function)()
        finally:
            for name, module in before.items():
                sys.modules.pop(name) if module is None else sys.modules.update({name: module})

    return run


def _built(name, *sources):
    """A library of a device. Only other processes load it: a device stays for good."""
    folder = ROOT / "build/dev/test-backends"
    sources, library, core = [ROOT / s for s in sources], folder / f"lib{name}.so", ROOT / "build/dev/lib/libcresset.so"
    if not library.exists() or library.stat().st_mtime < max(p.stat().st_mtime for p in (*sources, core)):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".so") as made:
            subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}/build/dev/gen/include", *map(str, sources), "-o", made.name,
                            f"-L{core.parent}", f"-Wl,-rpath,{core.parent}", "-lcresset"], check=True)
            shutil.copy(made.name, f"{made.name}.done")  # another worker may be at it as well: a file appears whole
            os.replace(f"{made.name}.done", library)
    return library


@pytest.fixture(scope="session")
def tin():
    """The library of examples/minimal_backend, the device `tin`."""
    return _built("tin", "examples/minimal_backend/tin.cpp")


@pytest.fixture(scope="session")
def minimal():
    """The library of backends/minimal."""
    return _built("minimal", "backends/minimal/minimal.cpp")


@pytest.fixture(scope="session")
def simulated():
    """The library of backends/simulated."""
    return _built("simulated", *(f"backends/simulated/{name}.cpp" for name in ("backend", "faults", "kernels", "memory", "queue", "shared_mark")))


@pytest.fixture
def open_page(tmp_path):
    """open_page(file, fragment="") opens a page in headless Chromium and gives the document as it is after its scripts ran."""
    program = next((p for p in map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome")) if p), None)
    if not program:
        assert "CRESSET_SETUP_TESTS" not in os.environ, "make test installs Chromium (tools/setup), and there is none"
        pytest.skip("no Chromium; apt-get install chromium")
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # a sanitizer is for the tests, not for the browser

    def run(file, fragment=""):
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000"]
        done = subprocess.run([*command, "--dump-dom", file.as_uri() + fragment], capture_output=True, text=True, timeout=60, env=environment)
        return done.stdout

    return run
