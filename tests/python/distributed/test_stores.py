"""Stores: every kind does the same, waits as long as it says, and names the keys that did not come; rendezvous by URL."""

import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

import cresset.distributed as dist

SHORT = timedelta(milliseconds=60)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "hash":
        return dist.HashStore()
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    tcp = dist.TCPStore("localhost", 0, 1, True)
    return tcp if request.param == "tcp" else dist.PrefixStore("deep", dist.PrefixStore("er", tcp))


def test_values_and_counters(store):
    before = store.num_keys()
    store.set("text", "abc")
    store.set("bytes", b"\x00\xff")
    assert store.get("text") == b"abc" and store.get("bytes") == b"\x00\xff"
    assert store.add("n", 2) == 2 and store.add("n", -5) == -3 and store.get("n") == b"-3"
    assert store.compare_set("new", "other", "x") == b"other" and not store.check(["new"])
    assert store.compare_set("new", "", "x") == b"x" and store.compare_set("new", "y", "z") == b"x" and store.compare_set("new", "x", "z") == b"z"
    assert store.check(["text", "new"]) and not store.check(["text", "nothing"])
    assert store.num_keys() == before + 4 and {"text", "bytes", "n", "new"} <= set(store.list_keys())
    assert store.delete_key("text") and not store.delete_key("text") and store.num_keys() == before + 3
    big = bytes(range(256)) * 10000
    store.set("big", big)
    assert store.get("big") == big and store.clone().get("big") == big


def test_waiting(store):
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    begin = time.monotonic()
    with pytest.raises(dist.DistStoreError, match=r"^wait timeout after 60ms, keys: /?(deep/)?(er/)?(deep/)?a$"):
        store.get("a")
    with pytest.raises(dist.DistStoreError, match=r"^wait timeout after 40ms, keys: .*a, .*b$"):
        store.wait(["a", "b"], timedelta(milliseconds=40))
    assert time.monotonic() - begin < 2
    store.set_timeout(timedelta(seconds=20))
    other = store.clone()
    thread = threading.Thread(target=lambda: (time.sleep(0.05), other.set("late", "now")))
    thread.start()
    assert store.get("late") == b"now"
    thread.join()


def test_more_than_the_basics(store):
    store.append("a", "b")
    store.append("a", "c")
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.multi_get(["y", "a"]) == [b"2", b"bc"]
    if not store.has_extended_api():
        with pytest.raises(RuntimeError, match="^queue support is not implemented for this store.$"):
            store.queue_push("q", "first")
        return
    store.queue_push("q", "first")
    store.queue_push("q", "second")
    assert store.queue_len("q") == 2 and store.queue_pop("q") == b"first" and store.queue_pop("q", block=False) == b"second"
    with pytest.raises(dist.QueueEmptyError, match="^queue is empty$"):
        store.queue_pop("q", False)


def test_a_counter_is_a_number(store):
    store.set("k", "abc")
    with pytest.raises((ValueError, RuntimeError), match="a counter was required at '/?.*k'; its value is no integer"):
        store.add("k", 1)
    assert store.get("k") == b"abc"


def test_a_store_written_in_python():
    class Mine(dist.Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value

        def get(self, key):
            return self.values[key]

        def add(self, key, value):
            self.values[key] = str(int(self.values.get(key, 0)) + value)
            return int(self.values[key])

    mine = Mine()
    prefixed = dist.PrefixStore("p", mine)
    prefixed.set("a", "b")
    assert prefixed.get("a") == b"b" and prefixed.add("n", 3) == 3 and mine.values == {"p/a": b"b", "p/n": "3"}
    with pytest.raises(NotImplementedError, match="^Not implemented. A class derived from Store must define check; this one does not.$"):
        prefixed.check(["a"])


def test_connections():
    with pytest.raises(dist.DistNetworkError, match=r"^The client socket has timed out after 100ms while trying to connect to \(localhost, 1\).$"):
        dist.TCPStore("localhost", 1, 1, False, timeout=timedelta(milliseconds=100))
    server = dist.TCPStore("localhost", 0, 1, True)
    with pytest.raises(dist.DistNetworkError, match=rf"^The server socket has failed to listen on any local network address. port: {server.port}, .*EADDRINUSE, message: address already in use$"):
        dist.TCPStore("localhost", server.port, 1, True)
    with pytest.raises(dist.DistStoreError, match=r"^Timed out after 1 seconds waiting for clients. 1/2 clients joined.$"):
        dist.TCPStore("localhost", 0, 2, True, timeout=timedelta(milliseconds=200))
    with pytest.raises(ValueError, match="^TCPStore world size cannot be 0$"):
        dist.TCPStore("localhost", 0, 0)
    with pytest.raises(ValueError, match="^store argument cannot be None$"):
        dist.PrefixStore("p", None)


def test_a_stranger_at_the_port_does_no_harm():
    import socket

    store = dist.TCPStore("localhost", 0, 1, True)
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b""):
        with socket.create_connection(("localhost", store.port)) as stranger:
            stranger.sendall(noise)
            if noise:
                assert stranger.recv(1) == b""
    store.set("a", "b")
    assert store.get("a") == b"b"


