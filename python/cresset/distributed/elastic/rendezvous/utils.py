"""Parts of rendezvous: settings as text, addresses, delays, and a timer that calls a function again and again."""

import ipaddress
import random
import re
import socket
import threading
import time
import weakref

__all__ = ["parse_rendezvous_endpoint"]


def _parse_rendezvous_config(config_str):
    """{key: value} of "key=value,…". ValueError for other texts."""
    config = {}
    if not config_str.strip():
        return config
    for pair in config_str.strip().split(","):
        key, _, value = (part.strip() for part in pair.partition("="))
        if not key:
            raise ValueError("The rendezvous configuration string must be in format <key1>=<value1>,...,<keyN>=<valueN>.")
        if not value:
            raise ValueError(f"The rendezvous configuration option '{key}' must have a value specified.")
        config[key] = value
    return config


def _try_parse_port(port_str):
    """The number of a text of digits, else None."""
    return int(port_str) if port_str and re.fullmatch("[0-9]+", port_str) else None


def parse_rendezvous_endpoint(endpoint, default_port):
    """(host, port) of "host", "host:port" or "[address]:port"; localhost for none. ValueError for others."""
    endpoint = (endpoint or "").strip()
    if not endpoint:
        return "localhost", default_port
    if endpoint[0] == "[" and endpoint[-1] == "]":
        host, rest = endpoint, []
    else:
        host, *rest = endpoint.rsplit(":", 1)
    port = _try_parse_port(rest[0]) if rest else default_port
    if port is None or port >= 2**16:
        raise ValueError(f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and 65536.")
    if not re.fullmatch(r"[\w\.:-]+", host.removeprefix("[").removesuffix("]")):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{endpoint}' must be a dot-separated list of labels, an IPv4 address, or an IPv6 address."
        )
    return host.removeprefix("[").removesuffix("]"), port


def _addresses(host):
    """(name or "", address) of each address of a host."""
    return [(info[3], info[4][0]) for info in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)]


def _matches_machine_hostname(host):
    """Is this a name or an address of this machine?"""
    if host == "localhost":
        return True
    try:
        if ipaddress.ip_address(host).is_loopback:
            return True
    except ValueError:
        pass
    here = socket.gethostname()
    if host == here:
        return True
    try:
        theirs = {address for _, address in _addresses(host)}
    except OSError:
        theirs = set()
    try:
        for name, address in _addresses(here):
            if name == host or address == host or address in theirs:
                return True
    except OSError:
        pass
    return False


def _delay(seconds):
    """Sleep so long, or any time between two."""
    if isinstance(seconds, tuple):
        seconds = random.uniform(*seconds)
    if seconds >= 0.01:
        time.sleep(seconds)


class _PeriodicTimer:
    """Calls `function(*args, **kwargs)` every `interval` on a thread of its own, until it is cancelled or forgotten."""

    class _State:
        """What the thread sees, so that it does not keep the timer alive."""

        def __init__(self, interval, function, args, kwargs):
            self.interval, self.function, self.args, self.kwargs = interval.total_seconds(), function, args, kwargs
            self.stop = threading.Event()

        def run(self):
            while not self.stop.wait(self.interval):
                self.function(*self.args, **self.kwargs)

    def __init__(self, interval, function, *args, **kwargs):
        self._name, self._thread, self._finalizer = None, None, None
        self._state = self._State(interval, function, args, kwargs)

    @property
    def name(self):
        """The thread's name."""
        return self._name

    def set_name(self, name):
        """Name the thread, before start(). RuntimeError afterwards."""
        if self._thread:
            raise RuntimeError("The timer has already started.")
        self._name = name

    def start(self):
        """Begin. RuntimeError the second time."""
        if self._thread:
            raise RuntimeError("The timer has already started.")
        self._thread = threading.Thread(target=self._state.run, name=self._name or "PeriodicTimer", daemon=True)
        self._finalizer = weakref.finalize(self, self._end, self._thread, self._state.stop)
        self._finalizer.atexit = False
        self._thread.start()

    def cancel(self):
        """End, and wait for the thread; again without effect."""
        if self._finalizer:
            self._finalizer()

    @staticmethod
    def _end(thread, stop):
        stop.set()
        if thread is not threading.current_thread():
            thread.join()
