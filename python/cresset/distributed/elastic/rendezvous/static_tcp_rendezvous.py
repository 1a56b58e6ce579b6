"""A rendezvous of machines that have their numbers already: a store, which machine 0 serves."""

import os
from datetime import timedelta

import cresset.distributed as dist

from .api import RendezvousHandler, RendezvousInfo, RendezvousStoreInfo
from .utils import parse_rendezvous_endpoint

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

_TIMEOUT = 600


class StaticTCPRendezvous(RendezvousHandler):
    """Machine `rank` of `world_size`. Every round is as the first one; each has keys of its own."""

    def __init__(self, master_addr, master_port, rank, world_size, run_id, timeout):
        self.master_addr, self.master_port, self.rank, self.world_size = master_addr, master_port, rank, world_size
        self.run_id, self.timeout = run_id, timedelta(seconds=timeout)
        self._store, self._round = None, 0

    def get_backend(self):
        """"static"."""
        return "static"

    @property
    def use_agent_store(self):
        """True, unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE is 1."""
        return os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def next_rendezvous(self):
        """The next round, when the store is there. DistStoreError where it does not come in time."""
        if self._store is None:
            self._store = dist.TCPStore(
                self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout, wait_for_workers=False, multi_tenant=True
            )
            self.master_port = self._store.port
        store = dist.PrefixStore(f"{self.run_id}/{self._round}", self._store)
        self._round += 1
        return RendezvousInfo(store, self.rank, self.world_size, RendezvousStoreInfo(self.master_addr, self.master_port))

    def is_closed(self):
        """False."""
        return False

    def set_closed(self):
        """Nothing."""

    def num_nodes_waiting(self):
        """0: nobody joins."""
        return 0

    def get_run_id(self):
        """The name of the job."""
        return self.run_id

    def shutdown(self):
        """True."""
        return True


def create_rdzv_handler(params):
    """The handler of parameters: endpoint host:port, `rank`, `timeout` in seconds. ValueError without a rank or a port."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters.Try add --node-rank to the cmd request")
    host, port = parse_rendezvous_endpoint((params.endpoint or "").strip(), -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {params.endpoint}. Try launching with --master-port")
    return StaticTCPRendezvous(host, port, int(params.config["rank"]), params.max_nodes, params.run_id, int(params.get("timeout", _TIMEOUT)))
