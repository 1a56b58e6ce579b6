"""The agent of a machine: it joins the rendezvous, starts the machine's ranks, and starts them again when one fails or the machines change.

A round of ranks has a store. An agent whose ranks fail writes that into it, and the agents of the other machines, whose ranks would wait in
vain, end theirs: all restart together, or all give up together.
"""

import abc
import json
import os
import signal
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from cresset._logging import logger_of
from cresset.distributed.elastic.events import Event, EventSource, record
from cresset.distributed.elastic.metrics import prof, put_metric
from cresset.distributed.elastic.multiprocessing import ProcessFailure, SignalException
from cresset.distributed.elastic.rendezvous import RendezvousGracefulExitError
from cresset.distributed.elastic.utils import store as store_util

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]

_log = logger_of(__name__)
_FAILED = "cresset/failed"  # in a round's store: which machine's rank failed, and how
_BARRIER = "torchelastic/agent/terminal_state"
_FAILURE_PATIENCE = 5  # seconds, for the agents of other machines to read that a rank failed


@dataclass
class WorkerSpec:
    """What to run: `entrypoint`, a function or a program, with `args`, as `local_world_size` ranks of this machine.

    The ranks are started again at most `max_restarts` times after failures; the agent looks every `monitor_interval` seconds. `master_addr` and
    `master_port` stand in for those of the rendezvous. `fn` is the older name of `entrypoint`.
    """

    role: str
    local_world_size: int
    rdzv_handler: object
    fn: object = None
    entrypoint: object = None
    args: tuple = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: object = None

    def __post_init__(self):
        if self.local_world_size <= 0 or self.monitor_interval <= 0:
            raise AssertionError("WorkerSpec: a local_world_size and a monitor_interval above 0 were required.")
        if self.fn:
            self.entrypoint = self.fn
        if not self.entrypoint:
            raise AssertionError("WorkerSpec: an entrypoint was required; none was given.")

    def get_entrypoint_name(self):
        """The function's name, or the program's without its folder."""
        return os.path.basename(self.entrypoint) if isinstance(self.entrypoint, str) else self.entrypoint.__qualname__


class Worker:
    """One rank: `id` is what the agent knows it by."""

    def __init__(self, local_rank, global_rank=-1, role_rank=-1, world_size=-1, role_world_size=-1):
        self.id, self.local_rank, self.global_rank, self.role_rank = None, local_rank, global_rank, role_rank
        self.world_size, self.role_world_size = world_size, role_world_size

    def __repr__(self):
        return f"Worker(local_rank={self.local_rank}, rank={self.global_rank} of {self.world_size}, role_rank={self.role_rank} of {self.role_world_size})"


