"""A rendezvous of machines that come and go.

Its state is one value at a backend: who takes part in the round, who waits for the next, when each was last heard of. A machine reads the
state, decides what to do next, changes its copy, and writes that back where nobody wrote meanwhile; else it decides again. What is to be done
is one function of the state and the time for each wish: to join, to leave, to close, to stay known as alive.
"""

import os
import pickle
import socket
import threading
import time
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import cresset.distributed as dist
from cresset._logging import logger_of
from cresset.distributed.elastic.events import NodeState, construct_and_record_rdzv_event

from .api import (
    RendezvousClosedError, RendezvousError, RendezvousHandler, RendezvousInfo, RendezvousStateError,
    RendezvousStoreInfo, RendezvousTimeoutError,
)
from .utils import _delay, _PeriodicTimer

__all__ = ["DynamicRendezvousHandler", "RendezvousBackend", "RendezvousSettings", "RendezvousTimeout", "Token", "create_handler"]

_log = logger_of(__name__)
Token = Any  # what a backend knows a version of the state by


class RendezvousBackend(ABC):
    """Where the state is kept."""

    @property
    @abstractmethod
    def name(self):
        """The backend's name."""

    @abstractmethod
    def get_state(self):
        """(bytes, token), or None where there is no state. RendezvousConnectionError, RendezvousStateError."""

    @abstractmethod
    def set_state(self, state, token=None):
        """(bytes, token, whether `state` was set) of the state now: it is set where `token` is that of the state. None for no answer."""


class RendezvousTimeout:
    """How long machines wait: for a round to be complete, for more machines after the least number, to close, to say that they live."""

    _DEFAULTS = {"join": 600, "last_call": 30, "close": 30, "heartbeat": 5}

    def __init__(self, join=None, last_call=None, close=None, heartbeat=None):
        for name, value in (("join", join), ("last_call", last_call), ("close", close), ("heartbeat", heartbeat)):
            value = timedelta(seconds=self._DEFAULTS[name]) if value is None else value
            if value <= timedelta(0):
                raise ValueError(f"The {name} timeout ({value}) must be positive.")
            setattr(self, "_" + name, value)

    join = property(lambda self: self._join, doc="For a round to be complete.")
    last_call = property(lambda self: self._last_call, doc="For more machines, when there are enough.")
    close = property(lambda self: self._close, doc="To close.")
    heartbeat = property(lambda self: self._heartbeat, doc="To say that this machine lives.")


@dataclass(frozen=True, repr=False)
class RendezvousSettings:
    """What a rendezvous is told."""

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int


@dataclass(eq=True, order=True, frozen=True)
class _NodeDesc:
    """A machine: its address, the agent's process, and which of that process's handlers."""

    addr: str
    pid: int
    local_id: int

    def __repr__(self):
        return f"{self.addr}_{self.pid}_{self.local_id}"


class _NodeDescGenerator:
    """Descriptions of this process's handlers."""

    def __init__(self):
        self._lock, self._next = threading.Lock(), 0

    def generate(self, local_addr=None):
        """The next one; this host's name where no address is given."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        return _NodeDesc(local_addr or socket.getfqdn(), os.getpid(), number)


class _RendezvousState:
    """Of a round: whether it is complete, until when more may join, who takes part as which number. And who waits for the next one."""

    def __init__(self):
        self.round = 0
        self.complete = False
        self.deadline = None
        self.closed = False
        self.participants = {}
        self.wait_list = set()
        self.redundancy_list = set()
        self.last_heartbeats = {}


def _remove_participant_epilogue(state, settings):
    """When someone left: a complete round ends with its last machine; one under way may have too few."""
    if state.complete:
        if not state.participants:
            state.complete = False
            state.round += 1
    elif len(state.participants) < settings.min_nodes:
        state.deadline = None


class _RendezvousStateHolder(ABC):
    """This machine's copy of the state."""

    @property
    @abstractmethod
    def state(self):
        """The copy."""

    @abstractmethod
    def sync(self):
        """Read the state, or write the copy where it changed: was it written? None when it was only read."""

    @abstractmethod
    def mark_dirty(self):
        """The copy changed."""


