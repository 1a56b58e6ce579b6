"""What the device of sources/classic_backend.cpp does in Python. Run by test_classic_backend.py as a program of its own, with `torch` being
Cresset: a process has one device of this kind."""

import copy
import gc
import io
import sys
import types

import torch
from torch.utils.cpp_extension import load

pebble = load("classic_backend", [sys.argv[1]], extra_cflags=["-O0"], build_directory=sys.argv[2])
torch.utils.rename_privateuse1_backend("pebble")
torch._register_device_module("pebble", types.ModuleType("torch.pebble"))
torch.utils.generate_methods_for_privateuse1_backend()


def raises(error, words, function):
    try:
        function()
    except error as e:
        assert words in str(e), str(e)
    else:
        raise AssertionError(f"{words}: nothing was raised")


def names_and_guards():
    assert str(pebble.device(1)) == "pebble:1" and torch.device("pebble").type == "pebble"
    x = torch.ones(2, 3, device="pebble:1")
    assert x.is_pebble and x.device == pebble.device(1) and x.type() == "torch.pebble.FloatTensor"
    assert (x + x).device.index == 1, "kernels run on the device of their arguments"
    assert torch.ones(2).pebble().device.index == 0 and torch.nn.Linear(2, 2).pebble().weight.is_pebble
    assert torch.accelerator.device_count() == 2 and torch.accelerator.current_accelerator().type == "pebble"
    raises(RuntimeError, "pebble", lambda: torch.empty(1, device="pebble:7"))
    registration = torch.utils.backend_registration
    raises(RuntimeError, "Try to call torch.pebble.polish.", lambda: registration._get_custom_mod_func("polish"))
    torch.pebble.polish = lambda: "bright"
    assert registration._get_custom_mod_func("polish")() == "bright"
    raises(RuntimeError, "has already been set! Current backend: pebble", lambda: registration.rename_privateuse1_backend("stone"))


def memory():
    gc.collect()
    before = pebble.live_blocks()
    x = torch.empty(10, device="pebble")
    assert pebble.live_blocks() == before + 1
    del x
    assert pebble.live_blocks() == before
    x = torch.arange(4.0).to("pebble")
    x.resize_(8)
    assert x[:4].tolist() == [0, 1, 2, 3]
    grown = pebble.count("resize")
    x.untyped_storage().resize_(64)
    assert pebble.count("resize") == grown + 1 and x.untyped_storage().nbytes() == 64 and x[:4].tolist() == [0, 1, 2, 3]
    pebble.use_own_storages()
    made = pebble.count("storage")
    assert torch.zeros(3, device="pebble").tolist() == [0, 0, 0] and pebble.count("storage") > made
    whole = torch.ones(3, device="pebble").untyped_storage()
    made = pebble.count("storage")
    part = whole[4:8]
    part.fill_(0)
    assert pebble.count("storage") > made and part.device == whole.device and whole.float().tolist()[4:8] == [0, 0, 0, 0]
    assert torch.ones(2, device="pebble").storage().type() == "torch.storage.TypedStorage"
    host = torch.ones(3).pin_memory()
    assert host.is_pinned() and torch.empty(2, pin_memory=True).is_pinned() and not torch.ones(3).is_pinned()


def kernels_and_fallback():
    x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]], device="pebble")
    added = pebble.count("add")
    assert (x + x).tolist() == [[2, -4], [-6, 8]] and pebble.count("add") == added + 1
    assert x.abs().tolist() == [[1, 2], [3, 4]] and pebble.count("abs") > 0, "by the stub"
    assert (x * 3).is_pebble and pebble.count("fallback:aten::mul") > 0
    assert x.t()[1].tolist() == [-2, 4] and x.as_strided((2,), (3,)).tolist() == [1, 4]
    x[0].fill_(7)
    assert x.tolist() == [[7, 7], [-3, 4]] and x.sum().item() == 15


