"""No call that reaches a device holds Python's lock: the device's own threads may need it, and other threads of the program run on.

Run by tests/extensions/test_backends.py with the device's name in CRESSET_TEST_DEVICE (simulated or opaque). The device counts calls that
reach it with the lock held; a second thread counts its own steps while the first one waits.
"""

import contextlib
import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import cresset
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "backends/simulated"))
from cresset_simulated import faults  # noqa: E402

DEVICE = os.environ["CRESSET_TEST_DEVICE"]
cresset.device(DEVICE)
functional = cresset.nn.functional


def held(call):
    """How often `call` reached the device with the lock held."""
    cresset.accelerator.synchronize(DEVICE)
    before = faults.calls("with_lock", DEVICE)
    call()
    cresset.accelerator.synchronize(DEVICE)
    return faults.calls("with_lock", DEVICE) - before


def on_device(*size, **options):
    return cresset.ones(*size, device=DEVICE, **options)


def assign(t, index, value):
    t[index] = value


def saved(value):
    buffer = io.BytesIO()
    cresset.save(value, buffer)
    buffer.seek(0)
    return buffer


class Marked(cresset.Tensor):
    pass


# Everything in the binding that is written by hand, on a tensor of the device.
CALLS = {
    "cpu": lambda x: x.cpu(), "to device": lambda x: x.cpu().to(DEVICE), "to dtype": lambda x: x.to(cresset.float64), "to other": lambda x: cresset.ones(2).to(x),
    "to copy": lambda x: x.to(DEVICE, copy=True), "tolist": lambda x: x.tolist(), "item": lambda x: x[0, 0].item(), "repr": lambda x: repr(x),
    "str": lambda x: str(x[0]), "format": lambda x: f"{x[0, 0]:.2f}", "bool": lambda x: bool(x[0, 0]), "int": lambda x: int(x[0, 0]),
    "float()": lambda x: float(x[0, 0]), "complex": lambda x: complex(x[0, 0]), "index": lambda x: [5, 6][x.long()[0, 0]], "len": lambda x: len(x),
    "iter": lambda x: list(x), "contains": lambda x: 1.0 in x, "numpy": lambda x: x.numpy(force=True), "type": lambda x: x.type(cresset.int32),
    "type name": lambda x: x.type("torch.DoubleTensor"), "type of host": lambda x: x.cpu().type(f"torch.{DEVICE}.FloatTensor"),
    **{name: lambda x, name=name: getattr(x, name)()
       for name in ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "cfloat", "cdouble", "clone", "detach")},
    "tensor": lambda x: cresset.tensor([1.0, 2.0], device=DEVICE), "tensor of tensors": lambda x: cresset.tensor([x[0, 0], x[0, 1]]),
    "tensor of elements": lambda x: cresset.tensor([x[0, 0], x[1, 1]]), "tensor of tensor": lambda x: cresset.tensor(x), "as_tensor": lambda x: cresset.as_tensor([1.0], device=DEVICE),
    "as_tensor back": lambda x: cresset.as_tensor(x, device="cpu"), "new_tensor": lambda x: x.new_tensor([1.0]), "asarray": lambda x: cresset.asarray([1.0], device=DEVICE),
    "Tensor()": lambda x: cresset.Tensor(x), "scalar_tensor": lambda x: cresset.scalar_tensor(2, device=DEVICE),
    **{name: lambda x, name=name: getattr(cresset, name)(3, device=DEVICE) for name in ("ones", "zeros", "empty", "rand", "randn", "arange", "eye", "randperm")},
    "full": lambda x: cresset.full((2,), 3.0, device=DEVICE), "linspace": lambda x: cresset.linspace(0, 1, 5, device=DEVICE),
    "randint": lambda x: cresset.randint(0, 5, (3,), device=DEVICE), "ones_like": lambda x: cresset.ones_like(cresset.ones(2), device=DEVICE),
    "new_zeros": lambda x: x.new_zeros(2), "default device": lambda x: with_default_device(lambda: cresset.ones(2)),
    "x[0]": lambda x: x[0], "x[:, 1]": lambda x: x[:, 1], "x[...]": lambda x: x[...], "x[None]": lambda x: x[None], "x[[0, 1]]": lambda x: x[[0, 1]],
    "x[mask]": lambda x: x[x > 0], "x[index]": lambda x: x[cresset.tensor([1, 0], device=DEVICE)], "x[number]": lambda x: x[cresset.tensor(1, device=DEVICE)],
    "host[number]": lambda x: cresset.ones(3)[cresset.tensor(1, device=DEVICE)],
    "x[0] =": lambda x: assign(x, 0, 5.0), "x[:, 1] = tensor": lambda x: assign(x, (slice(None), 1), cresset.tensor(2.0)), "x[...] = row": lambda x: assign(x, ..., x[0].clone()),
    "x[mask] =": lambda x: assign(x, x > 0, 1.0), "x[index] =": lambda x: assign(x, [0, 1], x.clone()[:2]), "host[0] = x": lambda x: assign(cresset.zeros(4, 4), 0, x[0]),
    **{name: lambda x, name=name: getattr(x, name) for name in ("T", "mT", "H", "mH", "real", "data", "grad", "shape", "device")},
    "imag": lambda x: x.cfloat().imag, "set real": lambda x: setattr(x.cfloat(), "real", x), "set imag": lambda x: setattr(x.cfloat(), "imag", x),
    "x + x": lambda x: x + x, "x + 1": lambda x: x + 1, "1 - x": lambda x: 1 - x, "x ** 2": lambda x: x**2, "2 ** x": lambda x: 2**x, "x @ x": lambda x: x @ x, "-x": lambda x: -x,
    "abs": lambda x: abs(x), "~x": lambda x: ~(x > 0), "x % 2": lambda x: x % 2, "x // 2": lambda x: x // 2, "2 / x": lambda x: 2 / x, "x == x": lambda x: x == x, "x < 1": lambda x: x < 1,
    "x += 1": lambda x: x.__iadd__(1), "x **= 2": lambda x: x.__ipow__(2), "x *= x": lambda x: x.__imul__(x.clone()), "array / x": lambda x: 1.0 / x,
    "as_subclass": lambda x: x.as_subclass(Marked), "subclass + 1": lambda x: x.as_subclass(Marked) + 1, "ops": lambda x: cresset.ops.aten.mul.Tensor(x, x),
    "packet": lambda x: cresset.ops.aten.add(x, x), "redispatch": lambda x: cresset.ops.aten.neg.default.redispatch(cresset._C._dispatch_keys(x.detach()) & cresset._C._after_autograd_keyset, x),
    "backward": lambda x: (x.detach().requires_grad_() * 2).sum().backward(), "grad": lambda x: cresset.autograd.grad((x.detach().requires_grad_() ** 2).sum(), []) if x is None else None,
    "jvp": lambda x: cresset.func.jvp(lambda t: t * 2, (x,), (x,)), "vmap": lambda x: cresset.func.vmap(lambda t: t * 2)(x), "func.grad": lambda x: cresset.func.grad(lambda t: t.sum())(x),
    "save": lambda x: saved(x), "load": lambda x: cresset.load(saved(x)), "deepcopy": lambda x: __import__("copy").deepcopy(x), "pickle": lambda x: __import__("pickle").dumps(x),
    "storage": lambda x: x.untyped_storage().nbytes(), "storage resize": lambda x: cresset.ones(4).untyped_storage().resize_(8), "storage bytes": lambda x: x.untyped_storage().cpu(),
    "set_": lambda x: x.new_empty(0).set_(x), "resize_": lambda x: x.clone().resize_(30), "copy_": lambda x: x.copy_(cresset.zeros(4, 4)), "copy back": lambda x: cresset.zeros(4, 4).copy_(x),
    "pin_memory": lambda x: cresset.ones(2).pin_memory(DEVICE), "pinned": lambda x: cresset.ones(2, pin_memory=True),
    "synchronize": lambda x: cresset.accelerator.synchronize(DEVICE), "stream": lambda x: cresset.Stream(DEVICE).synchronize(), "current": lambda x: cresset.accelerator.current_stream(DEVICE),
    "event": lambda x: cresset.Event(DEVICE).record(cresset.accelerator.current_stream(DEVICE)), "event wait": lambda x: cresset.accelerator.current_stream(DEVICE).record_event().wait(),
    "event synchronize": lambda x: cresset.accelerator.current_stream(DEVICE).record_event().synchronize(),
    "event query": lambda x: cresset.accelerator.current_stream(DEVICE).record_event().query(), "record_stream": lambda x: x.record_stream(cresset.accelerator.current_stream(DEVICE)),
    "manual_seed": lambda x: getattr(cresset, DEVICE).manual_seed_all(3), "rng state": lambda x: getattr(cresset, DEVICE).get_rng_state(),
    "properties": lambda x: getattr(cresset, DEVICE).get_device_properties(0), "empty_cache": lambda x: getattr(cresset, DEVICE).empty_cache(),
    "module": lambda x: cresset.nn.Linear(4, 4).to(DEVICE)(x), "step": lambda x: step(x), "autocast": lambda x: autocast(x), "clip": lambda x: clip(x),
    "foreach": lambda x: cresset._foreach_add([x, x], 1.0), "cat": lambda x: cresset.cat([x, x]), "where": lambda x: cresset.where(x > 0, x, 2.0), "einsum": lambda x: cresset.einsum("ij,jk", x, x),
    "dual": lambda x: dual(x), "allclose": lambda x: cresset.allclose(x, x), "equal": lambda x: cresset.equal(x, x), "checkpoint": lambda x: checkpoint(x),
    "script": lambda x: cresset.jit.script(twice)(x), "trace": lambda x: cresset.jit.trace(twice, x)(x), "profiler": lambda x: profiled(x),
}  # fmt: skip


