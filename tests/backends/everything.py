"""What is not an operator, on a device: printing, NumPy, files, random numbers, modules, optimisers, views, devices and streams.

Run by tests/extensions/test_backends.py with the device's name in CRESSET_TEST_DEVICE.
"""

import copy
import gc
import io
import os
import pickle
import threading

import cresset
import numpy as np
import pytest

DEVICE = os.environ["CRESSET_TEST_DEVICE"]
cresset.device(DEVICE)
module = getattr(cresset, DEVICE)


@pytest.fixture
def x():
    return cresset.arange(12.0).reshape(3, 4)


def same(on_device, expected, index=0):
    assert on_device.device == cresset.device(DEVICE, index)
    assert on_device.dtype == expected.dtype
    assert cresset.equal(on_device.cpu(), expected)


# --- tensors -----------------------------------------------------------------------------------------------------------------


def test_copies_of_every_kind(x):
    for values in (x, x.t(), x[:, 1:3], x[::2], x.expand(2, 3, 4), x[1], x[1, 2], cresset.empty(0, 3)):
        same(values.to(DEVICE), values.contiguous() if values.dim() == 3 else values)
    d = x.to(DEVICE)
    same(d.to(f"{DEVICE}:1"), x, 1)
    same(d.double(), x.double())
    same(d.to(cresset.int32), x.to(cresset.int32))
    assert cresset.equal(d.to("cpu", cresset.float64), x.double())
    same(x.to(DEVICE, cresset.float16), x.half())
    assert d.to(DEVICE) is d
    part = cresset.zeros(6, 8, device=DEVICE)
    part[::2, 1::2].copy_(x)  # from the host into gaps
    expected = cresset.zeros(6, 8)
    expected[::2, 1::2].copy_(x)
    same(part, expected)
    back = cresset.zeros(6, 8)
    back[::2, 1::2].copy_(d)  # and back
    assert cresset.equal(back, expected)
    part[1::2, ::2].copy_(d)  # within the device
    expected[1::2, ::2].copy_(x)
    same(part, expected)


def test_printing(x):
    assert repr(x[0].to(DEVICE)) == f"tensor([0., 1., 2., 3.], device='{DEVICE}:0')"
    assert repr(x[0].to(f"{DEVICE}:1").requires_grad_()) == f"tensor([0., 1., 2., 3.], device='{DEVICE}:1', requires_grad=True)"
    assert f"device='{DEVICE}:0'" in repr(cresset.zeros(2000, device=DEVICE))


def test_numpy_goes_through_the_host(x):
    d = x.to(DEVICE)
    with pytest.raises(TypeError, match="Use Tensor.cpu"):
        d.numpy()
    assert np.array_equal(d.cpu().numpy(), x.numpy())
    assert np.array_equal(d.numpy(force=True), x.numpy())
    same(cresset.from_numpy(np.arange(3.0)).to(DEVICE), cresset.arange(3.0, dtype=cresset.float64))
    assert d.tolist() == x.tolist()
    assert d[1, 2].item() == 6.0 and int(d[1, 2]) == 6 and bool(d[1, 2])


def test_dlpack_stays_on_the_device(x):
    d = x.to(f"{DEVICE}:1")
    if DEVICE == "opaque":
        with pytest.raises(BufferError, match="opaque"):
            cresset.to_dlpack(d)
        return
    kind, index = d.__dlpack_device__()
    assert kind == 12 and index & 0xFF == 1
    again = cresset.from_dlpack(d)
    same(again, x, 1)
    again.zero_()
    same(d, cresset.zeros(3, 4), 1)


def test_pickle_deepcopy_and_files(x, tmp_path):
    d = x.to(f"{DEVICE}:1")
    same(pickle.loads(pickle.dumps(d)), x, 1)
    same(copy.deepcopy(d), x, 1)
    file = tmp_path / "file"
    cresset.save({"d": d, "h": x, "nested": [d[0], 3]}, file)
    loaded = cresset.load(file)
    same(loaded["d"], x, 1)
    assert loaded["h"].device.type == "cpu"
    assert cresset.load(file, map_location="cpu")["d"].device.type == "cpu"
    same(cresset.load(file, map_location=f"{DEVICE}:0")["d"], x)
    same(cresset.load(file, map_location={f"{DEVICE}:1": f"{DEVICE}:0"})["d"], x)
    tags = []
    cresset.load(file, map_location=lambda tensor, tag: tags.append(tag) or tensor)
    assert sorted(set(tags)) == ["cpu", f"{DEVICE}:1"]
    model = cresset.nn.Linear(2, 3).to(DEVICE)
    buffer = io.BytesIO()
    cresset.save(model.state_dict(), buffer)
    buffer.seek(0)
    other = cresset.nn.Linear(2, 3)
    other.load_state_dict(cresset.load(buffer))
    assert cresset.equal(other.weight, model.weight.cpu())


