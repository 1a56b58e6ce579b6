"""accelerator.Graph: recorded work, its memory, and what cannot be recorded."""

import threading

import cresset
import pytest
from cresset_simulated import faults

accelerator = cresset.accelerator


@pytest.fixture(params=["simulated", "opaque"])
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def the_accelerator():
    cresset.device("simulated")  # the first kind is the accelerator


def recorded(function, **options):
    graph = accelerator.Graph(**options)
    with cresset.Stream("simulated"), graph:
        result = function()
    return graph, result


def test_a_recording_does_nothing_until_it_is_replayed():
    x = cresset.zeros(3, device="simulated")
    graph, _ = recorded(lambda: x.add_(1))
    accelerator.synchronize()
    assert x.tolist() == [0, 0, 0]
    for n in (1, 2, 3):
        graph.replay()
        assert x.tolist() == [n, n, n]


def test_results_stand_where_they_stood():
    x = cresset.tensor([1.0, 2.0, 3.0], device="simulated")
    graph, y = recorded(lambda: (x * 2 + 1).exp())
    for values in ([0.0, 1.0, 2.0], [-1.0, 0.5, 0.25]):
        x.copy_(cresset.tensor(values))
        graph.replay()
        expected = (cresset.tensor(values) * 2 + 1).exp()
        assert cresset.allclose(y.cpu(), expected)


def test_a_training_step():
    cresset.manual_seed(0)
    make = lambda: cresset.nn.Sequential(cresset.nn.Linear(4, 8), cresset.nn.Tanh(), cresset.nn.Linear(8, 1))  # noqa: E731
    host, model = make(), make().to("simulated")
    model.load_state_dict(host.state_dict())
    data, target = cresset.randn(16, 4), cresset.randn(16, 1)
    x, t = data.to("simulated"), target.to("simulated")

    def step(model, x, t):
        loss = cresset.nn.functional.mse_loss(model(x), t)
        loss.backward()
        with cresset.no_grad():
            for p in model.parameters():
                p.sub_(p.grad, alpha=0.1)
                p.grad.zero_()
        return loss.detach()

    for _ in range(2):  # gradients get their memory
        step(host, data, target), step(model, x, t)
    graph, loss = recorded(lambda: step(model, x, t))
    with faults.fault("delay", 100):
        waits = faults.calls("host_wait")
        for _ in range(5):
            graph.replay()
        assert faults.calls("host_wait") == waits, "a replay waits for nobody"
    for _ in range(5):
        expected = step(host, data, target)
    assert cresset.allclose(loss.cpu(), expected, rtol=1e-4)
    for a, b in zip(model.parameters(), host.parameters(), strict=True):
        assert cresset.allclose(a.cpu(), b, rtol=1e-4, atol=1e-6)


def test_memory_stays_with_the_graph():
    x = cresset.ones(1000, device="simulated")
    before = accelerator.memory_stats()

    def work():
        y = x
        for _ in range(20):
            y = y * 1.5
        return y

    graph, y = recorded(work)
    held = accelerator.memory_stats()["segment.all.current"] - before["segment.all.current"]
    assert 2 <= held <= 3, "places of tensors that are gone are used again"
    del y
    assert accelerator.memory_stats()["segment.all.current"] - before["segment.all.current"] == held
    other = cresset.full((1000,), 7.0, device="simulated")
    graph.replay()
    accelerator.synchronize()
    assert other.tolist() == [7.0] * 1000, "nobody else's memory is written"
    del graph
    assert accelerator.memory_stats()["segment.all.current"] - before["segment.all.current"] == 1


def test_inputs_that_are_dropped_while_recording_stay():
    def work():
        x = cresset.ones(10, device="simulated")
        return x * scale.pop()

    scale = [cresset.full((10,), 3.0, device="simulated")]
    graph, y = recorded(work)
    taken = [cresset.full((10,), float(i), device="simulated") for i in range(50)]
    graph.replay()
    assert y.tolist() == [3.0] * 10 and taken[7].tolist() == [7.0] * 10


def test_streams_join_by_events():
    x = cresset.zeros(4, device="simulated")
    side = cresset.Stream("simulated")

    def work():
        main = accelerator.current_stream()
        y = x + 1
        side.wait_stream(main)
        with side:
            assert side.is_capturing()
            z = y * 3
        main.wait_stream(side)
        return z + y

    with faults.fault("delay", 500):
        graph, z = recorded(work)
        assert not side.is_capturing()
        graph.replay()
        assert z.tolist() == [4.0] * 4
        x.fill_(2)
        graph.replay()
        assert z.tolist() == [12.0] * 4


def test_a_pool_for_two_graphs():
    handle = accelerator.graph_pool_handle()
    x = cresset.ones(100, device="simulated")
    first, a = recorded(lambda: (x * 2) * 3, pool=handle)
    second, b = recorded(lambda: (x * 5) * 7, pool=first.pool())
    assert first.pool() == second.pool() == handle
    first.replay()
    assert a.tolist() == [6.0] * 100
    second.replay()
    assert b.tolist() == [35.0] * 100