class WorkerState(str, Enum):
    """What the ranks of a machine do."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state):
        """Are there processes?"""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


class WorkerGroup:
    """The ranks of this machine, and what the rendezvous said."""

    def __init__(self, spec):
        self.spec, self.workers, self.state = spec, [Worker(i) for i in range(spec.local_world_size)], WorkerState.INIT
        self.store = self.group_rank = self.group_world_size = self.master_addr = self.master_port = None
        self.attempt, self.restarts = "0", 0


class _RoleInstanceInfo:
    """What a machine tells the others: its role, its number, how many ranks it has, and how often it has started them again."""

    def __init__(self, role, rank, local_world_size, restarts=0):
        self.role, self.rank, self.local_world_size, self.restarts = role, rank, local_world_size, restarts

    def serialize(self):
        """JSON, as bytes."""
        return json.dumps({k: getattr(self, k) for k in ("role", "rank", "local_world_size", "restarts")}).encode()

    @staticmethod
    def deserialize(data):
        """What serialize() made."""
        return _RoleInstanceInfo(**json.loads(data))

    @staticmethod
    def compare(obj1, obj2):
        """-1, 0 or 1: by role, then by number."""
        one, two = (obj1.role, obj1.rank), (obj2.role, obj2.rank)
        return (one > two) - (one < two)

    @staticmethod
    def find_role_boundaries(roles_infos, role):
        """(first, last) index of a role; (-1, -1) where it is none."""
        found = [i for i, info in enumerate(roles_infos) if info.role == role]
        return (found[0], found[-1]) if found else (-1, -1)


@dataclass
class RunResult:
    """How the ranks of a machine ended: values or failures by rank."""

    state: WorkerState
    return_values: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)
    elsewhere: str = ""  # the failure of another machine that ended them

    def is_failed(self):
        """Did they fail?"""
        return self.state == WorkerState.FAILED


def _get_fq_hostname():
    return socket.getfqdn(socket.gethostname())


class ElasticAgent(abc.ABC):
    """Keeps the ranks of a machine running."""

    @abc.abstractmethod
    def run(self, role="default"):
        """Run them to their end; a RunResult."""

    @abc.abstractmethod
    def get_worker_group(self, role="default"):
        """The ranks."""


class SimpleElasticAgent(ElasticAgent):
    """An agent of one role; how processes are started and watched is for derived classes."""

    def __init__(self, spec, exit_barrier_timeout=300):
        self._worker_group, self._remaining_restarts, self._store = WorkerGroup(spec), spec.max_restarts, None
        self._exit_barrier_timeout, self._total_execution_time, self._rounds = exit_barrier_timeout, 0, 0

    def get_worker_group(self, role="default"):
        """The ranks."""
        return self._worker_group

    @abc.abstractmethod
    def _start_workers(self, worker_group):
        """Start the ranks; {local rank: id}."""

    @abc.abstractmethod
    def _stop_workers(self, worker_group, is_restart=False):
        """End the ranks."""

    @abc.abstractmethod
    def _monitor_workers(self, worker_group):
        """How they are, a RunResult."""

    @abc.abstractmethod
    def _shutdown(self, death_sig=signal.SIGTERM, is_restart=False):
        """End everything of this agent."""

    # --- ranks and their numbers

    @prof
    def _rendezvous(self, worker_group):
        """Join the next round: numbers of the machine and of its ranks."""
        spec = worker_group.spec
        found = spec.rdzv_handler.next_rendezvous()
        self._store = found.store
        worker_group.workers = self._assign_worker_ranks(found.store, found.rank, found.world_size, spec)
        worker_group.store, worker_group.group_rank, worker_group.group_world_size = found.store, found.rank, found.world_size
        worker_group.master_addr = spec.master_addr or found.bootstrap_store_info.master_addr
        worker_group.master_port = spec.master_port or found.bootstrap_store_info.master_port
        _log.info("[%s] machine %s of %s, ranks %s", spec.role, found.rank, found.world_size, [w.global_rank for w in worker_group.workers])

    @prof
    def _assign_worker_ranks(self, store, group_rank, group_world_size, spec):
        """The ranks with their numbers: machines by their numbers, within a role too. Machine 0 counts, and tells each machine."""
        if os.environ.get("TORCH_ELASTIC_WORKER_IDENTICAL", "0") == "1":
            size = group_world_size * spec.local_world_size
            first = first_of_role = group_rank * spec.local_world_size
            self._agree(store, group_rank, self._rounds)
            return self._numbered(spec.local_world_size, first, size, first_of_role, size)
        store.set(f"torchelastic/role_info/{group_rank}", _RoleInstanceInfo(spec.role, group_rank, spec.local_world_size, self._rounds).serialize())
        if group_rank == 0:
            infos = [_RoleInstanceInfo.deserialize(v) for v in self._of_all(store, "torchelastic/role_info/", group_world_size)]
            self._agree(store, 0, max(info.restarts for info in infos))
            for rank, numbers in enumerate(self._count(infos)):
                store.set(f"torchelastic/assigned_ranks/{rank}", json.dumps(numbers))
        self._agree(store, group_rank, None) if group_rank else None
        return self._numbered(spec.local_world_size, *json.loads(store.get(f"torchelastic/assigned_ranks/{group_rank}")))

    @staticmethod
    def _of_all(store, prefix, count):
        keys = [f"{prefix}{i}" for i in range(count)]
        store.wait(keys)
        return [store.get(key) for key in keys]

    @staticmethod
    def _count(infos):
        """For each machine [its first rank, of how many, its first one in its role, of how many]."""
        size, by_role = sum(i.local_world_size for i in infos), sorted(infos, key=lambda i: i.role)
        role_size = {role: sum(i.local_world_size for i in some) for role, some in groupby(by_role, key=lambda i: i.role)}
        first, first_of_role, counted = 0, dict.fromkeys(role_size, 0), []
        for info in infos:
            counted.append([first, size, first_of_role[info.role], role_size[info.role]])
            first += info.local_world_size
            first_of_role[info.role] += info.local_world_size
        return counted

    @staticmethod
    def _numbered(count, first, size, first_of_role, role_size):
        return [Worker(i, first + i, first_of_role + i, size, role_size) for i in range(count)]

    def _agree(self, store, group_rank, restarts):
        """All machines know the round of ranks by one name, and agree how often ranks were started again: machines that are new, too."""
        if group_rank == 0:
            store.set("cresset/attempt", json.dumps([uuid.uuid4().hex[:8], restarts]))
        self._worker_group.attempt, self._worker_group.restarts = json.loads(store.get("cresset/attempt"))
        self._rounds = self._worker_group.restarts

    @prof
    def _initialize_workers(self, worker_group):
        """Join the rendezvous and start the ranks."""
        self._rendezvous(worker_group)
        for local_rank, worker_id in self._start_workers(worker_group).items():
            worker_group.workers[local_rank].id = worker_id
        worker_group.state = WorkerState.HEALTHY

    @prof
    def _restart_workers(self, worker_group):
        """End the ranks and start them again, with new numbers."""
        self._rounds += 1
        self._stop_workers(worker_group, is_restart=True)
        worker_group.state = WorkerState.STOPPED
        self._initialize_workers(worker_group)

    # --- running

    @prof
    def run(self, role="default"):
        """Run the ranks to their end; a RunResult. SignalException after a signal, when they are ended."""
        begin, ended = time.monotonic(), False
        try:
            result = self._invoke_run(role)
            self._total_execution_time = int(time.monotonic() - begin)
            self._record_metrics(result)
            self._record_worker_events(result)
            return result
        except RendezvousGracefulExitError as error:
            _log.info("the rendezvous needs this machine no more: %s", error)
        except SignalException as error:
            _log.warning("Received %s death signal, shutting down workers", error.sigval)
            self._shutdown(error.sigval)
            ended = True
            raise
        finally:
            if not ended:
                self._shutdown()
            # It may take less than a second.
            self._total_execution_time = max(self._total_execution_time, time.monotonic() - begin)

    def _idle(self, seconds):
        time.sleep(seconds)

    def _invoke_run(self, role="default"):
        group = self._worker_group
        spec = group.spec
        self._initialize_workers(group)
        while True:
            self._idle(spec.monitor_interval)
            result = self._monitor_workers(group)
            group.state = result.state
            put_metric(f"workers.{spec.role}.remaining_restarts", self._remaining_restarts)
            put_metric(f"workers.{spec.role}.{result.state.name.lower()}", 1)
            if result.state == WorkerState.HEALTHY:
                if elsewhere := self._failed_elsewhere(group):
                    result = RunResult(WorkerState.FAILED, elsewhere=elsewhere)
                elif spec.rdzv_handler.num_nodes_waiting() > 0:
                    _log.info("[%s] machines have come: all ranks are started again", spec.role)
                    self._restart_workers(group)
                    continue
                else:
                    continue
            if result.state == WorkerState.SUCCEEDED:
                self._exit_barrier()
                return result
            if result.state not in (WorkerState.UNHEALTHY, WorkerState.FAILED):
                raise Exception(f"[{spec.role}] Worker group in {result.state.name} state")
            self._tell_failure(group, result)
            if self._remaining_restarts <= 0:
                self._stop_workers(group)
                group.state = WorkerState.FAILED
                self._leave_together(_FAILURE_PATIENCE)
                return result
            self._remaining_restarts -= 1
            self._before_restart(result)
            self._restart_workers(group)

    def _before_restart(self, result):
        """For who wants to tell of a failure that is no end."""

    def _tell_failure(self, group, result):
        """Let the other machines' agents know."""
        if group.store is not None and result.failures:
            rank, failure = min(result.failures.items(), key=lambda item: getattr(item[1], "seen", item[1].timestamp))
            with suppress(Exception):  # the store's machine may be what is gone
                group.store.set(_FAILED, f"machine {group.group_rank}: rank {rank}, exit code {failure.exitcode}")

    def _failed_elsewhere(self, group):
        """What another machine's agent told, or ""."""
        if group.store is None or not group.group_world_size or group.group_world_size == 1:
            return ""
        with suppress(RuntimeError):
            return group.store.get(_FAILED).decode() if group.store.check([_FAILED]) else ""
        return ""

    def _exit_barrier(self):
        """Wait for the agents whose ranks still run: one of them may need this machine's store."""
        if self._store is None or self._worker_group.group_world_size == 1:
            return
        try:
            store_util.barrier(self._store, self._worker_group.group_world_size, _BARRIER, self._exit_barrier_timeout)
            self._worker_group.spec.rdzv_handler.shutdown()
            self._leave_together(self._exit_barrier_timeout)
        except SignalException:
            raise
        except Exception as error:
            _log.warning("not all agents came to the end in %s s: %s", self._exit_barrier_timeout, error)

    def _leave_together(self, patience):
        """The machine that serves the store leaves when the others have read what they need."""
        if self._store is None or self._worker_group.group_world_size in (None, 1):
            return
        with suppress(RuntimeError):
            store_util.barrier(self._store, self._worker_group.group_world_size, f"{_BARRIER}/left", patience)

    # --- telling

    def _record_metrics(self, group_results):
        is_failed = group_results.is_failed()
        self._record_flakiness_metric(is_failed)
        spec = self._worker_group.spec
        restarted = self._remaining_restarts != spec.max_restarts
        put_metric(f"workers.{spec.role}.run_total", 1)
        for outcome, failed in (("success", False), ("failed", True)):
            for how, with_retries in (("with_retries", True), ("no_retries", False)):
                put_metric(f"workers.{spec.role}.run_{outcome}_{how}", int(is_failed == failed and restarted == with_retries))

    def _record_flakiness_metric(self, is_failed=False):
        spec = self._worker_group.spec
        flakiness = 100.0 if is_failed else 100.0 - 100.0 * (self._remaining_restarts + 1) / (spec.max_restarts + 1)
        put_metric(f"workers.{spec.role}.flakiness", int(flakiness))

    def _record_worker_events(self, result):
        for worker in self._worker_group.workers:
            failure = result.failures.get(worker.global_rank)
            state = "FAILED" if failure is not None else "SUCCEEDED" if not result.is_failed() else "TERMINATED"
            raw = json.dumps(failure.error_file_data) if isinstance(failure, ProcessFailure) else None
            record(self._construct_event(state, EventSource.WORKER, worker, raw), self._worker_group.spec.event_log_handler)

    def get_event_failed(self):
        """The event of this agent's failure."""
        import traceback

        return self._construct_event("FAILED", EventSource.AGENT, raw_error=traceback.format_exc())

    def get_event_succeeded(self):
        """The event of this agent's success."""
        return self._construct_event("SUCCEEDED", EventSource.AGENT)

    def _construct_event(self, state, source, worker=None, raw_error=None, duration_ms=None):
        group, spec, more = self._worker_group, self._worker_group.spec, {"total_restarts": 0}
        if worker:
            more = {"local_rank": worker.local_rank, "role_rank": [worker.role_rank], "role_world_size": [worker.role_world_size]}
        facts = {
            "run_id": spec.rdzv_handler.get_run_id(), "global_rank": worker.global_rank if worker else None,
            "group_rank": group.group_rank, "worker_id": str(worker.id) if worker else None, "role": spec.role, "hostname": _get_fq_hostname(),
            "state": state, "total_run_time": self._total_execution_time, "rdzv_backend": spec.rdzv_handler.get_backend(),
            "raw_error": raw_error, "metadata": json.dumps({"group_world_size": group.group_world_size, "entry_point": spec.get_entrypoint_name(), **more}),
            "agent_restarts": spec.max_restarts - self._remaining_restarts, "duration_ms": duration_ms,
        }  # fmt: skip
        return Event(f"torchelastic.worker.status.{state}", source, metadata=facts)
