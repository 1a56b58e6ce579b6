"""The launcher: variables, failures, restarts, signals, logs, and two "machines" on one."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from cresset.distributed import run

# Several processes write to one pipe: a line has to be one write.
SAY = """
import os, signal, sys, time
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""

REDUCES = """
import cresset, cresset.distributed as dist
dist.init_process_group("gloo")
x = cresset.ones(1)
dist.all_reduce(x)
say("sum", x.item(), *(os.environ[k] for k in ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE")), *sys.argv[1:])
dist.destroy_process_group()
"""


def started(*options, script, tmp_path, arguments=()):
    path = tmp_path / "script.py"
    path.write_text(SAY + script)
    command = [sys.executable, "-m", "cresset.distributed.run", *options, str(path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, sorted(out.splitlines()), err


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def test_ranks_find_each_other(tmp_path):
    status, lines, err = ended(started("--standalone", "--nproc-per-node=2", script=REDUCES, tmp_path=tmp_path, arguments=["a", "--b"]))
    assert (status, lines) == (0, ["sum 2.0 0 0 0 2 a --b", "sum 2.0 1 1 0 2 a --b"]), err


@pytest.mark.parametrize("backend", ["static", "c10d"])
def test_two_machines(tmp_path, backend):
    port = free_port()
    options = [["--nnodes=2", "--rdzv-backend", backend, f"--rdzv-endpoint=localhost:{port}", f"--nproc_per_node={n}"] for n in (2, 1)]
    if backend == "static":
        options = [given + [f"--node-rank={i}"] for i, given in enumerate(options)]
    (one, lines, _), (two, more, _) = map(ended, [started(*given, script=REDUCES, tmp_path=tmp_path) for given in options])
    assert one == two == 0 and len(lines) == 2 and len(more) == 1
    assert all(line.startswith("sum 3.0") and line.endswith(" 3") for line in lines + more)
    assert {line.split()[2] for line in lines + more} == {"0", "1", "2"} and len({line.split()[4] for line in lines + more}) == 2


FAILS = """
from cresset.distributed.elastic.multiprocessing.errors import record

@record
def main():
    say("attempt", os.environ["TORCHELASTIC_RESTART_COUNT"])
    if os.environ["RANK"] == "1":
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == sys.argv[1]:
            return
        if sys.argv[2] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("meant")
    if os.environ["TORCHELASTIC_RESTART_COUNT"] != sys.argv[1]:
        time.sleep(60)

main()
"""


def test_a_failing_rank_stops_the_others(tmp_path):
    begin = time.monotonic()
    status, lines, err = ended(started("--standalone", "--nproc-per-node=2", script=FAILS, tmp_path=tmp_path, arguments=["9", "raise"]))
    assert status == 1 and time.monotonic() - begin < 30
    cause = err[err.index("Root Cause (first observed failure):") :]
    assert re.search(r"rank      : 1 \(local_rank: 1\)\n  exitcode  : 1 \(pid: \d+\)\n", cause) and "ValueError: meant" in cause
    assert re.search(r"rank      : 0 .*\n  exitcode  : -15 \(pid: \d+\)  \(SIGTERM\)", err)


def test_a_killed_rank_and_restarts(tmp_path):
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=2"]
    status, lines, err = ended(started(*options, script=FAILS, tmp_path=tmp_path, arguments=["1", "kill"]))
    assert (status, lines.count("attempt 1")) == (0, 2), err
    assert "(SIGKILL)" in err and "traceback : Signal 9 (SIGKILL) received by PID" in err and "restart 1 of 2" in err


WAITS = """
signal.signal(signal.SIGTERM, lambda *_: (say("told"), sys.exit(3)))
say("ready")
time.sleep(60)
"""


def test_signals_are_passed_on(tmp_path):
    process = started("--standalone", "--nproc-per-node=2", script=WAITS, tmp_path=tmp_path)
    assert [process.stdout.readline().strip() for _ in range(2)] == ["ready"] * 2
    process.send_signal(signal.SIGTERM)
    status, lines, err = ended(process)
    assert status == 1 and lines == ["told"] * 2 and "the launcher got signal SIGTERM" in err


def test_logs(tmp_path):
    script = "import os, sys\nprint('out', os.environ['RANK'])\nprint('err', file=sys.stderr)"
    options = ["--nproc-per-node=2", f"--master-port={free_port()}", f"--log-dir={tmp_path}/logs", "--redirects=0:3", "--tee=1:1", "--role=me"]
    status, lines, err = ended(started(*options, script=script, tmp_path=tmp_path))
    assert (status, lines, err.count("err")) == (0, ["[me1]:out 1"], 1)
    logs = {str(p.relative_to(tmp_path / "logs")).partition("/")[2]: p.read_text() for p in (tmp_path / "logs").rglob("*.log")}
    assert logs == {"attempt_0/0/stdout.log": "out 0\n", "attempt_0/0/stderr.log": "err\n", "attempt_0/1/stdout.log": "out 1\n"}


def test_modules_and_programs(tmp_path, capfd):
    port = f"--master-port={free_port()}"
    assert run.main([port, "--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE"]) == 0
    assert run.main([port, "-m", "platform"]) == 0
    assert capfd.readouterr().out.startswith("0 of 1\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nproc-per-node=many"], "Unsupported nproc_per_node value: many"),
        (["--nnodes=1:4"], "--nnodes: a number of machines was required; 1:4 was given. Launching with machines that come and go is not part of Cresset."),
        (["--rdzv-backend=etcd"], "--rdzv-backend: static or c10d was required; etcd was given."),
        (["--redirects=7"], "--redirects or --tee: 0, 1, 2, 3 or rank:number,… was required; 7 was given."),
        (["-m", "--no-python"], "Don't use both the '--no-python' flag and the '--module' flag at the same time."),
    ],
)
def test_words(options, words, capsys):
    assert run.main([*options, "script.py"]) == 1
    assert capsys.readouterr().err == words + "\n"


def test_options_from_the_environment(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "cpu")
    monkeypatch.setenv("PET_STANDALONE", "1")
    args = run.parse_args(["x.py", "--nnodes", "2"])
    assert args.standalone and args.nnodes == "1" and args.training_script_args == ["--nnodes", "2"]
    assert run._ranks_here(args.nproc_per_node) == os.cpu_count()