def test_a_server_that_is_gone():
    code = "import sys, cresset.distributed as d; s = d.TCPStore('localhost', 0, 1, True); print(s.port, flush=True); sys.stdin.read()"
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = dist.TCPStore("localhost", int(server.stdout.readline()), timeout=timedelta(seconds=1))
    client.set("a", "b")
    server.kill()
    server.wait()
    with pytest.raises(dist.DistNetworkError, match="Failed to recv, got 0 bytes|Connection reset|Broken pipe"):
        client.get("a")
    with pytest.raises(dist.DistNetworkError, match="The client socket has timed out"):
        client.get("a")
    server.stdin.close()
    server.stdout.close()


@pytest.mark.parametrize(
    "url, kind, words",
    [
        ("invalid://", RuntimeError, "^No rendezvous handler for invalid://"),
        ("file://?rank=0&world_size=1", ValueError, "path missing"),
        ("file:///tmp/foo?world_size=1", ValueError, "rank parameter missing"),
        ("file:///tmp/foo?rank=0", ValueError, "size parameter missing"),
        ("tcp://127.0.0.1?rank=0&world_size=1", ValueError, "port number missing"),
        ("tcp://127.0.0.1:23456?world_size=1", ValueError, "rank parameter missing"),
        ("tcp://127.0.0.1:23456?rank=0", ValueError, "size parameter missing"),
        ("env://?rank=0&world_size=1", ValueError, "environment variable MASTER_ADDR expected, but not set"),
    ],
)
def test_urls_that_say_too_little(url, kind, words, monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(kind, match=words):
        next(dist.rendezvous(url))


def test_rendezvous(tmp_path, monkeypatch):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/x", rank=0, world_size=2))
    assert (rank, size) == (0, 2) and store.add("n", 1) == 1
    for name, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    store, rank, size = next(dist.rendezvous("env://"))
    assert isinstance(store, dist.TCPStore) and (rank, size) == (0, 1)
    with pytest.raises(AssertionError, match="has node-specific arguments"):
        dist.rendezvous("file://foo?rank=12&world_size=16", 12, 16)


def test_a_server_that_stands_still_takes_no_question_for_ever():
    code = ("import sys, cresset.distributed as dist\n"
            "store = dist.TCPStore('localhost', 0, None, True, wait_for_workers=False)\n"
            "print(store.port, flush=True)\n"
            "sys.stdin.read()\n")  # fmt: skip
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        store = dist.TCPStore("localhost", int(server.stdout.readline()), None, False, wait_for_workers=False)
        store.set("small", "a")
        store.set_timeout(timedelta(milliseconds=300))
        server.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        with pytest.raises(dist.DistNetworkError, match="^store: the server did not take a question in time.$"):
            store.set("large", bytes(1 << 26))
        assert time.monotonic() - begin < 5
        server.send_signal(signal.SIGCONT)
        store.set_timeout(timedelta(seconds=30))
        assert store.get("small") == b"a"  # over a new connection
    finally:
        server.kill()
        server.wait()


def test_barriers_wait_for_all_and_may_come_again(store):
    store.barrier("alone", 1)
    store.barrier("alone", 1, timedelta(seconds=1))
    passed = []

    def come(i):
        for round in range(3):
            store.clone().barrier("together", 3, timedelta(seconds=20))
            passed.append(round)

    threads = [threading.Thread(target=come, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(passed) == [0] * 3 + [1] * 3 + [2] * 3
    with pytest.raises(RuntimeError, match="(?i)time"):
        store.barrier("missing", 2, timedelta(seconds=0.2))
    with pytest.raises(ValueError, match="world_size must be positive; it is 0"):
        store.barrier("nobody", 0)