def twice(x: cresset.Tensor):
    return x * 2 + 1


def with_default_device(call):
    cresset.set_default_device(DEVICE)
    try:
        return call()
    finally:
        cresset.set_default_device(None)


def step(x):
    model = cresset.nn.Linear(4, 4).to(DEVICE)
    optimiser = cresset.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimiser.step()
    optimiser.zero_grad()


def autocast(x):
    with cresset.autocast(DEVICE):
        return x @ x


def clip(x):
    p = cresset.nn.Parameter(x.detach().clone())
    p.grad = x.detach().clone()
    cresset.nn.utils.clip_grad_norm_([p], 1.0)


def dual(x):
    with cresset.autograd.forward_ad.dual_level():
        made = cresset.autograd.forward_ad.make_dual(x.detach(), x.detach().clone())
        return cresset.autograd.forward_ad.unpack_dual(made * 2)


def checkpoint(x):
    from cresset.utils.checkpoint import checkpoint as run

    run(lambda t: t * 2, x.detach().requires_grad_(), use_reentrant=False).sum().backward()


def profiled(x):
    with cresset.autograd.profiler.profile(use_device=DEVICE):
        x * 2


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_are_written_by_hand(name):
    x = on_device(4, 4)
    assert held(lambda: CALLS[name](x)) == 0


