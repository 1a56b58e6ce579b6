"""Ranks of one machine as processes: started together, watched, stopped when one fails, and started again.

The launchers of several machines meet at a store, which serves the ranks too. A round of ranks has a number; who sees a rank fail writes
"failed" of the round, and every launcher stops its ranks of that round.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from cresset._C_distributed import DistError, PrefixStore, TCPStore

__all__ = ["Job", "RanksFailed", "Signalled", "launch"]


class RanksFailed(Exception):
    """Ranks failed, and no restart is left: which, how, and where their logs are."""


class Signalled(Exception):
    """The launcher got a signal, and has stopped its ranks."""

    def __init__(self, number):
        super().__init__(f"the launcher got signal {signal.Signals(number).name}; its ranks were stopped.")
        self.number = number


@dataclass
class Job:
    """What to start: `ranks` processes of `command` here, on each of `nodes` machines; this is machine `node` (None: it gets a number)."""

    command: list
    name: str
    ranks: int
    nodes: int
    node: int | None
    host: str
    port: int
    run_id: str
    max_restarts: int
    interval: float
    role: str
    log_dir: str
    redirects: list
    tee: list
    shown: set | None
    signals: list
    shutdown_timeout: int
    join_timeout: float


@dataclass
class _Failure:
    rank: int
    local_rank: int
    pid: int
    code: int
    error_file: str
    log: str
    time: str

    def __str__(self):
        name = f"  ({signal.Signals(-self.code).name})" if self.code < 0 else ""
        seen = os.path.exists(self.error_file)
        lines = [
            f"  time      : {self.time}", f"  host      : {socket.gethostname()}", f"  rank      : {self.rank} (local_rank: {self.local_rank})",
            f"  exitcode  : {self.code} (pid: {self.pid}){name}", f"  error_file: {self.error_file if seen else '<N/A>'}",
        ]  # fmt: skip
        if self.log:
            lines.append(f"  log       : {self.log}")
        if seen:
            with open(self.error_file) as f:
                text = json.load(f)["message"]
            text = text if isinstance(text, str) else text.get("extraInfo", {}).get("py_callstack") or text["message"]
            lines.append("  traceback : " + text.rstrip().replace("\n", "\n    "))
        elif self.code < 0:
            lines.append(f"  traceback : Signal {-self.code} ({signal.Signals(-self.code).name}) received by PID {self.pid}")
        return "\n".join(lines)


def _report(name, failures):
    first, others = failures[0], failures[1:]
    parts = ["=" * 60, f"{name} FAILED", "-" * 60, "Failures:"]
    parts += [f"[{i}]:\n{failure}" for i, failure in enumerate(others, 1)] or ["  <NO_OTHER_FAILURES>"]
    parts += ["-" * 60, "Root Cause (first observed failure):", f"[0]:\n{first}", "=" * 60]
    return "\n".join(parts)


class _Rank:
    """One process of a round, in a session of its own, so that signals reach what it starts too."""

    def __init__(self, job, environment, local_rank, folder):
        self.local_rank, self.rank = local_rank, int(environment["RANK"])
        os.makedirs(folder, exist_ok=True)
        self.error_file, self.log, self.copiers, files = os.path.join(folder, "error.json"), "", [], {}
        streams = {}
        for bit, name, console in ((1, "stdout", sys.stdout), (2, "stderr", sys.stderr)):
            shown = job.shown is None or local_rank in job.shown
            to_file, tee = job.redirects[local_rank] & bit, job.tee[local_rank] & bit
            if not (to_file or tee):
                streams[name] = None if shown else subprocess.DEVNULL
                continue
            self.log = os.path.join(folder, name + ".log")
            files[name] = open(self.log, "wb")
            streams[name] = subprocess.PIPE if tee and shown else files[name]
        environment = environment | {"TORCHELASTIC_ERROR_FILE": self.error_file}
        self.process = subprocess.Popen(job.command, env=environment, start_new_session=True, **streams)
        for name, file in files.items():
            source, console = getattr(self.process, name), getattr(sys, name)
            if source is None:
                file.close()
                continue
            copier = threading.Thread(target=_copy, args=(source, file, console, f"[{job.role}{local_rank}]:"), daemon=True)
            copier.start()
            self.copiers.append(copier)

    def send(self, number):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass

    def failure(self):
        now = datetime.now().strftime("%Y-%m-%d_%H:%M:%S")
        return _Failure(self.rank, self.local_rank, self.process.pid, self.process.returncode, self.error_file, self.log, now)


def _copy(source, file, console, prefix):
    with source, file:
        for line in source:
            file.write(line)
            file.flush()
            console.write(prefix + line.decode(errors="replace"))
            console.flush()


def _stop(ranks, number, timeout):
    """End all ranks, with SIGKILL those that are there after `timeout` seconds."""
    for rank in ranks:
        rank.send(number)
    deadline = time.monotonic() + timeout
    for rank in ranks:
        try:
            rank.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            rank.send(signal.SIGKILL)
            rank.process.wait()
        for copier in rank.copiers:
            copier.join(5)


# --- the store

def _is_here(host):
    """Can a socket of this machine have this address?"""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
    except OSError:
        pass
    return False


def _meet(job):
    """The launchers' store. Machine 0 serves it; where machines have no numbers yet, who has the address and comes first."""
    timeout = timedelta(seconds=job.join_timeout)
    if job.node == 0 or (job.node is None and _is_here(job.host)):
        try:
            return TCPStore(job.host, job.port, None, True, timeout, wait_for_workers=False)
        except DistError:
            if job.node == 0:
                raise
    return TCPStore(job.host, job.port, None, False, timeout)


