"""Cycles through the graph that the collector must find: each pattern leaves no object behind, however often it runs."""

import gc
import weakref

import pytest

import cresset as torch
from cresset import nn
from cresset.autograd.graph import saved_tensors_hooks
from cresset.nn.utils import parametrize
from cresset.utils.checkpoint import checkpoint

REPEATS = 1000


class Probe:
    """Something that the pattern holds, so that a weak reference can tell whether it lives."""


PATTERNS = {}


def pattern(make):
    PATTERNS[make.__name__] = make
    return make


def leaf():
    return torch.ones(3, requires_grad=True)


def function(forward):
    """A Function with this forward, whose class holds nothing but the class."""

    class Made(torch.autograd.Function):
        @staticmethod
        def backward(ctx, *grads):
            return grads[0] * 2

    Made.forward = staticmethod(forward)
    return Made.apply


def double(ctx, x):
    return x * 2


# --- contexts of custom functions ---------------------------------------------------------------------------------------------------


@pattern
def output_kept_by_forward(probe):
    def forward(ctx, x):
        ctx.probe, ctx.y = probe, x * 2
        return ctx.y

    function(forward)(leaf())


@pattern
def output_kept_later(probe):
    y = function(double)(leaf())
    y.grad_fn.y, y.grad_fn.probe = y, probe


@pattern
def output_kept_by_setup_context(probe):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.inputs, ctx.output, ctx.probe = inputs, output, probe

    Made.apply(leaf())


@pattern
def output_kept_and_backward_run(probe):
    def forward(ctx, x):
        ctx.probe, ctx.y = probe, x * 2
        return ctx.y

    function(forward)(leaf()).sum().backward()


@pattern
def output_saved(probe):
    def forward(ctx, x):
        y = x * 2
        ctx.probe = probe
        ctx.save_for_backward(y, x)
        return y

    function(forward)(leaf())


@pattern
def changed_view_saved(probe):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.probe = probe
        return x

    function(forward)(leaf().clone()[1:])


@pattern
def output_held_by_the_class(probe):
    box = [probe]

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * len(box)

    box.append(Made.apply(leaf()))


# --- hooks --------------------------------------------------------------------------------------------------------------------------


@pattern
def hook_of_a_leaf(probe):
    x = leaf()
    x.register_hook(lambda g: (x, probe) and None)


@pattern
def hook_of_a_leaf_that_ran(probe):
    x = leaf()
    x.register_hook(lambda g: (x, probe) and None)
    (x * 2).sum().backward()


@pattern
def hook_of_a_parameter(probe):
    p = nn.Parameter(torch.ones(3))
    p.register_hook(lambda g, p=p: (p, probe) and None)
    p.sum().backward()


@pattern
def hooks_of_a_result(probe):
    y = leaf() * 2
    y.register_hook(lambda g: (y, probe) and None)
    y.register_hook(lambda g: y and None)


@pattern
def hook_of_a_custom_result(probe):
    y = function(double)(leaf())
    y.register_hook(lambda g: (y, probe) and None)


@pattern
def hook_after_accumulation(probe):
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: (x, probe) and None)
    x.sum().backward()


@pattern
def hook_removed(probe):
    x = leaf()
    x.register_hook(lambda g: (x, probe) and None).remove()


@pattern
def hook_of_two_tensors(probe):
    x, y = leaf(), leaf()
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: (x, y, probe) and None)
    (x * y).sum().backward()


@pattern
def hook_of_a_node(probe):
    y = leaf() * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (y, probe) and None)


@pattern
def pre_hook_of_a_node(probe):
    y = leaf() * 2
    y.grad_fn.register_prehook(lambda outputs: (y, probe) and None)


@pattern
def hook_of_a_custom_node(probe):
    y = function(double)(leaf())
    y.grad_fn.register_hook(lambda inputs, outputs: (y, probe) and None)


@pattern
def node_in_its_own_hook(probe):
    node = (leaf() * 2).grad_fn
    node.register_hook(lambda inputs, outputs: (node, probe) and None)


@pattern
def hook_of_an_accumulator(probe):
    x = leaf()
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    node.register_hook(lambda inputs, outputs: (x, node, probe) and None)


@pattern
def metadata_of_a_node(probe):
    y = leaf() * 2
    y.grad_fn.metadata["y"] = (y, probe)


@pattern
def hooks_of_saved_tensors(probe):
    with saved_tensors_hooks(lambda t: (t.detach(), probe), lambda packed: packed[0]):
        y = leaf().exp()
    y.itself = y


