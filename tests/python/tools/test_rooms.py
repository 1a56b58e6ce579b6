"""tools/run_tests --room: which tests belong to a folder of the tree."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def listed(*rooms):
    """{"C++": words of the command, "Python": …} that --list prints."""
    options = [word for room in rooms for word in ("--room", room)]
    command = [sys.executable, str(ROOT / "tools/run_tests"), "--list", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line.partition(": ")[0]: shlex.split(line.partition(": ")[2]) for line in done.stdout.splitlines()}


def label(commands):
    return commands["C++"][commands["C++"].index("-L") + 1]


def places(commands):
    return [word for word in commands["Python"] if word.startswith("tests/")]


@pytest.fixture(scope="module")
def run_tests(tool):
    return tool("run_tests")


def test_everything_without_a_room():
    commands = listed()
    assert "-L" not in commands["C++"] and places(commands) == []


def test_a_layer_has_its_label_its_folder_and_files_of_its_name():
    commands = listed("autograd")
    assert label(commands) == "^(autograd)$"
    expected = {"tests/python/autograd", "tests/device/test_autograd.py", "tests/ops/test_derivatives.py"}
    assert expected <= set(places(commands))
    assert "tests/ir" not in places(commands)


def test_several_rooms():
    commands = listed("ir, cli", "backends/cpu")
    assert label(commands) == "^(cpu|ir)$"
    assert {"tests/ir", "tests/cli", "tests/ops"} <= set(places(commands))
    assert "tests/ir/test_archive_cli.py" not in places(commands)  # it would run twice


def test_rooms_without_tests_in_cpp_do_not_run_ctest():
    commands = listed("cli", "conformance")
    assert "C++" not in commands
    assert {"tests/cli", "tests/conformance"} <= set(places(commands))


def test_an_unknown_room_is_an_error_that_lists_the_rooms():
    command = [sys.executable, str(ROOT / "tools/run_tests"), "--list", "--room", "attic"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search("no room 'attic'; the rooms are .*backends/cpu base .*conformance .*ops", done.stderr)


def test_a_kind_of_test_that_a_room_lacks_is_no_success():
    command = [sys.executable, str(ROOT / "tools/run_tests"), "--cpp-only", "--room", "cli"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")


def test_every_layer_is_a_room_with_tests(run_tests):
    layers = {str(file.parent.relative_to(ROOT / "src")) for file in (ROOT / "src").rglob("CMakeLists.txt")}
    assert layers <= set(run_tests.rooms())


def test_every_label_belongs_to_a_room(run_tests):
    labels = set(re.findall(r"^cresset_cpp_test\((\w+)", (ROOT / "tests/cpp/CMakeLists.txt").read_text(), re.M))
    assert labels == {found for room in run_tests.rooms() if (found := run_tests.cpp_label(room))}


def test_what_names_do_not_tell_exists(run_tests):
    assert set(run_tests.ROOM_TESTS) <= set(run_tests.rooms())
    for room, extras in run_tests.ROOM_TESTS.items():
        assert all((ROOT / extra).exists() for extra in extras), room


def test_a_build_for_aarch64_has_the_python_of_its_folder(run_tests, tmp_path):
    build, sysroot = tmp_path / "build", tmp_path / "sysroot"
    (build / "python").mkdir(parents=True)
    (build / "CMakeCache.txt").write_text(f"CRESSET_ARM64_SYSROOT:PATH={sysroot}/x/..\n")
    command = run_tests.python_command(build, 1, [], False, ["-n", "0", "tests/ops"])
    assert command == [f"{sysroot}/usr/bin/python3-arm64", "-m", "pytest", "-q", "-n", "1", *run_tests.EMULATED, "-n", "0", "tests/ops"]
    path = run_tests.build_environment.of_python(build)["PYTHONPATH"].split(":")
    # The module, the folder's own NumPy, and only then packages of this interpreter.
    assert path[:2] == [str(build / "python"), f"{sysroot}/usr/lib/python3/dist-packages"] and path[2].endswith("site-packages")
    (build / "CMakeCache.txt").write_text("CRESSET_SANITIZE:STRING=\n")
    assert run_tests.python_command(build, 1, [], False, [])[0] == sys.executable