def test_what_waits_cannot_be_recorded():
    x = cresset.ones(3, device="simulated")
    for call, words in (
        (lambda: x.sum().item(), "a copy of 4 bytes to the host: not possible while accelerator.Graph records, since what is recorded does not happen"),
        (lambda: x.cpu(), "a copy of 12 bytes to the host: not possible"),
        (lambda: cresset.ones(2, 2).to("simulated"), "a copy of 16 bytes from pageable memory: not possible"),
        (lambda: accelerator.synchronize(), "synchronize: not possible while accelerator.Graph records, since it waits for the device"),
        (lambda: accelerator.current_stream().synchronize(), "Stream.synchronize: not possible"),
        (lambda: x.erfinv(), "Could not run 'aten::erfinv.*' on simulated:0: it has no kernel there, and the CPU takes no part"),
    ):
        graph = accelerator.Graph()
        with pytest.raises(RuntimeError, match=words), cresset.Stream("simulated"), graph:
            call()
        with pytest.raises(RuntimeError, match="Graph.replay: a recorded graph was required"):
            graph.replay()
        assert (x + 1).tolist() == [2, 2, 2], "the recording has ended"


def test_modes():
    x, errors = cresset.ones(3, device="simulated"), {}

    def wait(mode):
        try:
            accelerator.synchronize()
        except RuntimeError as error:
            errors[mode] = str(error)

    for mode in ("default", "thread_local", "global", "relaxed"):
        graph = accelerator.Graph(capture_error_mode=mode)
        with cresset.Stream("simulated"), graph:
            x.add_(1)
            thread = threading.Thread(target=wait, args=(mode,))
            thread.start()
            thread.join()
            if mode == "relaxed":
                with cresset.Stream("simulated"):
                    assert cresset.accelerator.current_stream().query()
                accelerator.synchronize()
    assert list(errors) == ["global"] and "for every thread in the mode 'global'" in errors["global"]
    with pytest.raises(ValueError, match="capture_error_mode of default, global, thread_local or relaxed was required; 'loose' was given"):
        accelerator.Graph(capture_error_mode="loose")


def test_states():
    graph = accelerator.Graph(keep_graph=True)
    with pytest.raises(RuntimeError, match="Graph.capture_end: a graph that is being recorded was required"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match="Graph.instantiate: a recorded graph was required"):
        graph.instantiate()
    x = cresset.zeros(2, device="simulated")
    with cresset.Stream("simulated") as stream:
        assert not stream.is_capturing()
        graph.capture_begin()
        assert stream.is_capturing()
        with pytest.raises(RuntimeError, match="this graph is being recorded already"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="stream .* is being recorded by another graph"):
            accelerator.Graph().capture_begin()
        x.add_(1)
        with cresset.Stream("simulated"), pytest.raises(RuntimeError, match="the stream of capture_begin .* was required to be current"):
            graph.capture_end()
        graph.capture_end()
    with pytest.raises(RuntimeError, match="this graph holds a recording; call reset"):
        graph.capture_begin()
    graph.replay()
    assert x.tolist() == [1, 1]
    graph.reset()
    with cresset.Stream("simulated"), graph:
        x.mul_(5)
    graph.replay()
    assert x.tolist() == [5, 5]
    graph.capture_error_mode = "relaxed"


def test_a_picture(tmp_path):
    x = cresset.zeros(2, device="simulated")
    graph, _ = recorded(lambda: (x + 1).exp_())
    with pytest.raises(RuntimeError, match="call enable_debug_mode"):
        graph.debug_dump(tmp_path / "graph.dot")
    graph.enable_debug_mode()
    graph.debug_dump(tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and "aten::add" in text and "aten::exp" in text and "s0 -> s1" in text


def test_backends_that_record_nothing(monkeypatch):
    report = {part["name"] if isinstance(part, dict) else part[0] for part in accelerator.report("simulated")["parts"]}
    assert {"graph_begin", "stream_priorities", "peer_access", "dlpack_type"} <= report
    with pytest.raises(NotImplementedError, match="Graph: the backend of cpu does not record graphs"):
        cresset._C._graph_new(cresset.device("cpu"), None, "default")


def test_pools_of_a_user(device):
    pool = accelerator.MemPool(device)
    x = cresset.ones(100, device=device)
    count = lambda: accelerator.memory_stats(device)["segment.all.current"]  # noqa: E731
    before = count()
    with accelerator.use_mem_pool(pool):
        y = cresset.empty(100, device=device)
        address = [s["address"] for s in pool.snapshot()]
        del y
        z = cresset.empty(100, device=device)
        assert [s["address"] for s in pool.snapshot()] == address, "the block came back"
    outside = cresset.empty(100, device=device)
    assert count() == before + 2 and pool.id[0] == 0 and pool.use_count() >= 2
    assert [s["blocks"][0]["state"] for s in pool.snapshot()] == ["active_allocated"]
    del z
    assert [s["blocks"][0]["state"] for s in pool.snapshot()] == ["inactive"] and count() == before + 2
    del pool
    assert count() == before + 1
    del outside, x


def test_pools_and_streams():
    """A block is given out again in its own stream only: in another, its last work may not be done."""
    pool = accelerator.MemPool("simulated")
    with accelerator.use_mem_pool(pool):
        x = cresset.ones(100, device="simulated")
        del x
        with cresset.Stream("simulated"):
            y = cresset.ones(100, device="simulated")
        assert len(pool.snapshot()) == 2
    with pytest.raises(ValueError, match="a pool of simulated:1 was required; this one is of simulated:0"), accelerator.use_mem_pool(pool, "simulated:1"):
        pass
    accelerator.synchronize()
    assert y.tolist() == [1.0] * 100


def test_pools_go_with_backward():
    pool = accelerator.MemPool("simulated")
    w = cresset.ones(64, 64, device="simulated", requires_grad=True)
    before = accelerator.memory_stats()["segment.all.current"]
    with accelerator.use_mem_pool(pool):
        (w * 2).sum().backward()
    accelerator.synchronize()
    assert accelerator.memory_stats()["segment.all.current"] - before == len(pool.snapshot())
    assert cresset.allclose(w.grad.cpu(), cresset.full((64, 64), 2.0))
