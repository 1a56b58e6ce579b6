"""What real programs do, each in a few lines: the ways that packages extend, patch and ask PyTorch, not its operators."""

import functools

import pytest

import cresset as torch
from cresset import nn
from cresset.nn import functional as F


def test_einsum_as_packages_call_it():
    """Contraction planners (opt_einsum, e3nn) give the operands as one tuple, list numbers in place of letters, and trace what they call."""
    from cresset.fx import symbolic_trace

    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4)
    want = a @ b
    assert torch.equal(torch.einsum("ij,jk->ik", (a, b)), want)
    assert torch.equal(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), want)
    assert torch.equal(torch.einsum(a, [..., 1], b, [1, 30], [..., 30]), want)
    with pytest.raises(ValueError, match=r"not within the valid range \[0, 52\)"):
        torch.einsum(a, [0, 52])
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum(a)
    graph = symbolic_trace(lambda x, y: torch.einsum("ij,jk->ik", (x, y))).graph
    (node,) = (n for n in graph.nodes if n.op == "call_function")
    assert node.target is torch.functional.einsum and [str(x) for x in node.args] == ["ij,jk->ik", "x", "y"]
    assert "aten::einsum" in str(torch.jit.script(_contract).graph) and torch.equal(torch.jit.script(_contract)(a, b), want)


def _contract(x: torch.Tensor, y: torch.Tensor):
    return torch.einsum("ij,jk->ik", [x, y])


class Recipe:
    """An object with annotations, as layers of einops hold them in a dict by number of dimensions."""

    def __init__(self, order: list[int], keep: bool):
        self.order: list[int] = order
        self.keep: bool = keep


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.recipes = {2: Recipe([1, 0], True), 3: Recipe([2, 0, 1], False)}

    def forward(self, x):
        recipe = self.recipes[x.ndim]
        return x.permute(recipe.order)


def test_scripted_layers_hold_plain_objects():
    scripted = torch.jit.script(nn.Sequential(Turned(), nn.ReLU()))
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(scripted(x), x.permute(2, 0, 1)) and torch.equal(scripted(x[0]), x[0].T)


def test_patched_parameters():
    """Differentiable inner loops (higher, MAML) replace parameters by tensors with a history."""
    net = nn.Linear(2, 1)
    params = [p.detach().clone().requires_grad_() for p in net.parameters()]
    x, y = torch.ones(3, 2), torch.zeros(3, 1)
    for name in ("weight", "bias"):
        delattr(net, name)
    for name, p in zip(("weight", "bias"), params):
        setattr(net, name, p * 1)
    inner = F.mse_loss(net(x), y)
    grads = torch.autograd.grad(inner, params, create_graph=True)
    for name, p, g in zip(("weight", "bias"), params, grads):
        setattr(net, name, p - 0.1 * g)
    F.mse_loss(net(x), y).backward()
    assert all(p.grad is not None for p in params) and not list(net.parameters())


def test_hooks_count_what_layers_do():
    """Profilers (fvcore, torchinfo) hang forward hooks into all leaves, by name."""
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
    seen = {}

    def note(name, module, inputs, output):
        seen[name] = tuple(output.shape), sum(p.numel() for p in module.parameters(recurse=False))

    handles = [m.register_forward_hook(functools.partial(note, n)) for n, m in net.named_modules() if not list(m.children())]
    net(torch.ones(2, 1, 8, 8))
    for handle in handles:
        handle.remove()
    net(torch.ones(1, 1, 8, 8))
    assert seen == {"0": ((2, 2, 6, 6), 20), "1": ((2, 2, 6, 6), 0), "2": ((2, 72), 0), "3": ((2, 3), 219)}


def test_subclasses_with_metadata():
    """Tensors that carry facts about themselves (MONAI, torchvision's tv_tensors) through every operator."""

    class Marked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs or {})
            marks = [m for a in args if isinstance(a, Marked) and (m := getattr(a, "mark", None))]
            if isinstance(out, Marked) and marks:
                out.mark = marks[0]
            return out

    x = torch.ones(2, 2).as_subclass(Marked)
    x.mark = "here"
    y = (x + 1).t()[0]
    assert type(y) is Marked and y.mark == "here" and type(torch.stack([x, x])) is Marked and type(y.as_subclass(torch.Tensor)) is torch.Tensor


def test_trees_of_results():
    """Model outputs are ordered dicts with attributes, registered as nodes of trees (transformers)."""
    from collections import OrderedDict

    from cresset.utils import _pytree

    class Output(OrderedDict):
        pass

    _pytree.register_pytree_node(
        Output, _pytree._dict_flatten, lambda values, keys: Output(_pytree._dict_unflatten(values, keys)),
        flatten_with_keys_fn=_pytree._dict_flatten_with_keys, serialized_type_name="idioms.Output",
    )  # fmt: skip
    try:
        out = _pytree.tree_map(lambda t: t + 1, Output(a=torch.zeros(1), b=[torch.ones(1)]))
        assert type(out) is Output and out["b"][0].item() == 2
        assert [_pytree.keystr(path) for path, _ in _pytree.tree_flatten_with_path(out)[0]] == ["['a']", "['b'][0]"]
    finally:
        _pytree._deregister_pytree_node(Output)


def test_switches_of_the_graph_executor():
    """timm turns fusers on and off, and others restore what was set."""
    old = torch._C._jit_set_profiling_executor(False)
    assert torch._C._jit_set_profiling_executor(old) is False and old is True
    was = torch._C._jit_can_fuse_on_cpu()
    torch._C._jit_override_can_fuse_on_cpu(not was)
    assert torch._C._jit_can_fuse_on_cpu() is not was
    torch._C._jit_override_can_fuse_on_cpu(was)
    assert torch._C._get_graph_executor_optimize(False) is True and torch._C._get_graph_executor_optimize() is False  # a getter that sets, too
    torch._C._set_graph_executor_optimize(True)
    assert torch._C._get_graph_executor_optimize(None) is True


def test_facts_and_sizes_of_the_extension_module():
    """PyTorch's own tests, and libraries' copies of their helpers, ask what is built in, and how two sizes broadcast."""
    assert torch._C.has_spectral is True and torch._C.has_lapack is True
    assert torch._C._infer_size(torch.Size([2, 1]), torch.Size([3])) == torch.Size([2, 3])
    assert torch._C._infer_size(torch.Size([0]), torch.Size([4, 1])) == torch.Size([4, 0])
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 1"):
        torch._C._infer_size(torch.Size([2, 2]), torch.Size([3]))
    with pytest.raises(RuntimeError, match="expected a torch.Size as argument 2"):
        torch._C._infer_size(torch.Size([2]), [3])


def test_ranges_of_the_profiler_as_operators():
    """Tracers put the ends of a range into their graphs."""
    from cresset.autograd import profiler

    with profiler.profile() as prof:
        handle = torch.ops.profiler._record_function_enter("mine")
        torch.ones(2).sin()
        torch.ops.profiler._record_function_exit(handle)
    assert "mine" in {event.key for event in prof.key_averages()}
    with pytest.raises(RuntimeError, match="was not given back yet"):
        torch.ops.profiler._record_function_exit(handle)
