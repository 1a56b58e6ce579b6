"""The agent whose ranks are processes of this machine."""

import os
import signal
import time
from string import Template

from cresset._logging import logger_of
from cresset.distributed.elastic.metrics import prof
from cresset.distributed.elastic.multiprocessing import start_processes
from cresset.distributed.elastic.multiprocessing.errors import ChildFailedError
from cresset.distributed.elastic.utils import macros

from .api import RunResult, SimpleElasticAgent, WorkerState

__all__ = ["LocalElasticAgent"]

_log = logger_of(__name__)
_LOOK = 0.01  # seconds between looks at processes: fine enough to see who failed first


class LocalElasticAgent(SimpleElasticAgent):
    """Ranks are processes, with torchrun's variables. `log_line_prefix_template` has ${role_name}, ${local_rank} and ${rank}.

    At the end it waits `exit_barrier_timeout` seconds for the other machines. Ranks have `shutdown_timeout` seconds to end after a signal.
    """

    def __init__(self, spec, logs_specs, start_method="spawn", exit_barrier_timeout=300, log_line_prefix_template=None, shutdown_timeout=30):
        super().__init__(spec, exit_barrier_timeout)
        self._start_method, self._pcontext, self._logs_specs, self._shutdown_timeout = start_method, None, logs_specs, shutdown_timeout
        self._prefix = log_line_prefix_template

    def _environment(self, group, worker):
        spec = group.spec
        made = {
            "LOCAL_RANK": str(worker.local_rank), "RANK": str(worker.global_rank), "GROUP_RANK": str(group.group_rank), "ROLE_RANK": str(worker.role_rank),
            "ROLE_NAME": spec.role, "LOCAL_WORLD_SIZE": str(spec.local_world_size), "WORLD_SIZE": str(worker.world_size),
            "GROUP_WORLD_SIZE": str(group.group_world_size), "ROLE_WORLD_SIZE": str(worker.role_world_size), "MASTER_ADDR": group.master_addr,
            "MASTER_PORT": str(group.master_port), "TORCHELASTIC_RESTART_COUNT": str(group.restarts),
            "TORCHELASTIC_MAX_RESTARTS": str(spec.max_restarts), "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
            "TORCHELASTIC_USE_AGENT_STORE": str(spec.rdzv_handler.use_agent_store), "CRESSET_ATTEMPT": group.attempt,
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        }  # fmt: skip
        if "OMP_NUM_THREADS" in os.environ:
            made["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        return made

    @prof
    def _start_workers(self, worker_group):
        spec = worker_group.spec
        args, envs, prefixes = {}, {}, {} if self._prefix else None
        for worker in worker_group.workers:
            rank = worker.local_rank
            envs[rank] = self._environment(worker_group, worker)
            args[rank] = tuple(macros.substitute(list(spec.args), str(rank)))
            if self._prefix:
                prefixes[rank] = Template(self._prefix).safe_substitute(role_name=spec.role, rank=worker.global_rank, local_rank=rank)
        self._pcontext = start_processes(spec.role, spec.entrypoint, args, envs, self._logs_specs, prefixes, self._start_method, spec.numa_options)
        return self._pcontext.pids()

    @prof
    def _stop_workers(self, worker_group, is_restart=False):
        self._shutdown(is_restart=is_restart)

    def _shutdown(self, death_sig=signal.SIGTERM, is_restart=False):
        if self._pcontext:
            self._pcontext.close(death_sig, self._shutdown_timeout)

    def _idle(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(_LOOK, left))
            self._pcontext.look()

    def _before_restart(self, result):
        spec = self._worker_group.spec
        report = ChildFailedError(spec.get_entrypoint_name(), result.failures) if result.failures else f"FAILED on another machine: {result.elsewhere}."
        _log.warning("%s\nrestart %s of %s", report, spec.max_restarts - self._remaining_restarts, spec.max_restarts)

    @prof
    def _monitor_workers(self, worker_group):
        pids = {worker.id for worker in worker_group.workers}
        if pids != set(self._pcontext.pids().values()):
            return RunResult(WorkerState.UNKNOWN)
        result = self._pcontext.wait(0)
        if not result:
            return RunResult(WorkerState.HEALTHY)
        rank_of = {worker.local_rank: worker.global_rank for worker in worker_group.workers}
        if result.is_failed():
            return RunResult(WorkerState.FAILED, failures={rank_of[local]: failure for local, failure in result.failures.items()})
        return RunResult(WorkerState.SUCCEEDED, return_values={rank_of[local]: value for local, value in result.return_values.items()})