class _BackendRendezvousStateHolder(_RendezvousStateHolder):
    """The copy of what a backend has, read at most every `cache_duration` seconds; the dead are taken out of it."""

    def __init__(self, backend, settings, cache_duration=1):
        self._backend, self._settings, self._cache_duration = backend, settings, cache_duration
        self._state, self._token, self._dirty, self._last_sync, self._dead = _RendezvousState(), None, False, -1, []

    @property
    def state(self):
        return self._state

    def sync(self):
        """See the base."""
        written = None
        if self._dirty:
            answer = self._backend.set_state(pickle.dumps(self._state), self._token)
            written = False
            if answer is not None:
                bits, self._token, written = answer
        else:
            if self._cache_duration > 0 and self._last_sync >= max(time.monotonic() - self._cache_duration, 0):
                return None
            answer = self._backend.get_state()
            if answer is not None:
                bits, self._token = answer
        if answer is None and written is False:
            # Somebody wrote, and this backend does not say what: it is read.
            answer = self._backend.get_state()
            if answer is not None:
                bits, self._token = answer
        if answer is not None:
            self._state = self._read(bits)
        elif written is None:
            self._state = _RendezvousState()  # nobody wrote one yet
        if written and self._dead:
            _log.info("no sign of life from %s: taken out of the rendezvous %s", ", ".join(map(repr, self._dead)), self._settings.run_id)
        self._dirty, self._last_sync = False, time.monotonic()
        self._sanitize()
        return written

    @staticmethod
    def _read(bits):
        try:
            return pickle.loads(bits)
        except Exception as error:
            raise RendezvousStateError("The rendezvous state is corrupt. See inner exception for details.") from error

    def _sanitize(self):
        """Take out who was not heard of for too long."""
        state, settings = self._state, self._settings
        oldest = datetime.utcnow() - settings.keep_alive_interval * settings.keep_alive_max_attempt
        self._dead = [node for node, heard in state.last_heartbeats.items() if heard < oldest]
        left = False
        for node in self._dead:
            del state.last_heartbeats[node]
            left = state.participants.pop(node, None) is not None or left
            state.wait_list.discard(node)
            state.redundancy_list.discard(node)
        if left:
            _remove_participant_epilogue(state, settings)

    def mark_dirty(self):
        """See the base."""
        self._dirty = True


class _Action(Enum):
    """What is done next."""

    KEEP_ALIVE = 1
    ADD_TO_PARTICIPANTS = 2
    ADD_TO_WAIT_LIST = 3
    ADD_TO_REDUNDANCY_LIST = 4
    REMOVE_FROM_PARTICIPANTS = 5
    REMOVE_FROM_WAIT_LIST = 6
    REMOVE_FROM_REDUNDANCY_LIST = 7
    MARK_RENDEZVOUS_COMPLETE = 8
    MARK_RENDEZVOUS_CLOSED = 9
    SYNC = 10
    ERROR_CLOSED = 11
    ERROR_TIMEOUT = 12
    FINISH = 13


class _RendezvousContext:
    """What an action is chosen by."""

    def __init__(self, node, state, settings):
        self.node, self.state, self.settings = node, state, settings


class _RendezvousOpExecutor(ABC):
    """Does what a function of the state says, until that says FINISH."""

    @abstractmethod
    def run(self, state_handler, deadline, update_deadline=None):
        """`state_handler(context, deadline)` says what is next. RendezvousClosedError, RendezvousTimeoutError."""