@pattern
def hooks_of_saved_tensors_that_keep_them(probe):
    with saved_tensors_hooks(lambda t: (t, probe), lambda packed: packed[0]):
        x = leaf()
        (x.exp() * x).sum()


# --- attributes ---------------------------------------------------------------------------------------------------------------------


@pattern
def attribute_of_a_leaf(probe):
    x = leaf()
    x.itself, x.probe = x, probe


@pattern
def attribute_of_a_result(probe):
    y = leaf() * 2
    y.itself, y.node, y.probe = y, y.grad_fn, probe


@pattern
def attribute_of_a_gradient(probe):
    x = leaf()
    x.sum().backward()
    x.grad.of, x.probe = x, probe


@pattern
def retained_gradient(probe):
    y = leaf() * 2
    y.retain_grad()
    y.sum().backward()
    y.itself, y.probe = y, probe


@pattern
def attribute_of_a_subclass(probe):
    class Sub(torch.Tensor):
        pass

    s = torch.ones(2).as_subclass(Sub)
    s.itself, s.probe = s, probe


# --- modules, optimisers, checkpoints -----------------------------------------------------------------------------------------------


def linear(probe):
    module = nn.Linear(3, 3)
    module.probe = probe
    return module


def module_hook(register):
    def make(probe):
        module = linear(probe)
        register(module)(lambda *args: module and None)
        module(leaf()).sum().backward()
        module.load_state_dict(module.state_dict())

    return make


for _name in (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook",
    "_register_load_state_dict_pre_hook", "register_load_state_dict_pre_hook", "register_load_state_dict_post_hook", "_register_state_dict_hook",
    "register_state_dict_pre_hook",
):  # fmt: skip
    PATTERNS[_name] = module_hook(lambda module, name=_name: getattr(module, name))


@pattern
def load_pre_hook_that_is_a_method(probe):
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.probe, self.weight = probe, nn.Parameter(torch.ones(2))
            self._register_load_state_dict_pre_hook(self.hook, with_module=True)

        def hook(self, module, *args):
            pass

    module = Made()
    module.load_state_dict(module.state_dict())


@pattern
def hook_of_a_parameter_that_holds_the_module(probe):
    module = linear(probe)
    module.weight.register_hook(lambda g: module and None)
    module(leaf()).sum().backward()


@pattern
def module_that_keeps_its_output(probe):
    module = linear(probe)
    module.output = module(leaf())


@pattern
def parametrized_module(probe):
    module = linear(probe)
    parametrize.register_parametrization(module, "weight", nn.Identity())
    module(leaf()).sum().backward()


@pattern
def optimizer_with_a_hook(probe):
    module = linear(probe)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    optimizer.register_step_post_hook(lambda *args: (optimizer, module) and None)
    module(leaf()).sum().backward()
    optimizer.step()


@pattern
def checkpoint_not_run(probe):
    y = checkpoint(lambda x: (x * 2, probe)[0].exp(), leaf(), use_reentrant=False)
    y.itself = y


@pattern
def checkpoint_run(probe):
    checkpoint(lambda x: (x * 2, probe)[0].exp(), leaf(), use_reentrant=False).sum().backward()


@pattern
def checkpoint_reentrant(probe):
    checkpoint(lambda x: (x * 2, probe)[0].exp(), leaf(), use_reentrant=True).sum().backward()


@pattern
def vjp_that_is_kept(probe):
    value, pull = torch.func.vjp(lambda x: (x * 2, probe)[0], leaf())
    value.pull = pull, value


# --- the tests ----------------------------------------------------------------------------------------------------------------------


def run(make):
    probe = Probe()
    make(probe)
    return weakref.ref(probe)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.filterwarnings("ignore")
def test_nothing_stays(name):
    alive = [run(PATTERNS[name]) for _ in range(REPEATS)]
    gc.collect()
    assert sum(probe() is not None for probe in alive) == 0


def test_hooks_live_while_somebody_needs_them():
    """The collector takes no hook, context or gradient away that C++ alone still holds."""
    seen = []
    x = leaf()

    def forward(ctx, t):
        ctx.note = ["context"]
        return t * 2

    def build():
        y = function(forward)(x)
        y.register_hook(lambda g: seen.append("tensor"))
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append("node"))
        y.grad_fn.kept = y.grad_fn.note
        return y.exp().sum()

    x.register_hook(lambda g: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    loss = build()
    (x * 1).sum().backward()
    x.grad.note = ["gradient"]
    del seen[:]
    for _ in range(3):
        gc.collect()
    loss.backward()
    assert seen == ["tensor", "node", "leaf", "accumulated"] and x.grad.note == ["gradient"]
