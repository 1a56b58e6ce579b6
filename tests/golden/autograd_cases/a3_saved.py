"""Tensors saved by nodes: in custom Functions and in built-in nodes."""

import gc
import weakref

from . import raised


def _leaf(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def _saving(t, pick):
    """A Function that doubles and saves what pick(input, output) gives; what backward finds is kept in `found`."""

    class F(t.autograd.Function):
        found = []

        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(*pick(x, y))
            return y

        @staticmethod
        def backward(ctx, g):
            F.found[:] = ctx.saved_tensors
            return g * 2

    return F


def n15_identity_of_inputs(t):
    F = _saving(t, lambda x, y: (x, None))
    x = _leaf(t)
    y = F.apply(x)
    saved = y.grad_fn.saved_tensors
    same = saved[0] is x, saved[1]
    y.sum().backward()
    return same, F.found[0] is x, F.found[1]


def n15_outputs_and_cycles(t):
    F = _saving(t, lambda x, y: (y,))
    y = F.apply(_leaf(t))
    node = y.grad_fn
    saved = node.saved_tensors[0]
    out = saved.grad_fn is node, saved is y
    del saved, node
    gc.disable()
    try:
        marker = weakref.ref(y)
        del y
        freed = marker() is None
    finally:
        gc.enable()
    return out, freed


def n15_saved_tuple_type(t):
    F = _saving(t, lambda x, y: (x, y))
    y = F.apply(_leaf(t))
    return type(y.grad_fn.saved_tensors).__name__, len(y.grad_fn.saved_tensors), len(y.grad_fn.saved_variables)


def n16_version_check(t):
    F = _saving(t, lambda x, y: (x,))
    x = _leaf(t).clone()
    y = F.apply(x)
    x.add_(1)
    a = t.ones(2, 3, requires_grad=True)
    b = a.exp()
    b.add_(1)
    c = b.sum()

    def text(f):
        try:
            f()
        except RuntimeError as error:
            return str(error)

    return (
        raised(lambda: y.sum().backward(), "has been modified by an inplace operation"),
        "is at version 1; expected version 0 instead" in text(lambda: F.apply(_leaf(t)) and y.sum().backward()),
        text(c.backward).replace("torch.FloatTensor", "FloatTensor"),
    )


def n17_second_backward(t):
    x = _leaf(t)
    y = x.exp().sum()
    y.backward()
    z = (x + 1).sum()
    z.backward()
    z.backward()
    e = x.exp()
    e.sum().backward()
    F = _saving(t, lambda x, y: (x,))
    f = F.apply(x)
    f.sum().backward()
    return (
        raised(y.backward, "Trying to backward through the graph a second time"),
        x.grad is not None,
        raised(lambda: e.grad_fn._saved_result, "Trying to backward through the graph a second time"),
        raised(lambda: f.grad_fn.saved_tensors, "Trying to backward through the graph a second time"),
        raised(f.sum().backward, "Trying to backward through the graph a second time"),
    )


def n18_saved_attributes(t):
    x = _leaf(t, 4)
    m = x.reshape(2, 2)
    e = m.exp()
    s = m.sum(1, keepdim=True)
    p = m**2
    mul = m * t.ones(2, dtype=t.float64)
    c = t.cat([m, m], -1)
    i = m[t.tensor([0]), :]
    nl = t.nn.functional.nll_loss(m, t.tensor([0, 1]))
    cl = m.clamp(min=1.5)
    index = m.select(0, 1)
    return (
        e.grad_fn._saved_result is e, e.grad_fn._saved_result.grad_fn is e.grad_fn,
        s.grad_fn._saved_dim, s.grad_fn._saved_keepdim, list(s.grad_fn._saved_self_sym_sizes),
        p.grad_fn._saved_self, p.grad_fn._saved_exponent,
        mul.grad_fn._saved_self is None, mul.grad_fn._saved_other,
        i.grad_fn._saved_indices[0], list(i.grad_fn._saved_self_sym_sizes),
        nl.grad_fn._saved_self, nl.grad_fn._saved_weight, nl.grad_fn._saved_reduction,
        cl.grad_fn._saved_min, cl.grad_fn._saved_max, index.grad_fn._saved_index,
        c.grad_fn._saved_dim >= -1,
    )  # fmt: skip


def n18_raw_saved(t):
    x = _leaf(t)
    e = (x * 1) ** 2
    raw = e.grad_fn._raw_saved_self
    log = []
    raw.register_hooks(lambda v: (log.append("pack"), v.detach())[1], lambda v: (log.append("unpack"), v)[1])
    again = raised(lambda: raw.register_hooks(lambda v: v, lambda v: v), "Calling register_hooks on a saved tensor whose hooks have already been set")
    e.sum().backward()
    after = raised(lambda: e.grad_fn._raw_saved_self.register_hooks(lambda v: v, lambda v: v), "after it has been freed")
    none = x * 2.0
    return type(raw).__name__, log, x.grad, again, after, none.grad_fn._raw_saved_self is None or type(none.grad_fn._raw_saved_self).__name__


def n18_raw_saved_of_function(t):
    F = _saving(t, lambda x, y: (x, y, None))
    x = _leaf(t)
    y = F.apply(x)
    raw = y.grad_fn._raw_saved_tensors
    raw[0].register_hooks(lambda v: v.detach(), lambda v: v)
    raw[1].register_hooks(lambda v: v, lambda v: v + 100)
    y.sum().backward()
    return len(raw), type(raw[0]).__name__, F.found[1]


def n18_raw_hooks_errors(t):
    y = (_leaf(t) * 1) ** 2

    def in_place(v):
        return v.mul_(2)

    return (
        raised(lambda: y.grad_fn._raw_saved_self.register_hooks(in_place, lambda v: v), "A saved tensor pack hook is modifying its input in place"),
        raised(lambda: y.grad_fn._saved_nonsense, "has no attribute '_saved_nonsense'"),
    )


def n19_intermediates(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with t.enable_grad():
                inner = x.detach().requires_grad_().exp()
            ctx.save_for_backward(x, inner)
            return inner.detach()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1].detach()

    x = _leaf(t)
    (g,) = t.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return g.requires_grad
