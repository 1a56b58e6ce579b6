"""The launcher: variables, failures, restarts, signals, logs, and two "machines" on one."""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

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
    assert "<NO_OTHER_FAILURES>" in err  # rank 0 was told to end


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


def test_a_signal_while_ranks_start_ends_those_that_run(tmp_path):
    """A rank that sends the signal itself is often faster than the start of the next one."""
    from cresset.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
    from cresset.distributed.elastic.multiprocessing.api import SignalException

    script = f"echo $$ >> {tmp_path}/pids; [ $0 = 0 ] && kill -TERM {os.getpid()}; exec sleep 60"
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)}
    try:
        with pytest.raises(SignalException) as raised:
            ranks = range(8)
            context = start_processes("w", "/bin/sh", {r: ("-c", script, r) for r in ranks}, {r: {} for r in ranks}, DefaultLogsSpecs(log_dir=str(tmp_path)))
            time.sleep(10)
            context.close()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert raised.value.sigval is signal.SIGTERM
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_closed_contexts_give_signals_back(tmp_path):
    """A handler of Python that stays hangs pools of multiprocessing: their children wait where only a signal's default ends them."""
    from cresset.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.getsignal(number) for number in numbers]
    first, second = (start_processes("w", "/bin/sleep", {0: ("60",)}, {0: {}}, DefaultLogsSpecs(log_dir=str(tmp_path))) for _ in range(2))
    first.close()
    first.close()
    assert all(signal.getsignal(number) not in before for number in numbers)  # the second one still needs them
    second.close()
    assert [signal.getsignal(number) for number in numbers] == before


def test_logs(tmp_path):
    script = "import os, sys\nprint('out', os.environ['RANK'])\nprint('err', file=sys.stderr)"
    options = ["--nproc-per-node=2", f"--master-port={free_port()}", f"--log-dir={tmp_path}/logs", "--redirects=0:3", "--tee=1:1", "--role=me"]
    status, lines, err = ended(started(*options, script=script, tmp_path=tmp_path))
    assert (status, lines, err.count("err")) == (0, ["[me1]:out 1"], 1)
    logs = {str(p.relative_to(tmp_path / "logs")).partition("/")[2]: p.read_text() for p in (tmp_path / "logs").rglob("*.log")}
    assert logs == {"attempt_0/0/stdout.log": "out 0\n", "attempt_0/0/stderr.log": "err\n", "attempt_0/1/stdout.log": "out 1\n"}


def test_modules_and_programs(tmp_path, capfd):
    port = f"--master-port={free_port()}"
    run.main([port, "--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE"])
    run.main([port, "-m", "platform"])
    assert capfd.readouterr().out.startswith("0 of 1\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nproc-per-node=many"], "Unsupported nproc_per_node value: many"),
        (["--nnodes=1:4"], "--nnodes: machines that come and go meet with --rdzv-backend c10d; 1:4 was given with static."),
        (["--nnodes=1:2:3"], 'nnodes=1:2:3 is not in "MIN:MAX" format'),
        (["--rdzv-backend=other"], "The rendezvous backend 'other' is not registered. Did you forget to call `register`?"),
        (["--redirects=7"], "--redirects: 0, 1, 2, 3 or rank:number,… was required; 7 was given."),
        (["-m", "--no-python"], "Don't use both the '--no-python' flag and the '--module' flag at the same time."),
    ],
)
def test_words(options, words):
    with pytest.raises((RuntimeError, ValueError), match="^" + re.escape(words)):
        run.main([*options, "script.py"])


def test_options_from_the_environment(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "cpu")
    monkeypatch.setenv("PET_STANDALONE", "1")
    args = run.parse_args(["x.py", "--nnodes", "2"])
    assert args.standalone and args.nnodes == "1" and args.training_script_args == ["--nnodes", "2"]
    assert run._ranks_here(args.nproc_per_node) == os.cpu_count()


