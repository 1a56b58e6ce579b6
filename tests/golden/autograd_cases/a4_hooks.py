"""Hooks of tensors, nodes, saved tensors; checkpoint."""

from . import raised, warned


def _leaf(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def n01_tensor_hooks(t):
    x, log = _leaf(t), []
    y = x * 2
    y.register_hook(lambda g: log.append(("a", g.clone())))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: (log.append(("c", g.clone())), None)[1])
    y.sum().backward()
    handle.remove()
    (x * 1).register_hook(lambda g: g)
    y = x * 2
    return log, x.grad


def n01_errors(t):
    def run(hook):
        y = _leaf(t) * 2
        y.register_hook(hook)
        return lambda: y.sum().backward()

    return (
        raised(run(lambda g: g[:1]), "has changed the size of value"),
        raised(run(lambda g: 3), "expected Variable, but hook returned 'int'"),
        raised(run(lambda g: g.float()), "has changed the type of value"),
        raised(lambda: t.ones(2).register_hook(lambda g: g), "cannot register a hook on a tensor that doesn't require gradient"),
    )


def n02_order_at_one_node(t):
    x, log = _leaf(t), []
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: (log.append("tensor"), g * 3)[1])
    node = y.grad_fn
    node.register_prehook(lambda gs: (log.append(("pre", len(gs))), (gs[0] * 5,))[1])
    node.register_hook(lambda gi, go: log.append(("post", gi[0].clone(), go[0].clone())))
    y.sum().backward()
    return log, y.grad, x.grad


def n02_post_hooks_replace(t):
    x = _leaf(t)
    y = x * 2
    handle = y.grad_fn.register_hook(lambda gi, go: (gi[0] * 100, None))
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    handle.remove()
    y.sum().backward()
    return first, x.grad


def n02_hook_errors(t):
    x = _leaf(t)
    y, z = x * 2, x * 2
    y.grad_fn.register_prehook(lambda gs: (1, 2))
    z.grad_fn.register_hook(lambda gi, go: (gi[0], None, None, None))
    return raised(y.sum().backward, ""), raised(z.sum().backward, "")


def n02_leaf_hooks(t):
    x, log = _leaf(t), []
    x.register_hook(lambda g: (log.append("tensor"), g * 2)[1])
    accumulate = t.autograd.graph.get_gradient_edge(x).node
    accumulate.register_prehook(lambda gs: log.append("pre"))
    accumulate.register_hook(lambda gi, go: log.append(("post", len(gi), len(go))))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    (x * 3).sum().backward()
    return log, x.grad


def n03_in_place_and_hooks(t):
    x, log = _leaf(t), []
    y = x * 2
    y.register_hook(lambda g: log.append(("old", g.clone())))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(lambda g: log.append(("new", g.clone())))
    y.sum().backward()
    return log, y.grad, x.grad


def n04_post_accumulate(t):
    x, log = _leaf(t), []
    handle = x.register_post_accumulate_grad_hook(lambda p: log.append((p is x, p.grad.clone())))
    (x * 2).sum().backward()
    t.autograd.grad((x * 2).sum(), x)
    handle.remove()
    (x * 2).sum().backward()
    x.register_post_accumulate_grad_hook(lambda p: 3)
    return (
        log,
        raised(lambda: (x * 2).sum().backward(), "hook returned 'int'"),
        raised(lambda: (x * 2).register_post_accumulate_grad_hook(print), "post accumulate grad hooks cannot be registered on non-leaf tensors"),
        raised(lambda: t.ones(2).register_post_accumulate_grad_hook(print), "cannot register a hook on a tensor that doesn't require gradient"),
    )


def n04_post_accumulate_clears(t):
    x = _leaf(t)

    def hook(p):
        p.grad = None

    x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    return x.grad


def n05_multi_grad_all(t):
    a, b, c = (_leaf(t) for _ in range(3))
    log = []
    handle = t.autograd.graph.register_multi_grad_hook((a, b, c), lambda grads: log.append([g if g is None else g.clone() for g in grads]))
    (a * b * c).sum().backward()
    (a * b).sum().backward(inputs=(a, b))
    handle.remove()
    (a * b * c).sum().backward()
    return log


def n05_multi_grad_any(t):
    a, b = _leaf(t), _leaf(t)
    log = []
    graph = t.autograd.graph
    handle = graph.register_multi_grad_hook((a, b), lambda g: log.append(g.clone()), mode="any")
    (a * 2 + (b * 2) ** 1).sum().backward()
    (b * 5).sum().backward()
    handle.remove()
    (b * 5).sum().backward()
    return (
        len(log), log[-1],
        raised(lambda: graph.register_multi_grad_hook((a, b), print, mode="one"), "Expects mode to be one of"),
    )  # fmt: skip


def n05_multi_grad_nodes_and_handles(t):
    a, b = _leaf(t), _leaf(t)
    y, log = a * b, []
    t.autograd.graph.register_multi_grad_hook((y, a), lambda grads: log.append(len(grads)))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return log


def n14_saved_tensors_hooks(t):
    x, log = _leaf(t), []
    hooks = t.autograd.graph.saved_tensors_hooks
    with hooks(lambda v: (log.append("pack"), v.tolist())[1], lambda v: (log.append("unpack"), t.tensor(v, dtype=t.float64))[1]):
        y = (x * x).sum()
        with hooks(lambda v: (log.append("inner"), v)[1], lambda v: v):
            z = x.exp()
        w = x.sin()
    y.backward()
    z.sum().backward()
    w.sum().backward()
    return log, x.grad