def gradients():
    x = torch.tensor([1.0, 2.0], device="pebble", requires_grad=True)
    (x * x + x).sum().backward()
    assert x.grad.is_pebble and x.grad.tolist() == [3, 5]
    x.grad = None
    torch.ops.pebble.twice(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and pebble.count("twice_backward") == 1
    raises(RuntimeError, "derivative for pebble::thrice is not implemented", lambda: torch.ops.pebble.thrice(x).sum().backward())
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to("pebble")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.rand(8, 3, device="pebble")
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(data) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def overrideable_operators():
    x, w, b = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3), torch.randn(3)
    device = [t.to("pebble").requires_grad_() for t in (x, w, b)]
    host = [t.requires_grad_() for t in (x, w, b)]
    for arguments in (host, device):
        torch.nn.functional.conv2d(*arguments, padding=1).pow(2).sum().backward()
    assert pebble.count("convolution") == 1 and pebble.count("convolution_backward") == 1
    assert all(torch.allclose(d.grad.cpu(), h.grad, rtol=1e-4, atol=1e-4) for d, h in zip(device, host))
    up = [torch.randn(1, 3, 4).to("pebble"), torch.randn(3, 2, 3).to("pebble")]
    assert torch.allclose(torch.conv_transpose1d(*up).cpu(), torch.conv_transpose1d(*(t.cpu() for t in up)))
    assert pebble.count("convolution") == 2 and pebble.count("fallback:aten::convolution") == 0
    q = torch.randn(1, 2, 3, 4)
    mine = q.to("pebble").requires_grad_()
    attended = torch.nn.functional.scaled_dot_product_attention(mine, mine, mine, is_causal=True)
    assert torch.allclose(attended.cpu(), torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))
    attended.sum().backward()
    assert mine.grad.tolist() == torch.full_like(q, 3).tolist()
    assert pebble.count("attention") == pebble.count("attention_backward") == 1
    raises(NotImplementedError, "the device has no kernel for it", lambda: torch.ops.aten._scaled_dot_product_fused_attention_overrideable(q, q, q))


def generators():
    raises(RuntimeError, "Only can register a generator to the PrivateUse1 dispatch key once!", pebble.register_the_generator_again)
    g = torch.Generator(device="pebble:1")
    assert str(g.device) == "pebble:1"
    g.manual_seed(5)
    first = torch.empty(3, device="pebble:1").uniform_(generator=g).tolist()
    g.manual_seed(5)
    assert torch.empty(3, device="pebble:1").uniform_(generator=g).tolist() == first and all(0 <= v < 1 for v in first)
    torch.manual_seed(3)
    first = torch.rand(3, device="pebble").tolist()
    torch.manual_seed(3)
    assert torch.rand(3, device="pebble").tolist() == first != torch.rand(3, device="pebble").tolist()


def streams_and_events():
    s = torch.Stream("pebble:0")
    with s:
        assert torch.accelerator.current_stream() == s
    recorded = pebble.count("record")
    e = s.record_event()
    assert pebble.count("record") == recorded + 1 and e.query()
    torch.Stream("pebble:0").wait_event(e)
    assert pebble.count("block") >= 1
    s.synchronize()
    assert pebble.count("synchronizeStream") >= 1


def files():
    x = torch.arange(6.0, device="pebble:1").reshape(2, 3)
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    back = torch.load(file)["x"]
    assert back.device == x.device and back.tolist() == x.tolist()
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].is_cpu
    assert copy.deepcopy(x).device == x.device
    pebble.polish(x)
    assert pebble.is_polished(x) and not pebble.is_polished(back)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert pebble.is_polished(torch.load(file)), "what the backend keeps beside a tensor"
    module = torch.nn.Module()
    module.register_buffer("polished", x)
    module.register_buffer("rough", back)
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    assert loaded.polished.tolist() == x.tolist()
    assert pebble.is_polished(loaded.polished) and not pebble.is_polished(loaded.rough)


names_and_guards()
memory()
kernels_and_fallback()
gradients()
overrideable_operators()
generators()
streams_and_events()
files()
print("all of it")
