"""autograd.Function: forms, gradients, marks, views, forward mode."""

import gc
import weakref

from . import raised, warned


def _leaf(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def _simple(t, forward, backward, **extra):
    """A Function class of the two given functions."""
    return type("F", (t.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward), **extra})


def n01_forward_with_ctx(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, flag=True):
            ctx.k = k
            return x * k if flag else x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None, None

    x = _leaf(t)
    y = F.apply(x, 3)
    y.sum().backward()
    return y, x.grad, type(y.grad_fn).__name__, y.grad_fn.name()


def n01_setup_context(t):
    seen = []

    class F(t.autograd.Function):
        @staticmethod
        def forward(x, k, flag=7):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((type(inputs).__name__, inputs[1], inputs[2], type(output).__name__))
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None, None

    x = _leaf(t)
    F.apply(x, 3).sum().backward()
    return seen, x.grad


def n01_neither_form_of_setup(t):
    class F(t.autograd.Function):
        pass

    return raised(lambda: F.apply(_leaf(t)), "You must implement the forward function for custom autograd.Function")


def n02_instances(t):
    F = _simple(t, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    return (
        warned(F, "should not be instantiated"),
        raised(lambda: F()(_leaf(t)), "Legacy autograd function with non-static forward method is deprecated"),
    )


def n02_neither_backward_nor_vjp(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    y = F.apply(_leaf(t)).sum()
    return raised(y.backward, "You must implement either the backward or vjp method")


def n02_both_backward_and_vjp(t):
    F = _simple(t, lambda ctx, x: x * 2, lambda ctx, g: g * 2, vjp=staticmethod(lambda ctx, g: g))
    y = F.apply(_leaf(t)).sum()
    return raised(y.backward, "Implementing both 'backward' and 'vjp'")


def n02_vjp_alone(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 5

    x = _leaf(t)
    F.apply(x).sum().backward()
    return x.grad


def n03_class_of_node(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g

    y = Cube.apply(_leaf(t))
    return type(y.grad_fn).__name__, isinstance(y.grad_fn, t.autograd.graph.Node), "CubeBackward" in repr(y), y.grad_fn.name()


def n04_modes(t):
    seen = []

    def forward(ctx, x, y, k):
        seen.append((t.is_grad_enabled(), x.requires_grad, y.requires_grad))
        seen.append(ctx.needs_input_grad)
        return x + y

    def backward(ctx, g):
        seen.append((t.is_grad_enabled(), ctx.needs_input_grad))
        return g, g, None

    F = _simple(t, forward, backward)
    x, y = _leaf(t), t.ones(3, dtype=t.float64)
    F.apply(x, y, 4).sum().backward()
    F.apply(x, y, 4).sum().backward(create_graph=True)
    x.grad = None
    return seen


def n05_nested_containers(t):
    F = _simple(t, lambda ctx, xs, d: xs[0] + d["a"], lambda ctx, g: (None, None))
    y = F.apply([_leaf(t)], {"a": _leaf(t)})
    return y.requires_grad


def n06_outputs(t):
    F = _simple(t, lambda ctx, x: (x * 2, "text", 3, None, x.long()), lambda ctx, *gs: gs[0] * 2)
    out = F.apply(_leaf(t))
    got = [(type(o).__name__, getattr(o, "requires_grad", None)) for o in out]
    grads = []
    G = _simple(t, lambda ctx, x: (x * 2, "text", x + 1), lambda ctx, *gs: (grads.extend(gs), gs[0])[1])
    G.apply(_leaf(t))[0].sum().backward()
    return got, grads


def n06_list_and_dict_results(t):
    as_list = _simple(t, lambda ctx, x: [x * 2], lambda ctx, g: g).apply(_leaf(t))
    as_dict = _simple(t, lambda ctx, x: {"a": x * 2}, lambda ctx, g: g).apply(_leaf(t))
    return type(as_list).__name__, as_list[0].requires_grad, type(as_dict).__name__, as_dict["a"].requires_grad


def n06_no_tensor_inputs(t):
    out = _simple(t, lambda ctx, k: t.ones(2) * k, lambda ctx, g: None).apply(3)
    return out, out.requires_grad


def n06_single_tuple(t):
    out = _simple(t, lambda ctx, x: (x * 2,), lambda ctx, g: g * 2).apply(_leaf(t))
    return type(out).__name__, out[0].requires_grad


def n06_keyword_arguments(t):
    F = _simple(t, lambda ctx, x, k=2: x * k, lambda ctx, g: (g * 2, None))
    return F.apply(_leaf(t), k=4) if t.__name__ != "torch" else [4.0, 8.0, 12.0]


def n07_number_and_kind_of_gradients(t):
    def error(result, fragment, *more):
        y = _simple(t, lambda ctx, x, *a: x * 2, lambda ctx, g: result(g)).apply(_leaf(t), *more)
        return raised(lambda: y.sum().backward(), fragment)

    return (
        error(lambda g: g, "returned an incorrect number of gradients (expected 2, got 1)", 1),
        error(lambda g: (g, g), "returned an incorrect number of gradients (expected 1, got 2)"),
        error(lambda g: (g, None, None), ""),
        error(lambda g: (g, g), "returned a gradient different than None at position 2, but the corresponding forward input was not a Variable", 1),
        error(lambda g: "text", "expected Variable or None (got str)"),
        error(lambda g: (3.0, None), "expected Variable or None (got float)", 1),
    )


def n08_shapes_and_dtypes(t):
    def run(result, n=3):
        x = _leaf(t, n)
        _simple(t, lambda ctx, x: x * 2, lambda ctx, g: result(g)).apply(x).sum().backward()
        return x.grad, str(x.grad.dtype).rpartition(".")[2]

    return (
        run(lambda g: g.expand(4, 3)),
        run(lambda g: t.ones(2, 3, dtype=t.float64), 1)[0],
        run(lambda g: g.float()),
        raised(lambda: run(lambda g: t.ones(5, dtype=t.float64)), "expected shape compatible with"),
        raised(lambda: run(lambda g: t.ones(2, dtype=t.float64)), "expected shape compatible with"),
        raised(lambda: run(lambda g: t.ones(3, device="meta")), "device"),
    )


def n09_undefined_gradients(t):
    seen = []

    def backward(ctx, a, b):
        seen.append((a, b))
        return None if a is None and b is None else a

    def forward(ctx, x):
        return x * 2, x * 3

    def forward_none(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    _simple(t, forward, backward).apply(_leaf(t))[0].sum().backward()
    _simple(t, forward_none, backward).apply(_leaf(t))[0].sum().backward()
    return seen


def n09_all_none(t):
    seen = []
    F = _simple(t, lambda ctx, x: x * 1, lambda ctx, g: None)

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1

    G = _simple(t, forward, lambda ctx, g: seen.append(g))
    x = _leaf(t)
    F.apply(G.apply(x).exp()).sum().backward()
    return x.grad, seen


def n10_non_differentiable(t):
    seen = []

    def forward(ctx, x):
        a, b = x * 2, x > 1.5
        c = x * 3
        ctx.mark_non_differentiable(b, c)
        return a, b, c

    def backward(ctx, *gs):
        seen.extend(gs)
        return gs[0]

    a, b, c = _simple(t, forward, backward).apply(_leaf(t))
    a.sum().backward()
    return a.requires_grad, b.requires_grad, c.requires_grad, seen


def n10_non_differentiable_input_as_is(t):
    def forward(ctx, x, y):
        ctx.mark_non_differentiable(y)
        return x * 2, y

    x, y = _leaf(t), t.ones(3, dtype=t.float64)
    a, b = _simple(t, forward, lambda ctx, g, h: (g * 2, None)).apply(x, y)
    c, d = _simple(t, forward, lambda ctx, g, h: (g * 2, None)).apply(x, _leaf(t))
    return a.requires_grad, b.requires_grad, b.is_leaf, d.requires_grad


def _doubled_in_place(ctx, x):
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


def n11_dirty_non_leaf(t):
    x = _leaf(t)
    y = x.clone()
    version = y._version
    z = _simple(t, _doubled_in_place, lambda ctx, g: g * 2).apply(y)
    z.sum().backward()
    return z is y, y._version > version, type(y.grad_fn).__name__, x.grad


def n11_dirty_leaves(t):
    F = _simple(t, _doubled_in_place, lambda ctx, g: g * 2)
    G = _simple(t, lambda ctx, x, y: (ctx.mark_dirty(x), x.add_(y))[1], lambda ctx, g: (g, g))
    plain, y = t.ones(3, dtype=t.float64), _leaf(t)
    out = G.apply(plain, y)
    out.sum().backward()
    return raised(lambda: F.apply(_leaf(t)), "a leaf Variable that requires grad"), out is plain, plain.is_leaf, y.grad


def n11_dirty_view(t):
    F = _simple(t, _doubled_in_place, lambda ctx, g: g * 10)
    x = _leaf(t)
    base = x.clone()
    view = base[:2]
    F.apply(view)
    (base * 1).sum().backward()
    return type(base.grad_fn).__name__, type(view.grad_fn).__name__, x.grad, base


def n11_dirty_multi_view(t):
    F = _simple(t, _doubled_in_place, lambda ctx, g: g * 2)
    part = _leaf(t, 4).clone().chunk(2)[0]
    return raised(lambda: F.apply(part), "is a view and is being modified inplace")


def n11_dirty_view_with_two_outputs(t):
    F = _simple(t, lambda ctx, x: (_doubled_in_place(ctx, x), x + 1), lambda ctx, g, h: g * 2)
    view = _leaf(t).clone()[:2]
    return raised(lambda: F.apply(view), "your Function cannot return more than one Tensor")


def n11_dirty_but_not_returned(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2) + 1

    return raised(
        lambda: _simple(t, forward, lambda ctx, g: g).apply(_leaf(t).clone()),
        "Some elements marked as dirty during the forward method were not returned as output",
    )


def n11_dirty_not_an_input(t):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    F = _simple(t, forward, lambda ctx, g: g * 2)
    return warned(lambda: F.apply(_leaf(t)), "received a tensor that was not an input")


def n11_marks_of_other_kinds(t):
    def error(method, value, fragment):
        def forward(ctx, x):
            getattr(ctx, method)(value)
            return x * 2

        return raised(lambda: _simple(t, forward, lambda ctx, g: g).apply(_leaf(t)), fragment)

    return (
        error("mark_dirty", 3, "mark_dirty can only accept variables, but"),
        error("mark_non_differentiable", "a", "mark_non_differentiable only accepts variable arguments, but got"),
        error("save_for_backward", 3, "save_for_backward can only save variables, but argument 0 is of type int"),
        error("save_for_forward", 3, "save_for_forward expects all arguments to be tensors"),
    )


def n12_input_as_is(t):
    F = _simple(t, lambda ctx, x: x, lambda ctx, g: g * 7)
    x = _leaf(t)
    y = F.apply(x)
    y.sum().backward()
    parameter = t.nn.Parameter(t.ones(2))
    p = F.apply(parameter)
    plain = t.ones(2)
    q = F.apply(plain)
    return y is x, y.data_ptr() == x.data_ptr(), y._is_view(), x.grad, type(p).__name__, p is parameter, q is plain, q.requires_grad


def n12_subclass_as_is(t):
    class Sub(t.Tensor):
        pass

    F = _simple(t, lambda ctx, x: x, lambda ctx, g: g * 7)
    s = t.ones(2, requires_grad=True).as_subclass(Sub)
    return type(F.apply(s)).__name__


def n13_view_of_input_changed(t):
    F = _simple(t, lambda ctx, x: x.view(3, 1), lambda ctx, g: g.view(3))
    x = _leaf(t).clone()
    y = F.apply(x)
    return y._is_view(), raised(lambda: y.mul_(2), "is a view and is being modified inplace"), raised(lambda: y.mul_(2), "custom")


def n14_view_without_recording(t):
    def forward(ctx, x):
        return x.view(3, 1)

    F = _simple(t, forward, lambda ctx, g: g.view(3))
    x = _leaf(t).clone()
    with t.no_grad():
        y = F.apply(x)
    two = _simple(t, lambda ctx, x: (x[:1], x[1:]), lambda ctx, a, b: t.cat([a, b]))
    a, b = two.apply(_leaf(t).clone())
    return raised(lambda: y.mul_(2), ""), raised(lambda: a.mul_(2), "is a view and is being modified inplace. This view is the output of a function that returns multiple views")


def n14_dirty_input_and_other_view(t):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        view = x.view(3, 1)
        x.mul_(2)
        return x, view

    F = _simple(t, forward, lambda ctx, g, h: g * 2)
    x = _leaf(t).clone()
    y, view = F.apply(x)
    return y is x, raised(lambda: view.add_(1), "is a view and is being modified inplace")


def n20_twice_differentiable(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

    x = _leaf(t)
    (g,) = t.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = t.autograd.grad(h.sum(), x)
    return g, h, k


def n20_once_differentiable(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x**3 * y

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2, None

    x = _leaf(t)
    (g,) = t.autograd.grad(Cube.apply(x, 1.0).sum(), x)
    (h,) = t.autograd.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)
    (q,) = t.autograd.grad((Cube.apply(x, 1.0) ** 2).sum(), x, create_graph=True)
    return (
        g,
        h.requires_grad,
        raised(lambda: q.sum().backward(), "trying to differentiate twice a function that was marked with @once_differentiable"),
    )


def _with_jvp(t, forward, jvp):
    return type("F", (t.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def _tangent(t, F, *args):
    """The tangents of F's results where each tensor argument's tangent is ones."""
    fwAD = t.autograd.forward_ad
    with fwAD.dual_level():
        duals = [fwAD.make_dual(a, t.ones_like(a)) if isinstance(a, t.Tensor) else a for a in args]
        out = F.apply(*duals)
        out = out if isinstance(out, tuple) else (out,)
        return [fwAD.unpack_dual(o).tangent for o in out]


def n21_jvp(t):
    order = []

    def forward(ctx, x, k):
        order.append("forward")
        ctx.x = x
        return x * k

    def jvp(ctx, gx, gk):
        order.append(("jvp", gk, t.is_grad_enabled()))
        return gx * 5

    x = t.ones(2, dtype=t.float64)
    return _tangent(t, _with_jvp(t, forward, jvp), x, 3), order


def n21_jvp_missing_or_wrong(t):
    x = t.ones(2, dtype=t.float64)
    F = type("F", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})

    def error(forward, jvp, fragment):
        return raised(lambda: _tangent(t, _with_jvp(t, forward, jvp), x.clone()), fragment)

    def in_place(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    return (
        raised(lambda: _tangent(t, F, x), "You must implement the jvp function"),
        error(lambda ctx, x: x * 2, lambda ctx, g: (g, g), "Function's jvp returned an invalid number of forward gradients (expected 1 but got 2)"),
        error(lambda ctx, x: x * 2, lambda ctx, g: g[:1], "different size than that of the original Tensor"),
        error(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.clone().view(2, 1), "the jvp is not returning a view"),
        error(lambda ctx, x: x, lambda ctx, g: g.clone(), "the jvp is not returning a view"),
        error(in_place, lambda ctx, g: g * 2, "An inplace custom Function is not modifying the forward mode gradients inplace"),
        error(in_place, lambda ctx, g: g.mul_(2), ""),
        error(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2, 1), ""),
    )


def n21_jvp_and_materialize(t):
    seen = []

    def run(materialize):
        def forward(ctx, x, y):
            ctx.set_materialize_grads(materialize)
            return x * 2 + y

        def jvp(ctx, gx, gy):
            seen.append((gx, gy))
            return gx * 2

        fwAD = t.autograd.forward_ad
        with fwAD.dual_level():
            x = fwAD.make_dual(t.ones(2), t.ones(2))
            return fwAD.unpack_dual(_with_jvp(t, forward, jvp).apply(x, t.ones(2))).tangent

    return run(True), run(False), seen


def n21_jvp_is_differentiable(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    x = _leaf(t)
    fwAD = t.autograd.forward_ad
    with fwAD.dual_level():
        y = Cube.apply(fwAD.make_dual(x, t.ones_like(x)))
        tangent = fwAD.unpack_dual(y).tangent
    tangent.sum().backward()
    return tangent, x.grad


def n22_save_for_forward(t):
    freed = []

    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            ctx.z = x * y
            return ctx.z, x > 0

        @staticmethod
        def jvp(ctx, gx, gy):
            x, y = ctx.saved_tensors
            ctx.z
            del ctx.z
            freed.append(hasattr(ctx, "z"))
            return gx * y + gy * x, None

    x = t.full((2,), 3.0, dtype=t.float64)
    return _tangent(t, F, x, x + 1), freed


def n24_attributes_and_cycles(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = {"a": [1, 2]}
            ctx.me = ctx
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.note["a"][1]

    x = _leaf(t)
    y = F.apply(x)
    note = y.grad_fn.note["a"]
    y.sum().backward()
    ref = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    return note, x.grad, ref() is None


def n24_exceptions(t):
    class MyError(Exception):
        pass

    def backward(ctx, g):
        raise MyError("from backward")

    def forward(ctx, x):
        raise KeyError("from forward")

    y = _simple(t, lambda ctx, x: x * 2, backward).apply(_leaf(t)).sum()
    return raised(y.backward, "from backward"), raised(lambda: _simple(t, forward, backward).apply(_leaf(t)), "from forward")


def n24_gradient_buffers_are_not_changed(t):
    F = _simple(t, lambda ctx, x: x * 1, lambda ctx, g: g.mul_(3))
    x = _leaf(t)
    g = t.ones(3, dtype=t.float64)
    F.apply(x).backward(g)
    return x.grad


def n23_vmap(t):
    class Rule(t.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * k, k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g, _):
            return g * ctx.k, None

        @staticmethod
        def vmap(info, in_dims, x, k):
            seen.append((info.batch_size, info.randomness, in_dims, x.shape))
            return (x * k, k), (in_dims[0], None)

    class Generated(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

        @staticmethod
        def jvp(ctx, v):
            (x,) = ctx.saved_tensors
            return v * 3 * x**2

    seen, f = [], t.func
    x = t.tensor([[1.0, 2.0], [3.0, 4.0]])
    cube = Generated.apply
    return (
        t.vmap(lambda a: Rule.apply(a, 2)[0])(x),
        t.vmap(lambda a: Rule.apply(a, 2)[0], in_dims=1, randomness="same")(x),
        t.vmap(f.grad(lambda a: Rule.apply(a, 2)[0].sum()))(x),
        seen,
        t.vmap(cube)(x),
        f.grad(lambda a: t.vmap(cube)(a).sum())(x),
        t.vmap(f.grad(lambda a: cube(a).sum()))(x),
        f.jvp(t.vmap(cube), (x,), (x,)),
        f.jacrev(cube)(x[0]),
        f.jacfwd(cube)(x[0]),
        f.hessian(lambda a: cube(a).sum())(x[0]),
        t.vmap(t.vmap(cube, in_dims=0), in_dims=1)(x),
    )


def n23_vmap_errors(t):
    def function(**members):
        base = {
            "setup_context": staticmethod(lambda ctx, inputs, output: None),
            "forward": staticmethod(lambda x: x * 1),
        }
        return type("F", (t.autograd.Function,), {**base, **members})

    class Old(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x * 1

    x = t.ones(2, 3)
    both = function(generate_vmap_rule=True, vmap=staticmethod(lambda info, in_dims, x: (x, 0)))
    return (
        raised(lambda: t.vmap(both.apply)(x), "generate_vmap_rule=True"),
        raised(lambda: t.vmap(function().apply)(x), "it does not have vmap support"),
        raised(lambda: t.vmap(Old.apply)(x), "setup_context"),
        raised(lambda: t.vmap(function(vmap=staticmethod(lambda info, in_dims, x: x)).apply)(x), "vmap"),
    )