def test_files_hold_a_copy_on_the_host_of_memory_that_they_cannot(x, tmp_path, monkeypatch):
    monkeypatch.setattr(cresset._C, "_has_storage", lambda tensor: False)
    d = x.to(f"{DEVICE}:1")
    assert d.__reduce_ex__(2)[0] is cresset._utils._rebuild_device_tensor_from_cpu_tensor
    cresset.save({"d": d}, tmp_path / "file")
    same(cresset.load(tmp_path / "file")["d"], x, 1)
    assert cresset.load(tmp_path / "file", map_location="cpu")["d"].device.type == "cpu"
    with cresset.serialization.skip_data(), pytest.raises(RuntimeError, match="Cannot serialize tensors on backends with no storage under skip_data"):
        cresset.save({"d": d}, tmp_path / "file")


def test_a_file_of_a_device_that_is_not_here(x, tmp_path):
    cresset.save({"x": x.to(f"{DEVICE}:1")}, tmp_path / "file")
    text = (tmp_path / "file").read_bytes().replace(f"{DEVICE}:1".encode(), b"z" * len(DEVICE) + b":1")
    (tmp_path / "file").write_bytes(text)
    with pytest.raises(RuntimeError, match="don't know how to restore data location .*(\n.*)*load with map_location='cpu'"):
        cresset.load(tmp_path / "file")
    assert cresset.equal(cresset.load(tmp_path / "file", map_location="cpu")["x"], x)


def test_storages(x):
    d = x.to(DEVICE)
    storage = d.untyped_storage()
    assert storage.device == d.device and storage.nbytes() == 48
    assert d[1:].untyped_storage()._cdata == storage._cdata
    assert d.type() == f"torch.{DEVICE}.FloatTensor"
    y = cresset.empty(0, device=DEVICE).set_(storage, 4, (2, 4), (4, 1))
    same(y, x[1:])
    z = cresset.ones(3, device=DEVICE).resize_(5)
    assert z.shape == (5,) and z[:3].tolist() == [1.0] * 3


def test_views_write_through_in_both_directions(x):
    base, expected = x.to(DEVICE), x.clone()
    views = [lambda t: t[1:], lambda t: t.t(), lambda t: t[:, ::2], lambda t: t.view(4, 3), lambda t: t.diagonal(), lambda t: t.reshape(2, 6)[1]]
    for i, view in enumerate(views):
        a, b = view(base), view(expected)
        assert a._base is not None
        a.add_(i)
        b.add_(i)
        same(base, expected)
        base.mul_(2)
        expected.mul_(2)
        same(a, b)
        a[..., 0] = -1.0
        b[..., 0] = -1.0
        same(base, expected)
    inner, e = base[1:].t()[:2], expected[1:].t()[:2]
    cresset.add(inner, 1, out=inner)
    cresset.add(e, 1, out=e)
    inner.sigmoid_()
    e.sigmoid_()
    assert cresset.allclose(base.cpu(), expected)
    assert base._version == expected._version
    base.t_().unsqueeze_(0)
    assert base.shape == (1, 4, 3)


def test_gradients_through_views(x):
    def f(t):
        t = t * 2
        t[0].mul_(t[1].detach().clone())
        t.t()[1].exp_()
        return (t[1:] @ t[0]).sum() + t.view(-1)[3]

    a, b = x.clone().requires_grad_(), x.to(DEVICE).requires_grad_()
    f(a / 10).backward()
    f(b / 10).backward()
    assert cresset.allclose(b.grad.cpu(), a.grad, rtol=1e-5)
    assert b.grad.device == b.device


# --- random numbers -----------------------------------------------------------------------------------------------------------


def test_seeds_and_generators():
    cresset.manual_seed(3)
    host = [cresset.rand(4), cresset.randn(4)]
    cresset.manual_seed(3)
    device = [cresset.rand(4, device=DEVICE), cresset.randn(4, device=DEVICE)]
    for h, d in zip(host, device):
        same(d, h)  # one seed, the same numbers on the CPU and here
    g = cresset.Generator(device=f"{DEVICE}:1")
    assert g.device == cresset.device(DEVICE, 1)
    g.manual_seed(3)
    same(cresset.rand(4, device=f"{DEVICE}:1", generator=g), host[0], 1)
    state = g.get_state()
    first = cresset.rand(2, device=f"{DEVICE}:1", generator=g)
    g.set_state(state)
    assert cresset.equal(cresset.rand(2, device=f"{DEVICE}:1", generator=g).cpu(), first.cpu())
    g.set_offset(12)
    assert g.get_offset() == 12
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator"):
        cresset.rand(2, generator=g)