class _DistributedRendezvousOpExecutor(_RendezvousOpExecutor):
    """The executor of one machine, on its copy of the state."""

    def __init__(self, node, state_holder, settings):
        self._node, self._state_holder, self._settings = node, state_holder, settings
        self._actions = {
            _Action.KEEP_ALIVE: self._keep_alive, _Action.ADD_TO_PARTICIPANTS: self._add_to_participants,
            _Action.ADD_TO_WAIT_LIST: self._add_to_wait_list, _Action.ADD_TO_REDUNDANCY_LIST: self._add_to_redundancy_list,
            _Action.REMOVE_FROM_PARTICIPANTS: self._remove_from_participants, _Action.REMOVE_FROM_WAIT_LIST: self._remove_from_wait_list,
            _Action.REMOVE_FROM_REDUNDANCY_LIST: self._remove_from_redundancy_list, _Action.MARK_RENDEZVOUS_COMPLETE: self._mark_complete,
            _Action.MARK_RENDEZVOUS_CLOSED: self._mark_closed,
        }  # fmt: skip

    def run(self, state_handler, deadline, update_deadline=None):
        """See the base. With `update_deadline` a machine that was one too many waits as long again as who joins now."""
        while True:
            self._state_holder.sync()
            self._state = self._state_holder.state
            action = state_handler(_RendezvousContext(self._node, self._state, self._settings), deadline)
            if action == _Action.FINISH:
                return
            if action == _Action.ERROR_CLOSED:
                raise RendezvousClosedError
            if action == _Action.ERROR_TIMEOUT:
                raise RendezvousTimeoutError
            if action == _Action.SYNC:
                _delay(seconds=1)
                continue
            self._actions[action]()
            if action == _Action.REMOVE_FROM_REDUNDANCY_LIST and update_deadline:
                deadline = update_deadline(self._settings.timeout.join)
            self._state_holder.mark_dirty()

    def _keep_alive(self):
        self._state.last_heartbeats[self._node] = datetime.utcnow()

    def _add_to_participants(self):
        state, settings = self._state, self._settings
        state.wait_list.discard(self._node)
        state.participants[self._node] = 0  # numbers are given at the end
        self._keep_alive()
        if len(state.participants) == settings.min_nodes:
            state.deadline = datetime.utcnow() + settings.timeout.last_call
        if len(state.participants) == settings.max_nodes:
            self._mark_complete()

    def _add_to_wait_list(self):
        self._state.redundancy_list.discard(self._node)
        self._state.wait_list.add(self._node)
        self._keep_alive()

    def _add_to_redundancy_list(self):
        self._state.redundancy_list.add(self._node)
        self._keep_alive()

    def _remove_from_participants(self):
        del self._state.participants[self._node]
        self._state.last_heartbeats.pop(self._node, None)
        _remove_participant_epilogue(self._state, self._settings)

    def _remove_from_wait_list(self):
        self._state.wait_list.remove(self._node)
        self._state.last_heartbeats.pop(self._node, None)

    def _remove_from_redundancy_list(self):
        self._state.redundancy_list.discard(self._node)
        self._state.last_heartbeats.pop(self._node, None)

    def _mark_complete(self):
        self._state.complete, self._state.deadline = True, None
        for rank, node in enumerate(sorted(self._state.participants)):
            self._state.participants[node] = rank

    def _mark_closed(self):
        self._state.closed = True


def _should_keep_alive(ctx):
    """Is it time to say that this machine lives?"""
    heard = ctx.state.last_heartbeats.get(ctx.node)
    return heard is not None and heard <= datetime.utcnow() - ctx.settings.keep_alive_interval


def _wait(ctx):
    return _Action.KEEP_ALIVE if _should_keep_alive(ctx) else _Action.SYNC


class _RendezvousExitOp:
    """To leave the round."""

    def __call__(self, ctx, deadline):
        if ctx.node not in ctx.state.participants:
            return _Action.FINISH
        return _Action.ERROR_TIMEOUT if time.monotonic() > deadline else _Action.REMOVE_FROM_PARTICIPANTS


class _RendezvousJoinOp:
    """To take part in the next complete round."""

    _ROLLBACK = 5  # seconds after the deadline, in which a machine takes itself out

    def __call__(self, ctx, deadline):
        state, node = ctx.state, ctx.node
        if state.closed:
            return _Action.ERROR_CLOSED
        full = len(state.participants) >= ctx.settings.max_nodes
        if node in state.redundancy_list:
            return _wait(ctx) if full else _Action.REMOVE_FROM_REDUNDANCY_LIST
        takes_part = node in state.participants
        if state.complete and takes_part:
            return _Action.FINISH
        now = time.monotonic()
        if now > deadline:
            if now <= deadline + self._ROLLBACK:
                if takes_part:
                    return _Action.REMOVE_FROM_PARTICIPANTS
                if node in state.wait_list:
                    return _Action.REMOVE_FROM_WAIT_LIST
            return _Action.ERROR_TIMEOUT
        if state.complete:
            if node not in state.wait_list:
                return _Action.ADD_TO_REDUNDANCY_LIST if full else _Action.ADD_TO_WAIT_LIST
        elif not takes_part:
            return _Action.ADD_TO_PARTICIPANTS
        elif state.deadline and len(state.participants) >= ctx.settings.min_nodes and state.deadline < datetime.utcnow():
            return _Action.MARK_RENDEZVOUS_COMPLETE
        return _wait(ctx)