# Seconds between two signs of life; three that are missing are a machine that left. One that is too busy to give them joins again, over and over.
KEEP_ALIVE = 8 if "asan" in os.environ.get("LD_PRELOAD", "") else 2
COUNTS = """
import cresset, cresset.distributed as dist
dist.init_process_group("gloo", timeout=__import__("datetime").timedelta(seconds=20))
size, path = os.environ["WORLD_SIZE"], sys.argv[1]
say("round", os.environ["TORCHELASTIC_RESTART_COUNT"], "of", size)
while not os.path.exists(path):
    x = cresset.ones(1)
    dist.all_reduce(x)
    time.sleep(0.05)
    if size == "2" and x.item() == 2:
        dist.barrier()
        open(path, "w")
say("end of", size)
"""


def test_a_machine_joins(tmp_path):
    """One machine of one to two begins; when the second one comes, the ranks of both start again, as two."""
    port, conf = free_port(), "--rdzv-conf=last_call_timeout=1,join_timeout=30"
    options = ["--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=job", conf]
    first = started(*options, script=COUNTS, tmp_path=tmp_path, arguments=[str(tmp_path / "done")])
    assert first.stdout.readline() == "round 0 of 1\n"
    second = started(*options, script=COUNTS, tmp_path=tmp_path, arguments=[str(tmp_path / "done")])
    (one, lines, err), (two, more, _) = ended(first), ended(second)
    assert (one, two) == (0, 0), err
    assert lines == more == ["end of 2", "round 1 of 2"]


def test_a_machine_leaves(tmp_path):
    """The agent and the rank of one of two machines are killed: the other's rank starts again, alone."""
    port, conf = free_port(), f"--rdzv-conf=last_call_timeout=1,join_timeout=30,keep_alive_interval={KEEP_ALIVE}"
    options = ["--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=job", "--max-restarts=2", conf]
    script = COUNTS.replace("size == \"2\" and x.item() == 2", "size == \"1\" and os.environ[\"TORCHELASTIC_RESTART_COUNT\"] != \"0\"")
    stays = started(*options, script="say('pid', os.getpid())" + script, tmp_path=tmp_path, arguments=[str(tmp_path / "done")])
    assert stays.stdout.readline().startswith("pid")
    goes = started(*options, script="say('pid', os.getpid())" + script, tmp_path=tmp_path, arguments=[str(tmp_path / "done")])
    rank = None
    for line in goes.stdout:
        if line.startswith("pid"):
            rank = int(line.split()[1])
        elif line.endswith("of 2\n"):
            break
    goes.kill()
    os.kill(rank, signal.SIGKILL)
    goes.communicate()
    status, lines, err = ended(stays)
    assert status == 0 and "end of 1" in lines, err