def _places(job, store, round_):
    """(this machine's number, number of its first rank, number of ranks): every launcher tells how many ranks it has."""
    node = job.node if job.node is not None else store.add(f"{round_}/nodes", 1) - 1
    if node >= job.nodes:
        raise ValueError(f"rendezvous {job.run_id}: {job.nodes} machines were required; this is number {node + 1}.")
    store.set(f"{round_}/ranks/{node}", str(job.ranks))
    store.wait([f"{round_}/ranks/{i}" for i in range(job.nodes)])
    counts = [int(store.get(f"{round_}/ranks/{i}")) for i in range(job.nodes)]
    return node, sum(counts[:node]), sum(counts)


def _environment(job, port, round_, node, first, size, local_rank):
    rank = str(first + local_rank)
    made = {
        "RANK": rank, "LOCAL_RANK": str(local_rank), "GROUP_RANK": str(node), "ROLE_RANK": rank, "ROLE_NAME": job.role, "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(job.ranks), "GROUP_WORLD_SIZE": str(job.nodes), "ROLE_WORLD_SIZE": str(size), "MASTER_ADDR": job.host,
        "MASTER_PORT": str(port), "TORCHELASTIC_RESTART_COUNT": str(round_), "TORCHELASTIC_MAX_RESTARTS": str(job.max_restarts),
        "TORCHELASTIC_RUN_ID": job.run_id, "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_SIGNALS_TO_HANDLE": ",".join(job.signals),
    }  # fmt: skip
    if job.ranks > 1:
        made["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
    return dict(os.environ) | made


# --- rounds

def _watch(job, store, round_, node, ranks):
    """Failures of this round: [] when all ranks everywhere have ended well, None when one of another machine failed."""
    told, look = False, 0.0
    while True:
        codes = [rank.process.poll() for rank in ranks]
        failed = [rank.failure() for rank, code in zip(ranks, codes) if code]
        if failed:
            store.set(f"{round_}/failed", f"machine {node}: rank {failed[0].rank}, exit code {failed[0].code}")
            return failed
        if not told and all(code == 0 for code in codes):
            store.set(f"{round_}/done/{node}", "")
            told = True
        if told and job.nodes == 1:
            return []
        if job.nodes > 1 and time.monotonic() >= look:
            if store.check([f"{round_}/failed"]):
                return None
            if told and store.check([f"{round_}/done/{i}" for i in range(job.nodes)]):
                return []
            look = time.monotonic() + job.interval
        time.sleep(0.01)  # fine enough to see who failed first


def _round(job, store, port, round_, folder):
    """Run one round: None when it went well, else the report of what failed."""
    node, first, size = _places(job, store, round_)
    ranks = []
    try:
        for local in range(job.ranks):
            environment = _environment(job, port, round_, node, first, size, local)
            ranks.append(_Rank(job, environment, local, os.path.join(folder, f"attempt_{round_}", str(local))))
        failed = _watch(job, store, round_, node, ranks)
    except Signalled as error:
        _stop(ranks, error.number, job.shutdown_timeout)
        raise
    except BaseException:
        _stop(ranks, signal.SIGTERM, job.shutdown_timeout)
        raise
    known = {failure.rank for failure in failed or []}
    _stop(ranks, signal.SIGTERM, job.shutdown_timeout)
    if failed == []:
        return None
    if failed is None:
        return f"{job.name} FAILED on another machine: {store.get(f'{round_}/failed').decode()}. Its launcher says more."
    for rank in ranks:
        if rank.rank not in known and rank.process.returncode:
            failed.append(rank.failure())
    return _report(job.name, failed)


def _leave(job, store, node_serves):
    """The store stays until the last launcher has read from it."""
    if job.nodes == 1:
        return
    try:
        left = store.add("left", 1)
        deadline = time.monotonic() + 10
        while node_serves and left < job.nodes and time.monotonic() < deadline:
            time.sleep(0.05)
            left = store.add("left", 0)
    except DistError:
        pass


def launch(job):
    """Run the job's ranks of this machine to their end. RanksFailed, or Signalled."""

    def on_signal(number, frame):
        raise Signalled(number)

    before = {getattr(signal, name): signal.signal(getattr(signal, name), on_signal) for name in job.signals}
    base = job.log_dir or tempfile.mkdtemp(prefix="cresset_run_")
    folder = os.path.join(base, f"{job.run_id}_{uuid.uuid4().hex[:8]}")
    served = None
    try:
        served = _meet(job)
        store = PrefixStore(f"launcher/{job.run_id}", served)
        for round_ in range(job.max_restarts + 1):
            report = _round(job, store, served.port, round_, folder)
            if report is None:
                break
            if round_ < job.max_restarts:
                print(report, f"restart {round_ + 1} of {job.max_restarts}", sep="\n", file=sys.stderr, flush=True)
        _leave(job, store, job.node == 0 or _is_here(job.host))
        if report is not None:
            raise RanksFailed(report)
    except DistError as error:
        raise RanksFailed(f"{job.name}: the launchers could not meet at {job.host}:{job.port}: {error}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if not job.log_dir and not any(job.redirects + job.tee):
            shutil.rmtree(base, ignore_errors=True)