class _RendezvousCloseOp:
    """To close the rendezvous."""

    def __call__(self, ctx, deadline):
        if ctx.state.closed:
            return _Action.FINISH
        return _Action.ERROR_TIMEOUT if time.monotonic() > deadline else _Action.MARK_RENDEZVOUS_CLOSED


class _RendezvousKeepAliveOp:
    """To stay known as alive."""

    def __call__(self, ctx, deadline):
        if time.monotonic() > deadline:
            return _Action.ERROR_TIMEOUT
        return _Action.KEEP_ALIVE if _should_keep_alive(ctx) else _Action.FINISH


class DynamicRendezvousHandler(RendezvousHandler):
    """One machine's side of a rendezvous whose machines come and go; from_backend makes one."""

    _nodes = _NodeDescGenerator()

    @classmethod
    def from_backend(
        cls, run_id, store, backend, min_nodes, max_nodes, local_addr=None, timeout=None, keep_alive_interval=5, keep_alive_max_attempt=3
    ):
        """The handler of a job: `store` for its members, `backend` for the state. Times in seconds, or as timedelta."""
        if not isinstance(keep_alive_interval, timedelta):
            keep_alive_interval = timedelta(seconds=keep_alive_interval)
        node = cls._nodes.generate(local_addr)
        settings = RendezvousSettings(run_id, min_nodes, max_nodes, timeout or RendezvousTimeout(), keep_alive_interval, keep_alive_max_attempt)
        return cls(node, settings, backend.name, store, _BackendRendezvousStateHolder(backend, settings))

    def __init__(self, node, settings, backend_name, store, state_holder):
        if not settings.run_id:
            raise ValueError("The run id must be a non-empty string.")
        if settings.min_nodes < 1:
            raise ValueError(f"The minimum number of nodes ({settings.min_nodes}) must be greater than zero.")
        if settings.max_nodes < settings.min_nodes:
            raise ValueError(
                f"The maximum number of nodes ({settings.max_nodes}) must be greater than or equal to the minimum number of nodes ({settings.min_nodes})."
            )
        self._this_node, self._settings, self._backend_name, self._store, self._state_holder = node, settings, backend_name, store, state_holder
        self._op_executor = _DistributedRendezvousOpExecutor(node, state_holder, settings)
        self._heartbeat_lock = threading.Lock()
        self._keep_alive_timer = None
        self._shared_tcp_store_server, self._is_shut_down = None, False
        self._works = False  # in a round that was complete

    def _record(self, message, node_state=NodeState.RUNNING, rank=None):
        construct_and_record_rdzv_event(
            name=f"{type(self).__name__}", run_id=self._settings.run_id, message=message, node_state=node_state, hostname=self._this_node.addr,
            pid=self._this_node.pid, local_id=self._this_node.local_id, rank=rank,
        )  # fmt: skip

    def _recorded(self, what, body):
        try:
            return body()
        except Exception as error:
            self._record(f"{what}: {type(error).__name__}: {error}", NodeState.FAILED)
            raise

    @property
    def settings(self):
        """What the rendezvous was told."""
        return self._settings

    def get_backend(self):
        """The backend's name."""
        return self._backend_name

    def get_run_id(self):
        """The name of the job."""
        return self._settings.run_id

    @property
    def use_agent_store(self):
        """True, unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE is 1."""
        return os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def next_rendezvous(self):
        """Leave the round, and take part in the next one that is complete. RendezvousClosedError, RendezvousTimeoutError."""
        return self._recorded("next_rendezvous", self._next)

    def _next(self):
        self._stop_heartbeats()
        if self._state_holder.state.round == 0:
            _delay(seconds=(0, 0.3))  # machines that are started together do not all write at once
        deadline = self._deadline(self._settings.timeout.join)
        self._op_executor.run(_RendezvousExitOp(), deadline)
        self._op_executor.run(_RendezvousJoinOp(), deadline, self._deadline)
        self._start_heartbeats()
        state = self._state_holder.state
        rank, world_size = state.participants[self._this_node], len(state.participants)
        self._record(f"joined the round {state.round} as machine {rank} of {world_size}", rank=rank)
        store = dist.PrefixStore(f"torch.rendezvous.{self._settings.run_id}.{state.round}", self._store)
        return RendezvousInfo(store, rank, world_size, self._bootstrap(rank, store))

    def _bootstrap(self, rank, store):
        """Where ranks find their store: machine 0 serves it."""
        port = None
        if rank == 0 and self.use_agent_store:
            if self._shared_tcp_store_server is None:
                self._shared_tcp_store_server = self._create_tcp_store_server(self._this_node.addr, 0)
            port = self._shared_tcp_store_server.port
        return RendezvousStoreInfo.build(rank, store, local_addr=self._this_node.addr, server_port=port)

    def _create_tcp_store_server(self, master_addr, master_port):
        return dist.TCPStore(host_name=master_addr, port=master_port, is_master=True, multi_tenant=True)

    def is_closed(self):
        """Is it closed?"""

        def ask():
            with self._heartbeat_lock:
                self._state_holder.sync()
                return self._state_holder.state.closed

        return self._recorded("is_closed", ask)

    def set_closed(self):
        """Close it; nobody may join any more. RendezvousTimeoutError."""

        def close():
            with self._heartbeat_lock:
                self._close()

        self._recorded("set_closed", close)

    def num_nodes_waiting(self):
        """How many machines wait for the next round. This one counts as well where the others have taken it out of the round that it still works in,
        for they had not heard of it (a machine that was too busy): it must join again, or both halves would go on for ever."""

        def ask():
            with self._heartbeat_lock:
                self._state_holder.sync()
                state = self._state_holder.state
                return len(state.wait_list) + (self._works and self._this_node not in state.participants)

        return self._recorded("num_nodes_waiting", ask)

    def shutdown(self):
        """Stop the signs of life and close it; whether that worked."""
        self._stop_heartbeats()
        if self._is_shut_down:
            return True

        def close():
            try:
                self._close()
                self._is_shut_down = True
                return True
            except RendezvousError as error:
                _log.warning("%s could not close the rendezvous %s: %r", self._this_node, self._settings.run_id, error)
                return False

        return self._recorded("shutdown", close)

    def _close(self):
        self._op_executor.run(_RendezvousCloseOp(), self._deadline(self._settings.timeout.close))

    @staticmethod
    def _deadline(timeout):
        return time.monotonic() + timeout.total_seconds()

    @staticmethod
    def _keep_alive_weak(weak_self):
        handler = weak_self()
        if handler is not None:
            handler._keep_alive()

    def _keep_alive(self):
        with self._heartbeat_lock:
            try:
                self._op_executor.run(_RendezvousKeepAliveOp(), self._deadline(self._settings.timeout.heartbeat))
            except RendezvousError as error:
                _log.warning("%s could not say that it lives: %r", self._this_node, error)

    def _start_heartbeats(self):
        timer = _PeriodicTimer(self._settings.keep_alive_interval, self._keep_alive_weak, weakref.ref(self))
        timer.set_name(f"RendezvousKeepAliveTimer_{self._this_node.local_id}")
        timer.start()
        self._keep_alive_timer, self._works = timer, True

    def _stop_heartbeats(self):
        self._works = False
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()


def _seconds(params, name):
    value = params.get_as_int(f"{name}_timeout")
    return None if value is None else timedelta(seconds=value)


def create_handler(store, backend, params):
    """The handler of parameters: `join_timeout`, `last_call_timeout`, `close_timeout`, `heartbeat_timeout`, `keep_alive_interval`, in seconds."""
    try:
        timeout = RendezvousTimeout(*(_seconds(params, name) for name in ("join", "last_call", "close", "heartbeat")))
        interval = params.get("keep_alive_interval", 5)
        return DynamicRendezvousHandler.from_backend(
            params.run_id, store, backend, params.min_nodes, params.max_nodes, params.local_addr, timeout,
            interval if isinstance(interval, timedelta) else float(interval), params.get_as_int("keep_alive_max_attempt", 3),
        )  # fmt: skip
    except Exception as error:
        construct_and_record_rdzv_event(message=f"{type(error).__name__}: {error}", run_id=params.run_id, node_state=NodeState.FAILED)
        raise
