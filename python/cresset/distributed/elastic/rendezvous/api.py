"""What a rendezvous is: machines find each other and get numbers. Errors, parameters, and the table of backends."""

import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass

from cresset.distributed.elastic.utils.distributed import get_free_port

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError", "RendezvousHandler",
    "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]


class RendezvousError(Exception):
    """A rendezvous failed."""


class RendezvousClosedError(RendezvousError):
    """It is closed: nobody may join any more."""


class RendezvousTimeoutError(RendezvousError):
    """Not enough machines came in time."""


class RendezvousConnectionError(RendezvousError):
    """The place where machines meet cannot be reached."""


class RendezvousStateError(RendezvousError):
    """What is written there cannot be read."""


class RendezvousGracefulExitError(RendezvousError):
    """This machine is not needed: it leaves without an error."""


@dataclass
class RendezvousStoreInfo:
    """Address and port of the store that ranks are to use."""

    MASTER_ADDR_KEY = "MASTER_ADDR"
    MASTER_PORT_KEY = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank, store, local_addr, server_port=None):
        """Machine 0 tells its address, with the port of its server or a free one; all machines read it."""
        if rank == 0:
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, (local_addr or socket.getfqdn()).encode())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(server_port or get_free_port()).encode())
        address = store.get(RendezvousStoreInfo.MASTER_ADDR_KEY).decode()
        return RendezvousStoreInfo(address, int(store.get(RendezvousStoreInfo.MASTER_PORT_KEY).decode()))


class RendezvousInfo:
    """What a machine gets: a store of this round, its number, the number of machines, and where ranks find their store."""

    def __init__(self, store, rank, world_size, bootstrap_store_info):
        self._store, self._rank, self._world_size, self._bootstrap_store_info = store, rank, world_size, bootstrap_store_info

    store = property(lambda self: self._store, doc="A store of this round.")
    rank = property(lambda self: self._rank, doc="This machine's number.")
    world_size = property(lambda self: self._world_size, doc="How many machines there are.")
    bootstrap_store_info = property(lambda self: self._bootstrap_store_info, doc="Where ranks find their store, or None.")


class RendezvousHandler(ABC):
    """One machine's side of a rendezvous."""

    @abstractmethod
    def get_backend(self):
        """The backend's name."""

    @property
    def use_agent_store(self):
        """May ranks use the store that the agent serves?"""
        return False

    @abstractmethod
    def next_rendezvous(self):
        """Join the next round; a RendezvousInfo when it is complete. RendezvousClosedError, RendezvousTimeoutError and others."""

    @abstractmethod
    def is_closed(self):
        """Is it closed?"""

    @abstractmethod
    def set_closed(self):
        """Close it."""

    @abstractmethod
    def num_nodes_waiting(self):
        """How many machines wait for the next round."""

    @abstractmethod
    def get_run_id(self):
        """The name of the job."""

    @abstractmethod
    def shutdown(self):
        """Leave, and close it; whether that worked."""


class RendezvousParameters:
    """What a handler is made of: backend, endpoint, job, least and most machines, this one's address, and more by name."""

    def __init__(self, backend, endpoint, run_id, min_nodes, max_nodes, local_addr=None, **kwargs):
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the minimum number of rendezvous nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id, self.min_nodes, self.max_nodes = backend, endpoint, run_id, min_nodes, max_nodes
        self.config, self.local_addr = kwargs, local_addr

    def get(self, key, default=None):
        """A value of `config`."""
        return self.config.get(key, default)

    def get_as_bool(self, key, default=None):
        """A value as a bool: 1, true, t, yes, y, and their opposites. ValueError for others."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        if str(value).lower() in ("1", "true", "t", "yes", "y"):
            return True
        if str(value).lower() in ("0", "false", "f", "no", "n"):
            return False
        raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")

    def get_as_int(self, key, default=None):
        """A value as an int. ValueError for others."""
        value = self.get(key, default)
        if value is None:
            return value
        try:
            return int(value)
        except ValueError as error:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid integer value.") from error


class RendezvousHandlerRegistry:
    """Functions that make handlers, by backend."""

    def __init__(self):
        self._registry = {}

    def register(self, backend, creator):
        """`creator(params)` makes handlers of the backend. ValueError where another one does already."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._registry.get(backend)
        if known is not None and known != creator:
            raise ValueError(f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already registered with '{known}'.")
        self._registry[backend] = creator

    def create_handler(self, params):
        """The handler of these parameters. ValueError for an unknown backend."""
        creator = self._registry.get(params.backend)
        if creator is None:
            raise ValueError(f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?")
        handler = creator(params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend '{params.backend}'.")
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
