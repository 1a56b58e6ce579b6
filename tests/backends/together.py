"""Several devices in one process, one program and one graph."""

import cresset
import pytest

DEVICES = ("minimal", "simulated", "opaque")


@pytest.fixture
def x():
    return cresset.arange(6.0).reshape(2, 3)


def test_each_has_its_own_key():
    keys = {cresset._C._device_key(cresset.device(d)) for d in DEVICES}
    assert len(keys) == 3
    assert set(DEVICES) <= set(cresset.accelerator.registered_backends())


def test_copies_between_kinds(x):
    for a in DEVICES:
        for b in DEVICES:
            there = x.t().to(a).to(b)
            assert there.device.type == b and cresset.equal(there.cpu(), x.t())
            target = cresset.zeros(4, 6, device=b)
            target[::2, 1::2].copy_(x.to(a))
            assert cresset.equal(target[::2, 1::2].cpu(), x) and target.sum().item() == 15


def test_one_graph_over_all_devices(x):
    leaf = x.clone().requires_grad_()
    t = leaf
    for d in DEVICES:
        t = (t.to(d) * 2).sin()
    t.cpu().sum().backward()
    reference = x.clone().requires_grad_()
    r = reference
    for _ in DEVICES:
        r = (r * 2).sin()
    r.sum().backward()
    assert cresset.allclose(leaf.grad, reference.grad, rtol=1e-5)


def test_a_model_in_parts():
    cresset.manual_seed(0)
    first, second = cresset.nn.Linear(4, 5).to("minimal"), cresset.nn.Linear(5, 2).to("simulated:1")
    optimiser = cresset.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    data, losses = cresset.randn(8, 4), []
    for _ in range(4):
        optimiser.zero_grad()
        loss = second(first(data.to("minimal")).relu().to("simulated:1")).pow(2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert first.weight.grad.device == cresset.device("minimal:0") and second.weight.grad.device == cresset.device("simulated:1")


def test_current_devices_and_streams_are_apart():
    with cresset.minimal.device(1), cresset.Stream("simulated") as stream:
        assert cresset.opaque.current_device() == 0
        assert cresset.accelerator.current_stream("simulated") == stream
        assert cresset.accelerator.current_stream("opaque").stream_id == 0
    assert cresset.minimal.current_device() == 0


def test_one_seed_for_all():
    values = []
    for d in DEVICES:
        cresset.manual_seed(11)
        values.append(cresset.randn(5, device=d).cpu())
    assert all(cresset.equal(v, values[0]) for v in values)


def test_files_with_tensors_of_several_devices(x, tmp_path):
    cresset.save({d: x.to(d) for d in DEVICES}, tmp_path / "file")
    loaded = cresset.load(tmp_path / "file", map_location={"simulated:0": "minimal:1"})
    assert {name: str(t.device) for name, t in loaded.items()} == {"minimal": "minimal:0", "simulated": "minimal:1", "opaque": "opaque:0"}
