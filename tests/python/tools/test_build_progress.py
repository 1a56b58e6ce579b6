"""tools/build_progress: what is left of a build by weight, and a command whose output and status pass through."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRESS = Path(__file__).resolve().parents[3] / "tools/build_progress"
# Prints what ninja would: the status lines that NINJA_STATUS asks for, and between them what compilers print.
NINJA = """
import os, sys
def step(count, total, text):
    print(os.environ["NINJA_STATUS"].replace("%f", str(count)).replace("%t", str(total)) + text, flush=True)
"""


def heavy(name):
    return f"Building CXX object src/ir/{name}.o"


@pytest.fixture
def estimate(tool):
    weights = {"src/ir/a.o": 1.0, "src/ir/b.o": 3.0, "src/ir/c.o": 16.0}
    return lambda *steps, speed=None: tool("build_progress").Estimate(weights, list(steps), speed)


def test_files_count_by_their_weight(estimate):
    plan = estimate(heavy("a"), heavy("b"), heavy("c"))
    assert plan.fraction() == 0 and plan.seconds_left(1) is None
    plan.finished(heavy("b"), 1, 3, 2.0)
    plan.finished(heavy("a"), 2, 3, 2.0)
    assert plan.fraction() == pytest.approx(4 / 20)
    assert plan.seconds_left(2.0) == pytest.approx(8)  # 4 in 2 s, 16 are left
    assert plan.seconds_left(5.0) == pytest.approx(5)  # the clock runs while the file compiles


def test_unknown_files_weigh_the_median_and_other_steps_little(estimate):
    plan = estimate(heavy("unknown"), "Linking CXX shared library lib/libcresset.so")
    assert plan.left() == 3 + 1


def test_recorded_speed_counts_until_there_is_a_measured_one(estimate):
    plan = estimate(heavy("a"), heavy("b"), heavy("c"), speed=2.0)
    assert plan.seconds_left(0) == pytest.approx(10)
    plan.finished(heavy("a"), 1, 3, 100.0)
    assert plan.seconds_left(100.0) > 300


def test_files_from_a_cache_shorten_the_estimate(estimate):
    plan = estimate(*[heavy("c")] * 100, speed=2.0)
    assert plan.seconds_left(0) == pytest.approx(800)
    for i in range(20):
        plan.finished(heavy("c"), i + 1, 100, 0.1 * (i + 1))
    assert plan.seconds_left(2.0) < 40


def test_the_plan_follows_ninjas_own_count(estimate):
    plan = estimate("Generating", heavy("a"), heavy("a"), heavy("a"), heavy("a"))
    plan.finished("Generating", 1, 3, 1.0)  # what was generated had not changed: two steps went away
    assert plan.left() == pytest.approx(2)
    plan.finished("Re-running CMake", 0, 10, 2.0)  # more than planned: they weigh the median
    assert plan.left() == pytest.approx(4 + 6 * 3)


def test_command_line_gives_folder_and_targets(tool):
    command = ["cmake", "--build", "--preset", "release", "--target", "a", "b", "-j", "2", "--target=c"]
    progress = tool("build_progress")
    assert progress.words_after(command, "--preset") == ["release"]
    assert progress.words_after(command, "--target", "-t") == ["a", "b", "c"]


def test_dry_run_uses_the_ninja_of_the_build_folder(tool, tmp_path):
    lines = ("CMAKE_MAKE_PROGRAM:FILEPATH=/opt/ninja", "CMAKE_MAKE_PROGRAM-ADVANCED:INTERNAL=1")
    (tmp_path / "CMakeCache.txt").write_text("\n".join(lines))
    assert tool("build_progress").build_tool(tmp_path) == "/opt/ninja"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (123, "2 min 3 s")])
def test_duration(tool, seconds, text):
    assert tool("build_progress").duration(seconds) == text


def progress(script, *options):
    command = [sys.executable, str(PROGRESS), "--label", "lib", *options, "--", sys.executable, "-c", NINJA + script]
    # Shells start work in the background with Ctrl-C ignored.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=heed)


def test_only_messages_pass_through():
    process = progress("""
print("ninja: Entering directory 'x'")
step(1, 2, "Building CXX object src/ir/a.cpp.o")
print("a.cpp:1: warning: x ‘y’\\n\\n  1 | y")
step(2, 2, "Linking")
""")
    assert process.communicate()[0] == "a.cpp:1: warning: x ‘y’\n\n  1 | y\nlib: done in 0 s\n"
    assert process.returncode == 0


def test_failure_keeps_status_and_output():
    process = progress("step(1, 9, 'x'); print('FAILED: a.o\\ncc a.cpp\\nerror: ' + 'z' * 100000, end=''); sys.exit(7)")
    assert process.communicate()[0] == f"FAILED: a.o\ncc a.cpp\nerror: {'z' * 100000}lib: failed after 0 s\n"
    assert process.returncode == 7


def test_lines_appear_while_it_runs():
    process = progress(f"import time; step(1, 4, '{heavy('a.cpp')}'); time.sleep(0.7)", "--every", "0.1")
    lines = process.communicate()[0].splitlines()  # a machine that is busy starts late: nothing is known in the first lines then
    assert next(line for line in lines if "unknown" not in line).endswith("s left  (a.cpp)")
    assert lines[-2].startswith("lib: 25 %, ")


def ends(pid):
    """The signal is on its way when the build has ended; whoever inherits the process may be late to bury it."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_ends_the_build_as_well(number):
    child = "import subprocess; subprocess.run(['sh', '-c', 'echo $$; exec sleep 60'])"
    process = progress(child)
    inner = int(process.stdout.readline())
    process.send_signal(number)
    assert process.communicate(timeout=20)[0].splitlines()[-1].startswith("lib: interrupted after")
    assert process.returncode == 130
    assert ends(inner)
