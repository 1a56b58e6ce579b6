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
    assert first.weight.grad.device == cresset.device("minimal:0") and second.weight.grad.device == cresset.device(
        "simulated:1"
    )


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
    assert {name: str(t.device) for name, t in loaded.items()} == {
        "minimal": "minimal:0",
        "simulated": "minimal:1",
        "opaque": "opaque:0",
    }


def on_two_devices(x):
    there = (x.to("minimal") * 2).relu()
    return (there.to("simulated:1").sin() + 1).to("cpu") - x


def test_one_script_over_several_devices(x, tmp_path):
    want = on_two_devices(x - 2)
    scripted, traced = cresset.jit.script(on_two_devices), cresset.jit.trace(on_two_devices, (x,))
    for f in (scripted, traced):
        assert cresset.equal(f(x - 2), want)
        leaf = (x - 2).requires_grad_()
        f(leaf).sum().backward()
        reference = (x - 2).requires_grad_()
        on_two_devices(reference).sum().backward()
        assert cresset.equal(leaf.grad, reference.grad)
    assert str(scripted.graph).count("aten::to") == 3
    text = str(traced.graph)
    assert 'Device = prim::Constant[value="minimal"]' in text and 'Device = prim::Constant[value="simulated:1"]' in text


class InParts(cresset.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = cresset.nn.Linear(3, 4).to("minimal")
        self.second = cresset.nn.Linear(4, 2).to("opaque")

    def forward(self, x):
        return self.second(self.first(x.to("minimal")).relu().to("opaque"))


def test_a_script_module_in_parts(x, tmp_path):
    cresset.manual_seed(0)
    module = InParts()
    scripted = cresset.jit.script(module)
    assert cresset.allclose(scripted(x).cpu(), module(x).cpu())
    assert {n: p.device.type for n, p in scripted.named_parameters()} == {
        "first.weight": "minimal", "first.bias": "minimal", "second.weight": "opaque", "second.bias": "opaque"}  # fmt: skip
    cresset.jit.save(scripted, tmp_path / "parts.pt")
    assert cresset.equal(cresset.jit.load(tmp_path / "parts.pt")(x).cpu(), scripted(x).cpu())
    on_host = cresset.jit.load(tmp_path / "parts.pt", map_location="cpu")
    assert {p.device.type for p in on_host.parameters()} == {"cpu"}
    frozen = cresset.jit.freeze(scripted.eval())
    assert cresset.allclose(frozen(x).cpu(), scripted(x).cpu())


def test_autocast_of_several_devices(x):
    with cresset.autocast("simulated"), cresset.autocast("minimal", dtype=cresset.float16):
        for device, dtype in (
            ("simulated", cresset.bfloat16),
            ("minimal", cresset.float16),
            ("opaque", cresset.float32),
            ("cpu", cresset.float32),
        ):
            there = x.to(device)
            assert (there @ there.t()).dtype is dtype
    lib = cresset.library.Library("devices_autocast", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda t: t * 2, "CompositeExplicitAutograd")
    cresset.library.register_autocast("devices_autocast::twice", "simulated", cresset.float16)
    with cresset.autocast("simulated"):
        assert cresset.ops.devices_autocast.twice(x.to("simulated")).dtype is cresset.float16
    assert cresset.ops.devices_autocast.twice(x.to("simulated")).dtype is cresset.float32
