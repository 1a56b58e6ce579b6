"""The command line: what goes to Python, clear words where Python or the package is not there, wrong arguments."""

import shutil
import subprocess
import sys

import pytest


def test_without_python(conform):
    conform(CRESSET_PYTHON="/no/such/python")
    assert conform.status == 1
    assert conform.err == ("cresset: conform: Python was required; /no/such/python does not start: No such file or directory.\n"
                           "Next: install Python 3.11 or newer, or set CRESSET_PYTHON to one.\n")


def test_without_the_package(conform, tmp_path):
    empty = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", empty], check=True)
    conform(CRESSET_PYTHON=str(empty / "bin/python"), PYTHONPATH="")
    assert conform.status == 1
    assert conform.err == (f"cresset conform: the Python package cresset was required; {empty / 'bin/python'} does not have it.\n"
                           "Next: pip install the wheel of this version, or set CRESSET_PYTHON to a Python that has it.\n")


def test_it_finds_a_python_that_has_the_package(conform):
    """Neither beside the command nor first in PATH: the one of the build."""
    out = conform("--ops", "^relu$", "--dtypes", "float32", "--no-models", CRESSET_PYTHON="", VIRTUAL_ENV="", PATH="/usr/bin:/bin")
    assert conform.status == 0 and out.startswith("tin: 100.0 %"), conform.err


def test_unknown_device(conform):
    conform(device="nochip", load=[])
    assert conform.status == 2
    assert len(conform.err.splitlines()) <= 5
    assert conform.err.splitlines() == [
        "cresset conform: no backend that was found gives the device 'nochip'.",
        "Devices here: cpu, meta.",
        "Next: cresset conform --device nochip --load PATH_OF_BACKEND, or CRESSET_BACKEND_PATH=ITS_FOLDER",
    ]
    conform("--needed-by", "mlp", device="nochip", load=[])
    assert conform.err.startswith("cresset ops --needed-by mlp: no backend that was found gives the device 'nochip'.\n")


@pytest.mark.parametrize("arguments, text", [
    (["--dtypes", "float33"], "--dtypes: "), (["--checks", "sideways"], "--checks: forward, backward, view, in-place, out, sizes, layouts, values, arguments, random, file, stream are known; sideways was given"),
    (["--capabilities", "nowhere.toml"], "nowhere.toml"), (["--load", "nowhere.so"], "nowhere.so"),
])  # fmt: skip
def test_wrong_arguments(conform, arguments, text):
    conform(*arguments, device="cpu", load=[])
    assert conform.status == 2 and text in conform.err and "Traceback" not in conform.err


def test_options_before_the_subcommand(conform):
    from pathlib import Path

    command = Path(__file__).resolve().parents[3] / "build/dev/bin/cresset"
    out = conform("conform", "--load", conform.tin, "--ops", "^relu$", "--no-models", load=[], command=(str(command),))
    assert out.startswith("tin: 100.0 %")


def test_module_is_the_same_program(conform):
    one = conform("--ops", "^relu$", "--no-models")
    assert conform("--ops", "^relu$", "--no-models", command=(sys.executable, "-m", "cresset.conform")) == one
    assert shutil.which("cresset") is None or one
