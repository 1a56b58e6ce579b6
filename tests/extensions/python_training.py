"""A device kind in Python that keeps elements in tensors of the CPU and trains a network. Run by test_python_backend.py as a program of its own."""

import io
import sys

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.utils import _pytree as pytree
from cresset.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("paper")


class Paper(cresset.Tensor):
    @staticmethod
    def __new__(cls, host):
        tensor = cresset._C._acc.create_empty_tensor(tuple(host.shape), host.dtype)
        tensor.__class__ = Paper
        tensor.host = host
        return tensor

    def __init__(self, host):
        pass


def on_host(value):
    if isinstance(value, cresset.device):
        return cresset.device("cpu")
    return value.host if isinstance(value, Paper) else value


def compute(op, *args, **kwargs):
    """The operator on the elements; what it writes to is given back as the object that came."""
    came = {id(x.host): x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Paper)}
    args, kwargs = pytree.tree_map(on_host, (args, kwargs))
    return pytree.tree_map_only(cresset.Tensor, lambda t: came.get(id(t)) if id(t) in came else Paper(t), op(*args, **kwargs))


every = cresset.library.Library("_", "IMPL")  # registrations live as long as it does
every.fallback(compute, "PrivateUse1")


def kernel(name):
    return cresset.library.impl(f"aten::{name}", "privateuseone")


@kernel("empty.memory_format")
def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return Paper(cresset.empty(size, dtype=dtype))


@kernel("empty_strided")
def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return Paper(cresset.empty(size, dtype=dtype))


@kernel("_copy_from")
def copy_from(source, target, non_blocking=False):
    on_host(target).copy_(on_host(source))
    return target


def views():
    """Operators that are made of storages where a device has no kernel for them: here, where there is no storage, all of them need one."""
    for name in cresset._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        if base.startswith("aten::") and cresset._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutograd"):
            op = getattr(getattr(cresset.ops.aten, base[6:]), overload or "default")
            if any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns):
                yield name, op


before = cresset._C._acc.create_empty_tensor((2, 3), cresset.float32)
try:
    before.t()
except RuntimeError as error:
    assert "The tensor has no memory of its own: a device that keeps elements in Python needs a kernel for this view, too (library.impl)." in str(error), error
else:
    raise AssertionError("a view of nothing")
try:
    cresset.save(before, io.BytesIO())
except RuntimeError as error:
    assert "pickle: a tensor with memory was required; this one on paper:0 has none. Save a copy of it on the CPU, .cpu()." in str(error), error
else:
    raise AssertionError("a file without elements")
for name, op in views():
    kernel(name)(lambda *args, _op=op, **kwargs: compute(_op, *args, **kwargs))
kernel("view")(lambda self, size: Paper(self.host.reshape(size)))  # sizes say nothing of the strides of `host`


def trained(device, make):
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3), nn.LogSoftmax(1)).to(device)
    x, y = cresset.randn(12, 1, 8, 8).to(device), (cresset.arange(12) % 3).to(device)
    optimizer, losses = make(model.parameters()), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.device.type == device for p in model.parameters())
    return losses


for make in (lambda p: cresset.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: cresset.optim.AdamW(p, lr=0.01)):
    here, there = trained("paper", make), trained("cpu", make)
    assert all(abs(a - b) < 1e-5 for a, b in zip(here, there)) and here[-1] < here[0], (here, there)

x = cresset.tensor([0.0, 1.0]).to("paper").requires_grad_()
y = x.exp()  # its result is what backward needs: the object keeps its class and its elements
y.sum().backward()
assert type(x.grad) is Paper and cresset.allclose(x.grad.cpu(), y.detach().cpu()) and type(y.data) is Paper and y.data.host.tolist() == y.tolist()
kernel("_to_copy")(lambda self, **kwargs: Paper(self.host.clone()))
try:
    y.tolist()
except RuntimeError as error:
    assert "tolist: a copy on the CPU was required of aten::_to_copy; its kernel for paper:0 gave a tensor on paper:0." in str(error), error
else:
    raise AssertionError("elements of nothing were read")
sys.stdout.write("all of it\n")
