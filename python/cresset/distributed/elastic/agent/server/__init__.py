"""Agents: the machine's part of a job."""

from .api import ElasticAgent, RunResult, SimpleElasticAgent, Worker, WorkerGroup, WorkerSpec, WorkerState

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]