def test_rng_state_and_fork():
    module.manual_seed_all(5)
    states = module.get_rng_state_all()
    assert len(states) == module.device_count()
    with cresset.random.fork_rng(device_type=DEVICE):
        a = cresset.rand(3, device=DEVICE)
    assert cresset.equal(cresset.rand(3, device=DEVICE).cpu(), a.cpu())
    module.set_rng_state_all(states)
    assert cresset.equal(cresset.rand(3, device=DEVICE).cpu(), a.cpu())
    assert module.initial_seed() == 5
    d = cresset.nn.Dropout(0.5)
    with cresset.random.fork_rng(device_type=DEVICE):
        first = d(cresset.ones(20, device=DEVICE))
    assert cresset.equal(d(cresset.ones(20, device=DEVICE)).cpu(), first.cpu())


# --- modules, optimisers, data ---------------------------------------------------------------------------------------------------


def trained(device, make):
    cresset.manual_seed(0)
    model = cresset.nn.Sequential(cresset.nn.Conv2d(1, 2, 3), cresset.nn.BatchNorm2d(2), cresset.nn.ReLU(), cresset.nn.Flatten(), cresset.nn.Linear(8, 3))
    data, target = cresset.randn(6, 1, 4, 4), cresset.tensor([0, 1, 2, 0, 1, 2])
    model, data, target = model.to(device), data.to(device), target.to(device)
    optimiser = make(model.parameters())
    for _ in range(3):
        optimiser.zero_grad()
        loss = cresset.nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimiser.step()
    return loss.item(), model.state_dict()


@pytest.mark.parametrize("make", [
    lambda p: cresset.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: cresset.optim.Adam(p, lr=0.1),
    lambda p: cresset.optim.AdamW(p, lr=0.1, foreach=True),
    lambda p: cresset.optim.Adam(p, lr=0.1, fused=True),
    lambda p: cresset.optim.RMSprop(p, lr=0.01),
], ids=["sgd", "adam", "adamw-foreach", "adam-fused", "rmsprop"])  # fmt: skip
def test_training_gives_the_numbers_of_the_cpu(make):
    loss, state = trained("cpu", make)
    device_loss, device_state = trained(DEVICE, make)
    assert device_loss == pytest.approx(loss, rel=1e-4)
    for name, value in state.items():
        assert device_state[name].device.type == DEVICE
        assert cresset.allclose(device_state[name].cpu(), value, rtol=1e-3, atol=1e-5), name


def test_module_methods():
    model = cresset.nn.Linear(2, 2)
    assert getattr(model, DEVICE)() is model and model.weight.device == cresset.device(DEVICE, 0)
    getattr(model, DEVICE)(1)
    assert model.weight.device.index == 1
    assert getattr(cresset.ones(2), DEVICE)().device.type == DEVICE
    assert getattr(cresset.ones(2, device=DEVICE), f"is_{DEVICE}") and not getattr(cresset.ones(2), f"is_{DEVICE}")
    packed = cresset.nn.utils.rnn.pack_sequence([cresset.ones(3, 2), cresset.ones(1, 2)])
    assert getattr(packed, DEVICE)().data.device.type == DEVICE


def test_recurrent_layers_and_attention():
    cresset.manual_seed(1)
    lstm, x = cresset.nn.LSTM(3, 4, num_layers=2), cresset.randn(5, 2, 3)
    attention = cresset.nn.MultiheadAttention(4, 2, batch_first=True)
    want = attention(*[lstm(x)[0]] * 3)[0]
    lstm, attention = lstm.to(DEVICE), attention.to(DEVICE)
    have = attention(*[lstm(x.to(DEVICE))[0]] * 3)[0]
    assert cresset.allclose(have.cpu(), want, rtol=1e-4, atol=1e-6)


def test_hooks_functions_and_checkpoints(x):
    seen = []
    d = x.to(DEVICE).requires_grad_()
    d.register_hook(lambda g: seen.append(g.device.type) or g * 2)

    class Double(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0].sign()

    cresset.utils.checkpoint.checkpoint(lambda t: Double.apply(t).exp(), d / 10, use_reentrant=False).sum().backward()
    assert seen == [DEVICE]
    assert d.grad.device == d.device
    assert cresset.autograd.gradcheck(lambda t: (t.sin() * t).sum(), cresset.rand(3, dtype=cresset.float64, device=DEVICE, requires_grad=True))


