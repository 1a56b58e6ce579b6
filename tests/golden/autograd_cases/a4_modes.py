"""no_grad and its like, inference mode, anomaly mode, requires_grad."""

import copy

from . import raised, warned


def _leaf(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def n11_contexts_and_decorators(t):
    seen = []

    @t.no_grad()
    def f():
        seen.append(t.is_grad_enabled())
        with t.enable_grad():
            seen.append(t.is_grad_enabled())
        return t.is_grad_enabled()

    @t.no_grad
    def g():
        return t.is_grad_enabled()

    @t.enable_grad()
    def h():
        return t.is_grad_enabled()

    @t.set_grad_enabled(False)
    def k():
        return t.is_grad_enabled()

    with t.set_grad_enabled(False):
        seen.append((t.is_grad_enabled(), h(), t.is_grad_enabled()))
    t.set_grad_enabled(False)
    seen.append(t.is_grad_enabled())
    t.set_grad_enabled(True)
    return f(), g(), h(), k(), seen, t.is_grad_enabled(), f.__name__


def n11_generators(t):
    @t.no_grad()
    def gen():
        sent = yield t.is_grad_enabled()
        try:
            sent = yield (sent, t.is_grad_enabled())
        except KeyError:
            yield "caught", t.is_grad_enabled()
        return 9

    out = []
    g = gen()
    out.append(next(g))
    out.append(t.is_grad_enabled())
    out.append(g.send(5))
    out.append(g.throw(KeyError()))
    try:
        next(g)
    except StopIteration as stop:
        out.append(stop.value)
    return out, t.is_grad_enabled()


def n11_exceptions(t):
    try:
        with t.no_grad():
            raise KeyError
    except KeyError:
        pass
    return t.is_grad_enabled()


def n12_inference_mode(t):
    x = _leaf(t)
    with t.inference_mode():
        i = t.ones(3, dtype=t.float64)
        y = x * 2
        state = i.is_inference(), y.is_inference(), x.is_inference(), y.requires_grad, t.is_inference_mode_enabled(), t.is_grad_enabled()
        view = x.view(3, 1).is_inference()
        with t.inference_mode(False):
            nested = t.is_inference_mode_enabled(), t.ones(1).is_inference()
    return (
        state, view, nested,
        raised(lambda: i.add_(1), "Inplace update to inference tensor outside InferenceMode is not allowed"),
        raised(lambda: (x * i).sum().backward(), "Inference tensors cannot be saved for backward"),
        raised(lambda: i.requires_grad_(), "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"),
        raised(lambda: i._version, "Inference tensors do not track version counter"),
        (i * 2).is_inference(), i.clone().is_inference(), (x + i).requires_grad,
    )  # fmt: skip


def n12_inference_views(t):
    x = _leaf(t).clone()
    with t.inference_mode():
        v = x.view(3)
        x.add_(1)
    w = t.ones(3)
    with t.inference_mode():
        u = w.view(3)
    with t.no_grad():
        n = t.ones(2).is_inference()
    return v.is_inference(), u.is_inference(), raised(lambda: v.mul_(2), "inference mode"), n


def n12_inference_decorator(t):
    @t.inference_mode()
    def f():
        return t.is_inference_mode_enabled()

    @t.inference_mode
    def g():
        return t.is_inference_mode_enabled()

    return f(), g(), t.is_inference_mode_enabled()


def _bad(t):
    class Bad(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    return Bad


def n13_anomaly(t):
    def run(**options):
        with t.autograd.detect_anomaly(**options):
            _bad(t).apply(_leaf(t)).sum().backward()

    def warning_text():
        try:
            run()
        except RuntimeError:
            pass

    return (
        warned(lambda: t.autograd.detect_anomaly().__enter__() or t.autograd.set_detect_anomaly(False), "Anomaly Detection has been enabled"),
        raised(run, "Function 'BadBackward' returned nan values in its 0th output"),
        raised(lambda: run(check_nan=False), ""),
        warned(warning_text, "Error detected in BadBackward. Traceback of forward call that caused the error"),
        warned(warning_text, "n13_anomaly"),
    )


def n13_anomaly_state(t):
    out = [t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()]
    with t.autograd.set_detect_anomaly(True, check_nan=False):
        out += [t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()]
    out.append(t.is_anomaly_enabled())
    return out


def n13_anomaly_double(t):
    class Bad(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return Bad2.apply(g * ctx.saved_tensors[0])

    class Bad2(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("Simulate error on backward pass")

    x = _leaf(t)

    def run():
        with t.autograd.detect_anomaly():
            (g,) = t.autograd.grad(Bad.apply(x).sum(), x, create_graph=True)
            try:
                g.sum().backward()
            except RuntimeError:
                pass

    return warned(run, "Error detected in Bad2Backward"), warned(run, "Previous calculation was induced by BadBackward")


def n16_requires_grad(t):
    x = _leaf(t)
    y = x * 2

    def off():
        y.requires_grad = False

    def integer():
        t.ones(2, dtype=t.int64).requires_grad = True

    return (
        raised(lambda: t.ones(2, dtype=t.int64, requires_grad=True), "Tensors of floating point"),
        raised(integer, "only Tensors of floating point"),
        raised(lambda: t.ones(2, dtype=t.int64).requires_grad_(), "only Tensors of floating point"),
        raised(off, "you can only change requires_grad flags of leaf variables"),
        raised(lambda: x.numpy(), "Can't call numpy() on Tensor that requires grad"),
        raised(lambda: t.add(x, 1, out=t.ones(3, dtype=t.float64)), "don't support automatic differentiation"),
        raised(lambda: x.resize_(4), "cannot resize variables that require grad"),
        raised(lambda: copy.deepcopy(y), "Only Tensors created explicitly by the user"),
        raised(lambda: y.detach_() and None, ""),
        raised(lambda: x.add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        raised(lambda: x.unsqueeze(0).add_(1), "a view of a leaf Variable that requires grad is being used in an in-place operation"),
        t.ones(1, dtype=t.complex64, requires_grad=True).requires_grad,
        copy.deepcopy(x).requires_grad,
        raised(lambda: x[:2].detach_(), "Can't detach views in-place"),
    )  # fmt: skip


def n16_numpy_without_recording(t):
    x = _leaf(t)
    with t.no_grad():
        return x.numpy().tolist()


def n16_requires_grad_on_views(t):
    x = t.ones(3)
    v = x[:2]
    v.requires_grad_()
    return x.requires_grad, v.requires_grad, v.is_leaf, t.nn.Parameter(t.ones(2)).requires_grad
