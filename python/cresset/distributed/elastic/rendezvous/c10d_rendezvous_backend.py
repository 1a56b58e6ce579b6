"""The state of a rendezvous in a store of this package."""

import binascii
import os
import tempfile
from base64 import b64decode, b64encode
from datetime import timedelta

from cresset._C_distributed import FileStore, TCPStore
from cresset._logging import logger_of

from .api import RendezvousConnectionError, RendezvousError, RendezvousStateError
from .dynamic_rendezvous import RendezvousBackend
from .utils import _matches_machine_hostname, parse_rendezvous_endpoint

__all__ = ["C10dRendezvousBackend", "create_backend"]

_log = logger_of(__name__)
DEFAULT_PORT = 29400
_CONNECTION = "The connection to the C10d store has failed. See inner exception for details."


class C10dRendezvousBackend(RendezvousBackend):
    """A key of the store has the state; compare_set changes it, so that of two machines one succeeds. The token is what was there."""

    _NOTHING = "bm90aGluZw--"  # what the key has before there is a state; no base64

    def __init__(self, store, run_id):
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store, self._key = store, "torch.rendezvous." + run_id
        self._compare_set("", self._NOTHING)

    @property
    def name(self):
        """"c10d"."""
        return "c10d"

    def _compare_set(self, expected, desired):
        try:
            return self._store.compare_set(self._key, expected, desired)
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise RendezvousConnectionError(_CONNECTION) from error

    def _decoded(self, text):
        if text == self._NOTHING.encode():
            return None
        try:
            return b64decode(text, validate=True), text
        except binascii.Error as error:
            raise RendezvousStateError("The state object is corrupt. See inner exception for details.") from error

    def get_state(self):
        """(state, token), or None where there is no state."""
        return self._decoded(self._compare_set(self._NOTHING, self._NOTHING))

    def set_state(self, state, token=None):
        """(state, token, whether it was set): it is where `token` is that of the state now, or None and there is none."""
        if token is not None and not isinstance(token, bytes):
            now = self.get_state()
            return None if now is None else (*now, False)
        desired = b64encode(state)
        there = self._compare_set(self._NOTHING if token is None else token.decode(), desired.decode())
        found = self._decoded(there)
        return None if found is None else (*found, there == desired)


def _file_store(params):
    path = params.endpoint.strip() if params.endpoint else ""
    if not path:
        try:
            handle, path = tempfile.mkstemp()
            os.close(handle)
        except OSError as error:
            raise RendezvousError("The file creation for C10d store has failed. See inner exception for details.") from error
    try:
        return FileStore(path)
    except (ValueError, RuntimeError) as error:
        raise RendezvousConnectionError(_CONNECTION) from error


def _tcp_store(params):
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=DEFAULT_PORT)
    chosen = params.get_as_bool("is_host")
    serves = chosen if chosen is not None else _matches_machine_hostname(host)
    seconds = params.get_as_int("read_timeout", 60)
    if seconds <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    for is_server in dict.fromkeys((serves, False)):
        try:
            store = TCPStore(host, port, is_master=is_server, multi_tenant=True, timeout=timedelta(seconds=seconds))
        except (ValueError, RuntimeError, TimeoutError) as error:
            # Another launcher of this machine may serve it already.
            if not is_server or chosen is not None:
                raise RendezvousConnectionError(_CONNECTION) from error
            continue
        if is_server:
            _log.info("Process %s hosts the TCP store for the C10d rendezvous backend.", os.getpid())
        return store


def create_backend(params):
    """(backend, store) of parameters: `store_type` tcp (endpoint host:port; `is_host`, `read_timeout`) or file (endpoint a path)."""
    kind = params.get("store_type", "tcp").strip().lower()
    if kind not in ("file", "tcp"):
        raise ValueError("Invalid store type given. Currently only supports file and tcp.")
    store = _file_store(params) if kind == "file" else _tcp_store(params)
    return C10dRendezvousBackend(store, params.run_id), store
