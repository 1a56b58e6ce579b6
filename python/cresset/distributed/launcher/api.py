"""Ranks of a function or a program, launched from Python on this machine as its part of a job."""

import os
import sys
import uuid
from dataclasses import dataclass, field

import cresset.distributed.elastic.rendezvous.registry as rdzv_registry
from cresset.distributed.elastic import events
from cresset.distributed.elastic.agent.server.api import WorkerSpec
from cresset.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from cresset.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException
from cresset.distributed.elastic.multiprocessing.errors import ChildFailedError
from cresset.distributed.elastic.rendezvous import RendezvousParameters
from cresset.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """A job: from `min_nodes` to `max_nodes` machines of `nproc_per_node` ranks, how they find each other, restarts, logs.

    `rdzv_configs` has more for the rendezvous, by name; `rdzv_timeout` is an older form of its "timeout". `metrics_cfg` and `tee` are as there.
    `numa_options`: cresset.numa.binding.NumaOptions, which processors ranks run on.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    shutdown_timeout: int = 30
    numa_options: object = None

    def __post_init__(self):
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.nproc_per_node > 1 and "OMP_NUM_THREADS" not in os.environ:
            os.environ["OMP_NUM_THREADS"] = "1"  # ranks share the cores of this machine


class elastic_launch:
    """`elastic_launch(config, entrypoint)(*args)` runs the ranks to their end: {rank: value of the function}. ChildFailedError when one failed."""

    def __init__(self, config, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args))


def _get_entrypoint_name(entrypoint, args):
    """The function's name; of a program for Python, the script."""
    if entrypoint is None:
        return ""
    if not isinstance(entrypoint, str):
        return entrypoint.__qualname__
    if entrypoint == sys.executable:
        return next((arg for arg in args if arg[0] != "-"), "")
    return entrypoint


def _get_addr_and_port(params):
    """(address, port) that ranks are told, for static; (None, None) otherwise."""
    if params.backend != "static":
        return None, None
    host, port = parse_rendezvous_endpoint((params.endpoint or "").strip(), -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {params.endpoint}. Try launching with --master-port")
    return host, port or None


def launch_agent(config, entrypoint, args):
    """Run an agent to its end: {rank: value}. ChildFailedError, SignalException, or what went wrong in the agent."""
    config.run_id = config.run_id or str(uuid.uuid4().int)
    name = _get_entrypoint_name(entrypoint, args)
    params = RendezvousParameters(
        config.rdzv_backend, config.rdzv_endpoint, config.run_id, config.min_nodes, config.max_nodes, config.local_addr, **config.rdzv_configs
    )
    address, port = _get_addr_and_port(params)
    handler = rdzv_registry.get_rendezvous_handler(params)
    closes = True
    try:
        spec = WorkerSpec(
            role=config.role, local_world_size=config.nproc_per_node, entrypoint=entrypoint, args=tuple(args), rdzv_handler=handler,
            max_restarts=config.max_restarts, monitor_interval=config.monitor_interval, master_addr=address, master_port=port,
            local_addr=config.local_addr, event_log_handler=config.event_log_handler,
            numa_options=config.numa_options,
        )  # fmt: skip
        agent = LocalElasticAgent(
            spec=spec, logs_specs=config.logs_specs, start_method=config.start_method, log_line_prefix_template=config.log_line_prefix_template,
            shutdown_timeout=config.shutdown_timeout,
        )  # fmt: skip
        result = agent.run()
        events.record(agent.get_event_succeeded(), config.event_log_handler)
        if result is None:
            return {}
        if result.is_failed():
            if result.failures:
                raise ChildFailedError(name, result.failures)
            raise RuntimeError(f"{name} FAILED on another machine: {result.elsewhere}. Its launcher says more.")
        return result.return_values
    except ChildFailedError:
        raise
    except SignalException:
        closes = False  # this machine may come back; the others go on
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    except Exception:
        if "agent" in locals():
            events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    finally:
        if closes:
            handler.shutdown()
