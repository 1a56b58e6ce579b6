"""How processes find each other: env://, tcp:// and file://, each a generator of (store, rank, world size)."""

import os
from urllib.parse import parse_qs, urlparse

from cresset._C_distributed import FileStore, PrefixStore, TCPStore

from . import _cluster
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers = {}


def register_rendezvous_handler(scheme, handler):
    """`handler(url, **kwargs)`, a generator of (store, rank, world size), serves `init_method="scheme://…"`. RuntimeError for a known scheme."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """The generator of (store, rank, world size) for a URL. RuntimeError for a scheme that nobody serves."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parsed = urlparse(url)
    if parsed.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    query = _query(parsed)
    if rank == world_size == -1:
        return _handlers[parsed.scheme](url, **kwargs)  # as it is: four slashes are not what urlunparse makes of them
    if rank != -1 or world_size != -1:
        assert "rank" not in query and "world_size" not in query, f"The url: {url} has node-specific arguments(rank, world_size) already."
        given = {"rank": rank} if rank != -1 else {}
        given |= {"world_size": world_size} if world_size != -1 else {}
        text = "&".join([parsed.query, *(f"{k}={v}" for k, v in given.items())]).strip("&")
        parsed = parsed._replace(query=text)
    return _handlers[parsed.scheme](parsed.geturl(), **kwargs)


def _query(parsed):
    return {key: values[-1] for key, values in parse_qs(parsed.query).items()}


def _missing(scheme, what):
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _file(url, **kwargs):
    parsed = urlparse(url)
    query, path = _query(parsed), parsed.netloc + parsed.path
    if not path:
        raise _missing("file", "path missing")
    if "rank" not in query:
        raise _missing("file", "rank parameter missing")
    if "world_size" not in query:
        raise _missing("file", "world size parameter missing")
    rank, world_size = int(query["rank"]), int(query["world_size"])
    yield FileStore(path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _agent_serves():
    """Does the launcher serve the store? Then ranks only connect, under a prefix of this attempt."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _store_at(host, port, rank, world_size, timeout, use_libuv=None):
    use_libuv = os.environ.get("USE_LIBUV", "1") == "1" if use_libuv is None else use_libuv
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if _agent_serves():
        attempt = os.environ.get("CRESSET_ATTEMPT") or os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"/worker/attempt_{attempt}", TCPStore(host, port, world_size, False, timeout))
    return TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True, use_libuv=use_libuv)


def _tcp(url, timeout=default_pg_timeout, **kwargs):
    parsed = urlparse(url)
    query = _query(parsed)
    if parsed.port is None:
        raise _missing("tcp", "port number missing")
    if "rank" not in query:
        raise _missing("tcp", "rank parameter missing")
    if "world_size" not in query:
        raise _missing("tcp", "world size parameter missing")
    rank, world_size = int(query["rank"]), int(query["world_size"])
    use_libuv = query["use_libuv"] == "1" if "use_libuv" in query else None
    yield _store_at(parsed.hostname, parsed.port, rank, world_size, timeout, use_libuv), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env(url, timeout=default_pg_timeout, **kwargs):
    query = _query(urlparse(url))

    def variable(name):
        value = _cluster.variable(name)
        if value is None:
            raise _missing("env", f"environment variable {name} expected, but not set")
        return value

    rank = int(query["rank"]) if "rank" in query else int(variable("RANK"))
    world_size = int(query["world_size"]) if "world_size" in query else int(variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield _store_at(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _env)
register_rendezvous_handler("file", _file)