def test_variables_of_clusters(monkeypatch):
    from cresset.distributed import _cluster

    assert _cluster.expand_hosts("gpu[01-03,7],login,n[1-2]x[0-1]") == ["gpu01", "gpu02", "gpu03", "gpu7", "login", "n1x0", "n1x1", "n2x0", "n2x1"]
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert _cluster.variable("RANK") is None and _cluster.variable("MASTER_ADDR") is None
    slurm = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "node[07-08]", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}
    with monkeypatch.context() as here:
        for name, value in slurm.items():
            here.setenv(name, value)
        told = [_cluster.variable(n) for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")]
        assert told == ["3", "8", "1", "node07"] and 15000 <= int(_cluster.variable("MASTER_PORT")) < 25000
        here.delenv("SLURM_STEP_ID")  # a shell of an allocation, no task
        assert _cluster.variable("RANK") is None
    for name, value in {"RANK": "0", "SIZE": "2", "LOCAL_RANK": "0", "LOCAL_SIZE": "2"}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    monkeypatch.setenv("PMIX_NAMESPACE", "12345")
    assert [_cluster.variable(n) for n in ("RANK", "WORLD_SIZE", "MASTER_ADDR")] == ["0", "2", "127.0.0.1"]
    monkeypatch.setenv("RANK", "5")
    assert _cluster.variable("RANK") == "5"


def test_the_command(tmp_path):
    """`cresset launch` and `cresset bench comm` are programs in Python behind the command."""
    command = Path(run.__file__).resolve().parents[3] / "build/dev/bin/cresset"
    command = command if command.exists() else shutil.which("cresset")
    if command is None:
        pytest.skip("the command cresset is not beside this package")
    path = tmp_path / "script.py"
    path.write_text("import os, sys\nos.write(1, (os.environ['RANK'] + ' of ' + os.environ['WORLD_SIZE'] + ' ' + sys.argv[1] + chr(10)).encode())")
    told = os.environ | {"CRESSET_PYTHON": sys.executable}
    launched = subprocess.run([command, "launch", "--standalone", "--nproc-per-node", "2", path, "--json"], env=told, capture_output=True, text=True, timeout=60)
    assert (launched.returncode, sorted(launched.stdout.splitlines())) == (0, ["0 of 2 --json", "1 of 2 --json"]), launched.stderr
    grown = subprocess.run([command, "bench", "comm", "--store", "2,4", "--json"], env=told, capture_output=True, text=True, timeout=60)
    assert set(json.loads(grown.stdout)) == {"2", "4"}, grown.stderr


def raise_on_one():
    if os.environ["RANK"] == "1":
        raise ValueError("meant")
    time.sleep(30)


def test_a_function_that_fails(monkeypatch):
    from cresset.distributed.elastic.multiprocessing.errors import ChildFailedError
    from cresset.distributed.launcher import LaunchConfig, elastic_launch

    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    config = LaunchConfig(1, 1, 2, rdzv_endpoint="localhost:0", max_restarts=0, start_method="fork", monitor_interval=0.05)
    with pytest.raises(ChildFailedError) as failure:
        elastic_launch(config, raise_on_one)()
    rank, cause = failure.value.get_first_failure()
    assert (rank, cause.exitcode) == (1, 1) and "ValueError: meant" in cause.message


@pytest.mark.parametrize("variable, arguments, expected", [
    (None, [], ("bar", 1, False)), ("3", [], ("3", 3, True)), ("3", ["--foo", "4", "-n", "5"], ("4", 5, True)), ("0", ["-f"], ("0", 0, True)),
    ("0", [], ("0", 0, False)),
])  # fmt: skip
def test_arguments_from_the_environment(monkeypatch, variable, arguments, expected):
    from cresset.distributed.argparse_util import check_env, env

    for name in ("FOO", "NUMBER", "FLAG"):
        monkeypatch.delenv("PET_" + name, raising=False)
        if variable is not None:
            monkeypatch.setenv("PET_" + name, variable)
    parser = argparse.ArgumentParser()
    parser.add_argument("--foo", action=env, default="bar")
    parser.add_argument("-n", "--number", action=env, default=1, type=int, required=True)
    parser.add_argument("-f", "--flag", action=check_env)
    found = parser.parse_args(arguments)
    assert (found.foo, found.number, found.flag) == expected
    monkeypatch.delenv("PET_FOO", raising=False)
    required = argparse.ArgumentParser(exit_on_error=False)
    required.add_argument("--foo", action=env, required=True)
    with pytest.raises(SystemExit):
        required.parse_args([])


def test_a_rank_that_was_stopped_hears_that_it_shall_end():
    from cresset.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    handler = SubprocessHandler(sys.executable, ["-c", "import time; time.sleep(60)"], {}, None, None, 0)
    os.kill(handler.proc.pid, signal.SIGSTOP)
    handler.close()
    assert handler.proc.wait(10) == -signal.SIGTERM


def _processors():
    return sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: ())(0)) < 2, reason="one processor")
def test_ranks_are_bound_to_processors(tmp_path):
    from cresset.distributed.launcher import LaunchConfig, elastic_launch
    from cresset.numa.binding import AffinityMode, NumaOptions, _get_logical_cpus_to_bind_to

    options = NumaOptions(AffinityMode.EXCLUSIVE)
    try:
        expected = [sorted(_get_logical_cpus_to_bind_to(rank, 2, options)) for rank in range(2)]
    except RuntimeError as error:
        pytest.skip(str(error))
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0, start_method="fork", monitor_interval=0.05,
        numa_options=options,
    )  # fmt: skip
    assert list(elastic_launch(config, _processors)().values()) == expected
    process = started("--standalone", "--nproc-per-node", "2", "--numa-binding", "exclusive", script="say(sorted(os.sched_getaffinity(0)))", tmp_path=tmp_path)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sorted(out.splitlines()) == sorted(map(str, expected))
