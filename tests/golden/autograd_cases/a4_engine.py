"""backward and grad: arguments, accumulation, reentrance, depth, threads, the graph's nodes."""

import threading

from . import raised, warned


def _leaf(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def n06_backward_arguments(t):
    x = _leaf(t)
    y = x * 2
    y.backward(t.ones(3, dtype=t.float64), retain_graph=True)
    y.backward(gradient=t.ones(3, dtype=t.float64))
    return (
        x.grad,
        raised((x * 2).backward, "grad can be implicitly created only for scalar outputs"),
        raised(lambda: (x * 2).backward(t.ones(2)), "Mismatch in shape: grad_output[0] has a shape of"),
        raised(lambda: t.ones(2).sum().backward(), "element 0 of tensors does not require grad and does not have a grad_fn"),
        raised(lambda: t.autograd.backward([x.sum(), x.sum()], [None]), "got 2 tensors and 1 gradients"),
        raised(lambda: x.sum().backward(inputs=[]), "cannot be empty"),
        raised(lambda: (x * 2).backward(3), ""),
        raised(lambda: t.autograd.backward(x.sum(), inputs=[]), "cannot be empty"),
    )


def n06_grad_arguments(t):
    x, unused = _leaf(t), _leaf(t)
    grad = t.autograd.grad
    y = (x**2).sum()
    return (
        grad(y, x, retain_graph=True),
        grad(y, [x, unused], allow_unused=True, retain_graph=True),
        grad(y, [x, unused], materialize_grads=True, retain_graph=True),
        raised(lambda: grad(y, [x, unused], retain_graph=True), "appears to not have been used in the graph"),
        raised(lambda: grad(y, x, allow_unused=False, materialize_grads=True), "Expected allow_unused to be True or not passed when materialize_grads"),
        raised(lambda: grad(y, []), "cannot be empty"),
        raised(lambda: grad(y, t.ones(2)), "One of the differentiated Tensors does not require grad"),
        grad([y, y], x, [t.tensor(2.0, dtype=t.float64), None], retain_graph=True),
        grad(x * 2, x, t.ones(3, dtype=t.float64)),
    )


def n06_inputs_of_backward(t):
    x, w = _leaf(t), _leaf(t)
    y = x * w
    z = (y * 2).sum()
    z.backward(inputs=[x], retain_graph=True)
    only_x = x.grad.clone(), w.grad
    z.backward(inputs=[y], retain_graph=True)
    return only_x, y.grad, x.grad, w.grad


def n06_gradient_edges(t):
    edge = t.autograd.graph.get_gradient_edge
    x = _leaf(t)
    y = x * 2
    z = (y**2).sum()
    by_edge = t.autograd.grad(z, edge(y), retain_graph=True)
    from_edge = t.autograd.grad(edge(y), x, t.ones(3, dtype=t.float64), retain_graph=True)
    by_leaf_edge = t.autograd.grad(z, edge(x), retain_graph=True)
    z.backward(inputs=edge(x), retain_graph=True)
    t.autograd.backward([edge(z)], [t.tensor(1.0, dtype=t.float64)], retain_graph=True)
    return (
        by_edge, from_edge, by_leaf_edge, x.grad, type(edge(y)).__name__, edge(y).output_nr,
        raised(lambda: edge(t.ones(2)), "It is not possible to get the gradient edge for a Tensor that does not require gradients"),
    )  # fmt: skip


def n06_create_graph_warns(t):
    x = _leaf(t)
    return warned(lambda: (x**2).sum().backward(create_graph=True), "Using backward() with create_graph=True will create a reference cycle")


def n06_duplicated_roots(t):
    x = _leaf(t)
    y = x * 2
    t.autograd.backward([y, y], [t.ones(3, dtype=t.float64)] * 2)
    return x.grad


def n06_batched_gradients(t):
    x, unused = _leaf(t), _leaf(t)
    y = x * x
    rows = t.autograd.grad(y, (x, unused), t.eye(3, dtype=t.float64), is_grads_batched=True, allow_unused=True, retain_graph=True)
    (g,) = t.autograd.grad(y, x, 2 * t.ones(2, 3, dtype=t.float64), is_grads_batched=True, create_graph=True)
    return rows, g, g.requires_grad


def n06_old_engine_callbacks(t):
    from importlib import import_module

    engine = import_module(t.__name__ + ".autograd.variable").Variable._execution_engine
    x, log = _leaf(t), []
    y = x * 2
    y.register_hook(lambda g: engine.queue_callback(lambda: log.append(x.grad)))
    y.sum().backward()
    return log


def n06_complex(t):
    z = t.tensor([1 + 2j, 3 - 1j], dtype=t.complex128, requires_grad=True)
    out = (z * z.conj()).real.sum()
    out.backward()
    return (
        z.grad,
        raised(lambda: (z[0] * 2).backward(), "grad can be implicitly created only for real scalar outputs"),
        raised(lambda: (z * 2).backward(t.ones(2, dtype=t.float64)), "For complex Tensors, both grad_output and output are required to have the same dtype"),
    )


def n07_grad_assignment(t):
    x = _leaf(t)

    def assign(value):
        x.grad = value

    good = t.zeros(3, dtype=t.float64)
    assign(good)
    same = x.grad is good
    x.sum().backward()
    kept = x.grad is good
    assign(None)
    return (
        same, kept, x.grad,
        raised(lambda: assign(t.ones(2, dtype=t.float64)), "attempting to assign a gradient of size '[2]' to a tensor of size '[3]'"),
        raised(lambda: assign(t.ones(3)), "attempting to assign a gradient with dtype"),
        raised(lambda: assign(t.ones(3, device="meta", dtype=t.float64)), "attempting to assign a gradient with device type 'meta' to a tensor with device type 'cpu'"),
        raised(lambda: assign(3), "assigned grad expected to be a Tensor or None but got grad of type int"),
        raised(lambda: assign(x), "can't assign Variable as its own grad"),
        warned(lambda: (x * 2).grad, "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"),
    )  # fmt: skip


def n07_grad_delete(t):
    x = _leaf(t)
    x.sum().backward()
    del x.grad
    return x.grad


def n07_accumulation(t):
    x = _leaf(t)
    (x * 2).sum().backward()
    first = x.grad
    (x * 2).sum().backward()
    w = t.ones(3, 2, dtype=t.float64).t().requires_grad_()
    (w * t.ones(2, 3, dtype=t.float64)).sum().backward()
    return x.grad is first, x.grad, w.grad.stride() == w.stride()


def n08_reentrant(t):
    class Reenter(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.depth > 0:
                with t.enable_grad():
                    y = t.ones(1, dtype=t.float64, requires_grad=True)
                    Reenter.apply(y, ctx.depth - 1).sum().backward()
            return g * 2, None

    x = _leaf(t)
    Reenter.apply(x, 300).sum().backward()

    class Failing(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with t.enable_grad():
                y = t.ones(2, requires_grad=True)
                (y * 2).backward()

    return x.grad, raised(lambda: Failing.apply(x).sum().backward(), "grad can be implicitly created only for scalar outputs")


def n09_deep_graphs(t):
    x = t.ones(1, dtype=t.float64, requires_grad=True)
    y = x
    for _ in range(150_000):
        y = y + 1
    y.sum().backward()
    z = x
    for _ in range(150_000):
        z = z * 1.0
    del z
    return x.grad


def n10_threads(t):
    x = _leaf(t)
    ids, errors = set(), []

    def work():
        for _ in range(25):
            y = x * 2
            y.register_hook(lambda g: ids.add(threading.get_ident()))
            y.sum().backward()

    def fail():
        try:
            (x * 2).backward()
        except RuntimeError as error:
            errors.append(str(error)[:36])

    threads = [threading.Thread(target=work) for _ in range(8)] + [threading.Thread(target=fail)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with t.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()
    return x.grad, len(ids) >= 1, errors


def n17_node_attributes(t):
    x = _leaf(t)
    y = x.exp()
    z = y * x
    node = z.grad_fn
    node.metadata["note"] = 3
    names = [f[0].name().rpartition(":")[2] for f in node.next_functions]
    (leaf, nr) = y.grad_fn.next_functions[0]
    in_place = y.clone().mul_(2).grad_fn.name()
    return (
        node.name(), names, [f[1] for f in node.next_functions], z.grad_fn.metadata["note"], leaf.variable is x, nr,
        z.grad_fn is node, in_place, node._sequence_nr() > y.grad_fn._sequence_nr(), x.grad_fn, x.output_nr,
        (t.ones(2) * x[:2]).grad_fn.next_functions[0][0], isinstance(node, t.autograd.graph.Node),
        t._C._current_graph_task_id(),
    )  # fmt: skip


def n17_sequence_and_task(t):
    seen = []
    x = _leaf(t)
    y = x * 2
    y.register_hook(lambda g: seen.append(t._C._current_graph_task_id() >= 0))
    order = []
    a, b = x * 2, x * 3
    a.register_hook(lambda g: order.append("a"))
    b.register_hook(lambda g: order.append("b"))
    (a + b).sum().backward()
    y.sum().backward()
    return seen, order


def n17_increment_version(t):
    x, y = t.ones(2), t.ones(2)
    t.autograd.graph.increment_version(x)
    t.autograd.graph.increment_version([x, y])
    return x._version, y._version


def n18_non_differentiable(t):
    out = []
    for name in ("floor", "round", "sign", "ceil", "trunc"):
        x = _leaf(t)
        getattr(t, name)(x).sum().backward()
        out.append(x.grad)
    return out


def n18_integer_outputs(t):
    x = _leaf(t)
    return x.argmax().requires_grad, x.long().requires_grad, (x > 1).requires_grad, x.sort().indices.requires_grad
