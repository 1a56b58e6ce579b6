"""The commands under limits, and with nowhere to write to."""

import subprocess
from pathlib import Path

import cresset
import pytest

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")


class Endless(cresset.nn.Module):
    def forward(self, n: int) -> int:
        while n >= 0:
            n = n + 1 - n % 2
        return n


class Greedy(cresset.nn.Module):
    def forward(self, n: int) -> int:
        kept = [n]
        while len(kept) > 0:
            kept.append(n)
        return kept[0]


class Modest(cresset.nn.Module):
    def forward(self, n: int) -> int:
        return n + 1


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    for cls in (Endless, Greedy, Modest):
        cresset.jit.script(cls()).save(str(folder / f"{cls.__name__.lower()}.pt"))
    return folder


def run(*arguments, **kwargs):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output="stdout" not in kwargs, text=True, timeout=60, **kwargs)


@pytest.mark.parametrize("name, option, said", [("endless", "--time=0.5", "limit of time"), ("greedy", "--memory=200", "limit of memory")])
def test_run_ends_at_its_limits(archives, name, option, said):
    done = run("run", archives / f"{name}.pt", "-i", 1, option)
    assert done.returncode == 1 and said in done.stderr, done.stderr


def test_run_within_its_limits(archives):
    done = run("run", archives / "modest.pt", "-i", 1, "--time=60", "--memory=500")
    assert (done.returncode, done.stdout) == (0, "0: 2\n"), done.stderr


@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["doctor"], ["--help"], ["--version"], ["explain", "relu"], ["ops", "--help"]])
def test_a_full_disk_is_an_error(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "No space left on device" in done.stderr, (done.returncode, done.stderr)


def test_pages_on_a_full_disk(archives):
    done = run("show", archives / "modest.pt", "--html", "/dev/full")
    assert done.returncode == 1 and "cannot be written" in done.stderr