def n14_hook_errors(t):
    hooks = t.autograd.graph.saved_tensors_hooks

    def with_pack(pack, unpack):
        x = _leaf(t)
        with hooks(pack, unpack):
            y = (x * 1) ** 2
        return lambda: y.sum().backward()

    def disabled():
        with t.autograd.graph.disable_saved_tensors_hooks("not here"), hooks(lambda v: v, lambda v: v):
            pass

    def disabled_inside():
        with hooks(lambda v: v, lambda v: v), t.autograd.graph.disable_saved_tensors_hooks("not here"):
            pass

    def raising(v):
        raise KeyError("mine")

    return (
        raised(lambda: with_pack(lambda v: v.mul_(2), lambda v: v), "pack hook is modifying its input in place"),
        raised(with_pack(lambda v: v, lambda v: 3), "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"),
        raised(disabled, "not here"),
        raised(disabled_inside, "not here"),
        raised(lambda: with_pack(raising, lambda v: v), "mine"),
        raised(with_pack(lambda v: v, raising), "mine"),
    )


def n14_save_on_cpu(t):
    x = _leaf(t)
    with t.autograd.graph.save_on_cpu():
        y = x.exp() * x
    with t.autograd.graph.save_on_cpu(pin_memory=False):
        z = x * x
    (y + z).sum().backward()
    return x.grad


def n14_allow_mutation(t):
    allow = t.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        a = _leaf(t)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.sum().backward()
        first = a.grad
        c = _leaf(t).clone()
        d = c.exp()
        d[0] = 0
        e = (c * d).sum()
        c.add_(1)
        c.mul_(2)
        (g,) = t.autograd.grad(e, d, allow_unused=True)
    inner = []
    with allow() as ctx:
        x = _leaf(t).clone()
        y = x**2
        x.add_(1)
        inner.append(y.sum() is not None)
        (h,) = t.autograd.grad(y.sum(), x, allow_unused=True)
        ctx.clear()
    return first, g, h


def n14_allow_mutation_errors(t):
    allow = t.autograd.graph.allow_mutation_on_saved_tensors

    def nested():
        with allow(), allow():
            pass

    def after():
        with allow():
            a = _leaf(t)
            b = a.clone()
            out = (b**2).sum()
            b.sin_()
        out.backward()

    return raised(nested, "allow_mutation_on_saved_tensors contexts cannot be nested"), raised(after, "")


def _counting(t, log):
    def f(x, y):
        log.append(t.is_grad_enabled())
        return (x * y).sin().exp()

    return f


def n15_checkpoint(t):
    from importlib import import_module

    checkpoint = import_module(t.__name__ + ".utils.checkpoint").checkpoint
    out = []
    for reentrant in (False, True):
        log = []
        x, y = _leaf(t), _leaf(t)
        z = checkpoint(_counting(t, log), x * 1, y, use_reentrant=reentrant)
        z.sum().backward()
        out.append((len(log), x.grad, y.grad))
    return out


def n15_checkpoint_rng(t):
    from importlib import import_module

    checkpoint = import_module(t.__name__ + ".utils.checkpoint").checkpoint
    out = []
    for reentrant in (False, True):
        x = t.ones(20, dtype=t.float64, requires_grad=True)
        z = checkpoint(lambda v: t.nn.functional.dropout(v, 0.5) * v, x, use_reentrant=reentrant)
        z.sum().backward()
        out.append(bool((x.grad == 2 * z.detach()).all()))
    return out


def n15_checkpoint_warnings_and_errors(t):
    from importlib import import_module

    module = import_module(t.__name__ + ".utils.checkpoint")
    checkpoint = module.checkpoint
    x = _leaf(t)
    state = []

    def changing(v):
        state.append(1)
        return (v * 2).sin() if len(state) == 1 else (v[:2] * 2).sin()

    def fewer(v):
        state.append(1)
        return v.sin().sin() if len(state) == 1 else v.sin()

    def error(f, fragment):
        del state[:]
        y = checkpoint(f, x * 1, use_reentrant=False)
        return raised(lambda: y.sum().backward(), fragment)

    return (
        warned(lambda: checkpoint(lambda v: v * 2, t.ones(2), use_reentrant=True), "None of the inputs have requires_grad=True"),
        error(changing, "Recomputed values for the following tensors have different metadata than during the forward pass"),
        error(fewer, "A different number of tensors was saved during the original forward and recomputation"),
        raised(lambda: t.autograd.grad(checkpoint(lambda v: v * 2, x * 1, use_reentrant=True).sum(), x), "is incompatible with .grad()"),
    )


def n15_checkpoint_sequential_and_nested(t):
    from importlib import import_module

    module = import_module(t.__name__ + ".utils.checkpoint")
    model = t.nn.Sequential(*[t.nn.Linear(3, 3).double() for _ in range(4)])
    for p in model.parameters():
        t.nn.init.constant_(p, 0.1)
    x = _leaf(t).reshape(1, 3)
    a = module.checkpoint_sequential(model, 2, x, use_reentrant=False)
    log = []

    def outer(v):
        return module.checkpoint(_counting(t, log), v, v, use_reentrant=False) * 2

    y = _leaf(t)
    z = module.checkpoint(outer, y, use_reentrant=False)
    z.sum().backward()
    return a, len(log), y.grad


def n15_checkpoint_keywords(t):
    from importlib import import_module

    checkpoint = import_module(t.__name__ + ".utils.checkpoint").checkpoint
    x = _leaf(t)
    y = checkpoint(lambda v, scale=1.0: (v * scale, "text"), x, use_reentrant=False, scale=3.0)
    y[0].sum().backward()
    with t.no_grad():
        z = checkpoint(lambda v: v * 2, x, use_reentrant=False)
    return y[1], x.grad, z.requires_grad
