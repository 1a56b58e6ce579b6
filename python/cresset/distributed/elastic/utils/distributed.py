"""Stores on free ports."""

import datetime
import os
import time
from contextlib import closing

from cresset._C_distributed import DistNetworkError, TCPStore

from .api import get_socket_with_port
from .logging import get_logger
from .store import barrier

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]

_log = get_logger(__name__)


def create_c10d_store(
    is_server, server_addr, server_port=-1, world_size=1, timeout=60 * 10, wait_for_workers=True, retries=3, use_libuv=None
):
    """A TCPStore of `world_size` processes; port -1 tries free ones, for a store of one process. ValueError for more.

    With `wait_for_workers` it returns when all have come.
    """
    if server_port == -1 and world_size > 1:
        raise ValueError(f"server_port must be specified when world_size > 1, got server_port={server_port}, world_size={world_size}")
    options = {"use_libuv": os.environ.get("USE_LIBUV", "1") == "1" if use_libuv is None else use_libuv}
    for attempt in range(max(1, retries)):
        port = get_free_port() if server_port == -1 else server_port
        try:
            store = TCPStore(
                server_addr, port, world_size, is_server, datetime.timedelta(seconds=timeout), wait_for_workers=False, **options
            )
        except DistNetworkError as error:
            if server_port != -1 or "in use" not in str(error) or attempt + 1 == retries:
                raise
            _log.warning("port %s was taken meanwhile: trying another", port)
            time.sleep(0.1)
            continue
        if wait_for_workers:
            barrier(store, world_size, "_tcp_store", timeout)
        return store
    raise RuntimeError("create_c10d_store: no port was free.")


def get_free_port():
    """A port that was free a moment ago."""
    with closing(get_socket_with_port()) as listening:
        return listening.getsockname()[1]