# Methods that end the process, wait for input, or are no calls.
SKIPPED = {"__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__del__", "share_memory_"}
ARGUMENTS = (lambda x: (), lambda x: (x,), lambda x: (1,), lambda x: (0, 1), lambda x: (2.0,), lambda x: (x, x), lambda x: (0, x.long() * 0), lambda x: (x > 0, 1.0),
             lambda x: (0, cresset.tensor([0], device=DEVICE)), lambda x: ((4, 4),), lambda x: (-1, 0, 1), lambda x: (x, x, x))  # fmt: skip


def tries(name, make):
    for arguments in ARGUMENTS:
        x = on_device(4, 4)
        with contextlib.suppress(Exception):
            make(x)(*arguments(x))


@pytest.mark.filterwarnings("ignore")
def test_every_method():
    found = {}
    for name in sorted(set(dir(cresset.Tensor)) - SKIPPED):
        if callable(getattr(cresset.Tensor, name, None)):
            if count := held(lambda: tries(name, lambda x: getattr(x, name))):
                found[name] = count
    assert found == {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [cresset._C._VariableFunctions, cresset._C._nn, cresset._C._linalg, cresset._C._special, cresset._C._fft], ids=lambda m: m.__name__)
def test_every_function(module):
    found = {}
    for name in sorted(n for n in dir(module) if not n.startswith("__")):
        def make(x, name=name):
            function = getattr(module, name)
            return lambda *args: function(x, *args) if args else function(4, device=DEVICE)

        if count := held(lambda: tries(name, make)):
            found[name] = count
    assert found == {}


# --- a slow device --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def counting():
    """A second thread that takes a step each millisecond; gives a function that says how many."""
    steps, stop = [0], threading.Event()

    def run():
        while not stop.wait(0.001):
            steps[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: steps[0]
    finally:
        stop.set()
        thread.join()


SLOW = ("cpu", "to dtype", "to device", "tolist", "item", "repr", "bool", "numpy", "half", "double", "type", "tensor", "tensor of tensors", "new_tensor", "ones", "arange", "rand",
        "x[0] =", "x[mask]", "x[index] =", "host[0] = x", "save", "load", "deepcopy", "copy back", "x + 1", "x ** 2", "contains", "ops", "backward", "equal", "synchronize")  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_other_threads_go_on(name):
    x = on_device(4, 4)
    cresset.accelerator.synchronize(DEVICE)
    CALLS[name](x)
    for _ in range(5):  # on a busy machine the other thread may not have its turn in 10 ms
        with faults.fault("delay", 10_000, DEVICE), faults.fault("host_delay", 10_000, DEVICE), counting() as steps:
            first, start = steps(), time.perf_counter()
            CALLS[name](x)
            waited, made = time.perf_counter() - start, steps() - first
            cresset.accelerator.synchronize(DEVICE)
        assert waited >= 0.01, f"waited {waited * 1000:.0f} ms"
        if made >= 3:
            return
    raise AssertionError(f"{made} steps in {waited * 1000:.0f} ms")


@pytest.mark.parametrize("call", ["y.cpu()", "y.tolist()", "repr(y)", "y.half().cpu()", "x[0] = y[0].cpu()", "cresset.save(y, io.BytesIO())", "bool(y[0, 0])", "cresset.equal(y, y)"])
def test_the_device_may_free_objects_of_python(call):
    """The queue holds the last reference to an object with a class of its own: whoever frees it needs the lock."""
    code = f"""
import io, sys
sys.path.insert(0, {sys.path[0]!r})
import cresset
from cresset_simulated import faults
class Marked(cresset.Tensor): pass
x = cresset.ones(4, 4)
with faults.fault("delay", 50_000, "{DEVICE}"):
    for _ in range(3):
        marked = cresset.ones(4, 4, device="{DEVICE}").as_subclass(Marked)
        marked.note = "state"
        with cresset._C.DisableTorchFunctionSubclass():
            y = marked * 2
        del marked
        {call}
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done.stderr[-2000:]