def test_data_loader_pins(x):
    data = cresset.utils.data.TensorDataset(x)
    if DEVICE == "minimal":
        with pytest.raises(RuntimeError, match="has no pinned memory"):
            x.pin_memory(DEVICE)
        return
    assert x.pin_memory(DEVICE).is_pinned() and not x.is_pinned()
    loader = cresset.utils.data.DataLoader(data, batch_size=2, pin_memory=True, pin_memory_device=DEVICE)
    batches = [batch for (batch,) in loader]
    assert all(b.is_pinned() for b in batches)
    assert cresset.equal(cresset.cat([b.to(DEVICE, non_blocking=True) for b in batches]).cpu(), x)


# --- devices, streams, memory ------------------------------------------------------------------------------------------------------


def test_current_device_and_its_guards():
    assert module.device_count() == 2 and module.is_available() and module.current_device() == 0
    with module.device(1):
        assert cresset.ones(2, device=DEVICE).device.index == 1
        with pytest.raises(ZeroDivisionError), module.device(0):
            1 / 0
        assert module.current_device() == 1
        other = []
        thread = threading.Thread(target=lambda: other.append(module.current_device()))
        thread.start()
        thread.join()
        assert other == [0], "each thread has its own"
    assert module.current_device() == 0
    with module.device_of(cresset.ones(1, device=f"{DEVICE}:1")):
        assert module.current_device() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal 7; 2 devices are present"):
        module.set_device(7)
    with pytest.raises(RuntimeError, match="invalid device ordinal 7"):
        cresset.ones(1, device=f"{DEVICE}:7")
    with cresset.device(DEVICE):
        assert cresset.ones(1).device.type == DEVICE


def test_accelerator_functions():
    a = cresset.accelerator
    assert a.is_available() and a.current_accelerator().type in a.registered_backends()
    index = a.current_device_index()
    with a.device_index(1):
        assert a.current_device_index() == 1
    assert a.current_device_index() == index
    a.synchronize(DEVICE)
    assert cresset.get_device_module(DEVICE) is module
    stream = a.current_stream(DEVICE)
    assert repr(stream) == f"cresset.Stream device_type={DEVICE}, device_index=0, stream_id=0"
    with cresset.Stream(f"{DEVICE}:1") as s:
        assert a.current_stream(f"{DEVICE}:1") == s and module.current_device() == 1
        event = s.record_event()
    assert module.current_device() == 0
    event.synchronize()
    assert event.query() and s.query()


def test_memory_is_counted_and_freed():
    module.synchronize()
    gc.collect()
    before = module.memory_allocated()
    module.reset_peak_memory_stats()
    x = cresset.ones(1000, device=DEVICE)
    assert module.memory_allocated() == before + 4000
    del x
    assert module.memory_allocated() == before
    assert module.max_memory_allocated() == before + 4000
    assert cresset.accelerator.memory_stats(DEVICE)["allocation.all.allocated"] > 0


def test_threads_use_the_device_together(x):
    results = [None] * 6

    def work(i):
        with module.device(i % 2):
            t = x.to(DEVICE).requires_grad_()
            (t * i).sum().backward()
            results[i] = t.grad.cpu()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(cresset.equal(r, cresset.full((3, 4), float(i))) for i, r in enumerate(results))


def test_fallback_modes(x):
    d = x.to(DEVICE)
    a = cresset.accelerator
    a.reset_fallback_counts()
    d.cosh()
    d.cosh()
    (row,) = [r for r in a.fallback_counts() if r[0].startswith("aten::cosh")]
    assert row[1] == 2 and row[2] == 4 * 48 and row[3] > 0
    assert a.fallback_report().splitlines()[0].split() == ["calls", "moved", "ms", "operator"]
    with a.set_fallback_mode("forbid"):
        with pytest.raises(NotImplementedError, match="the CPU fallback is forbidden"):
            d.cosh()
    with a.set_fallback_mode("budget", calls=2):
        d.cosh()
        d.cosh()
        with pytest.raises(NotImplementedError, match=r"budget of the CPU fallback is spent \(2 calls, 192 B\)"):
            d.cosh()
    with a.set_fallback_mode("warn"):
        a.reset_fallback_counts()
        with pytest.warns(UserWarning, match=r"aten::cosh\S* has no kernel on"):
            d.cosh()
        d.cosh()  # once
    assert a.fallback_mode() == "allow"
    with pytest.raises(ValueError, match="a budget needs calls or bytes"):
        a.set_fallback_mode("budget")
