"""Whatever changes between two calls of a compiled function: the answer is that of the function."""

import threading
import types
import warnings

import cresset
import pytest
from cresset import nn
from cresset.utils._python_dispatch import TorchDispatchMode

X = cresset.arange(12.0).reshape(3, 4) - 5
SCALE, TABLE, WEIGHT = 2.0, {"a": 1.0, "b": [1, 2]}, cresset.ones(4)
HELPER = types.SimpleNamespace(scale=1.5)


def times(x):
    return x * SCALE


def table(x):
    return x * TABLE["a"] + len(TABLE["b"]) + sum(TABLE["b"]), [k for k in TABLE]


def weighted(x):
    return x * WEIGHT


def attribute(x):
    return x + HELPER.scale


def default(x, by=2.0):
    return x * by


def called(x):
    return default(x) + 1


def make_counter():
    n = 1

    def f(x):
        return x * n

    def change(value):
        nonlocal n
        n = value

    return f, change


COUNTER, CHANGE = make_counter()
NET = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5)).eval().requires_grad_(False)


def net(x):
    return NET(x)


def replace(name, value):
    globals()[name] = value


def of_grad(x):
    y = x * 2
    return y, y.requires_grad


def of_dtype(x):
    return cresset.ones(3) + x.sum(), cresset.get_default_dtype()


def other_forward(self, x):
    return x - 1


CHANGES = {
    "a global number": (times, [lambda: replace("SCALE", 3.0), lambda: replace("SCALE", 3), lambda: replace("SCALE", cresset.ones(4)), lambda: replace("SCALE", -0.0), lambda: replace("SCALE", 0.0)]),
    "a dict": (table, [lambda: TABLE.update(a=2.0), lambda: TABLE["b"].append(5), lambda: TABLE.update(c=1), lambda: TABLE.pop("c"), lambda: TABLE["b"].__setitem__(0, 9)]),
    "a global tensor": (weighted, [lambda: WEIGHT.mul_(2), lambda: replace("WEIGHT", cresset.arange(4)), lambda: replace("WEIGHT", 3), lambda: replace("WEIGHT", cresset.ones(3, 1))]),
    "an attribute": (attribute, [lambda: setattr(HELPER, "scale", 2), lambda: replace("HELPER", types.SimpleNamespace(scale=X)), lambda: setattr(HELPER, "scale", X[0])]),
    "a default": (called, [lambda: setattr(default, "__defaults__", (5.0,)), lambda: setattr(default, "__code__", (lambda x, by=2.0: x - by).__code__)]),
    "a captured variable": (COUNTER, [lambda: CHANGE(2), lambda: CHANGE(X), lambda: CHANGE(True)]),
    "a module": (net, [
        lambda: NET[0].weight.mul_(2), lambda: NET[0].weight.data.add_(1), lambda: setattr(NET[0], "bias", None), lambda: NET.append(nn.Tanh()), lambda: NET.__setitem__(1, nn.Sigmoid()),
        lambda: NET[0].register_forward_hook(lambda m, a, out: out + 1), lambda: setattr(NET[1], "forward", lambda x: x), lambda: replace("NET", nn.Identity()),
    ]),
    "a class": (net, [lambda: setattr(nn.Identity, "forward", other_forward)]),
}  # fmt: skip


@pytest.fixture
def _as_before():
    kept = {k: globals()[k] for k in ("SCALE", "WEIGHT", "HELPER", "NET")}
    held = dict(TABLE, b=list(TABLE["b"])), default.__defaults__, default.__code__, nn.Identity.forward
    yield
    globals().update(kept)
    TABLE.clear(), TABLE.update(held[0])
    default.__defaults__, default.__code__, nn.Identity.forward = held[1:]


def equal(a, b):
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, cresset.Tensor):
        return a.dtype == b.dtype and cresset.equal(a, b) and cresset.equal(1 / a, 1 / b)  # signs of zeros too
    return a == b


def close(a, b):
    """Packed layers add in another order."""
    return equal(a, b) if not isinstance(a, cresset.Tensor) else a.dtype == b.dtype and cresset.allclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("backend", ["inductor", "eager"])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_around_the_function(name, backend, _as_before):
    f, changes = CHANGES[name]
    same = close if (name, backend) == ("a module", "inductor") else equal
    compiled = cresset.compile(f, backend=backend)
    assert same(compiled(X), f(X)) and same(compiled(X), f(X))
    for i, change in enumerate(changes):
        change()
        for _ in range(2):
            assert same(compiled(X), f(X)), f"change {i}\n{cresset.compile_report(compiled)}"


ARGUMENTS = [X, X.double(), X[0], X[None], X.t(), X.bool(), cresset.empty(0, 4), X.clone().requires_grad_(), nn.Parameter(X), 3, 3.0, True, -0.0, [X], (X, 2), {"x": X}, None, "text",
             cresset.Size([2]), X.to(cresset.bfloat16), X[::2], X.expand(2, 3, 4)]  # fmt: skip


def of_anything(x, scale=2):
    if isinstance(x, (list, tuple)):
        x = x[0]
    if isinstance(x, dict):
        return {k: v * scale for k, v in x.items()}
    if x is None or isinstance(x, str):
        return x
    return (x * scale, x.dim() if hasattr(x, "dim") else type(x) is int)


def text(result):
    return repr(result)


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_changes_of_arguments(backend):
    with cresset._dynamo.config.patch(recompile_limit=100):
        compiled = cresset.compile(of_anything, backend=backend)
        for _ in range(2):
            for one in ARGUMENTS:
                assert text(compiled(one)).partition(", grad_fn")[0] == text(of_anything(one)).partition(", grad_fn")[0]
                assert text(compiled(x=one, scale=3)).partition(", grad_fn")[0] == text(of_anything(x=one, scale=3)).partition(", grad_fn")[0]


def test_settings_count():
    compiled = cresset.compile(of_grad)
    x = X.clone().requires_grad_()
    for _ in range(2):
        assert compiled(x)[1] is True and compiled(x)[0].grad_fn is not None
        with cresset.no_grad():
            assert compiled(x)[1] is False
        with cresset.inference_mode():
            assert compiled(x)[0].is_inference()
    other = cresset.compile(of_dtype)
    assert other(X)[1] == cresset.float32
    cresset.set_default_dtype(cresset.float64)
    try:
        assert other(X)[1] == cresset.float64 and other(X)[0].dtype == cresset.float64
    finally:
        cresset.set_default_dtype(cresset.float32)


def test_gradients_are_those_of_the_function():
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    for backend in ("inductor", "eager"):
        cresset.compile(lambda t: (t * 2).exp().sum(), backend=backend)(x).backward()
        (y * 2).exp().sum().backward()
        assert cresset.equal(x.grad, y.grad)


class Counts(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Sub(cresset.Tensor):
    pass


def test_what_looks_on_sees_the_operators():
    compiled = cresset.compile(lambda x: x.relu() + 1)
    with Counts() as mode:
        compiled(X)
    assert mode.seen == ["aten.relu.default", "aten.add.Tensor"] and "a __torch_dispatch__ mode is on" in cresset.compile_report(compiled)
    assert type(compiled(X.as_subclass(Sub))) is Sub and "is a Sub, a tensor of a type of its own" in cresset.compile_report(compiled)
    assert cresset.equal(cresset.vmap(compiled)(X), X.relu() + 1)
    assert cresset.equal(cresset.func.grad(lambda x: compiled(x).sum())(X), (X > 0).float())
    traced = cresset.jit.trace(compiled, X)
    assert "aten::relu" in str(traced.graph)
    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        assert cresset.compile(lambda x: x @ x.T)(X).dtype == cresset.bfloat16


def test_recompiles_have_a_limit():
    compiled = cresset.compile(lambda x, n: x * n)
    with pytest.warns(UserWarning, match=r"reached the limit of 8 captures \(_dynamo.config.recompile_limit\).* The last one differed: n is not 7"):
        for n in range(12):
            assert cresset.equal(compiled(X, n), X * n)
    report = cresset.compile_report(compiled)
    assert report.count("captured, 1 call") == 8 and "the limit of captures is reached" in report
    cresset.compiler.reset()
    assert "not called yet" in cresset.compile_report(compiled)


def test_stances():
    compiled = cresset.compile(lambda x, n: x * n)
    compiled(X, 1)
    for stance in ("force_eager", "eager_on_recompile"):
        with cresset.compiler.set_stance(stance):
            assert cresset.equal(compiled(X, 5), X * 5)
    assert cresset.compile_report(compiled).count("captured,") == 1
    with cresset.compiler.set_stance("fail_on_recompile"):
        compiled(X, 1)
        with pytest.raises(RuntimeError, match="Detected recompile when torch.compile stance is 'fail_on_recompile'.*n is not 1"):
            compiled(X, 2)
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'x'"):
        cresset.compiler.set_stance("x")


def test_threads():
    compiled = cresset.compile(lambda x, n: (x + n).relu().sum(0))
    wrong = []

    def work(n):
        for i in range(50):
            x = X + i
            if not cresset.equal(compiled(x, n), (x + n).relu().sum(0)):
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n % 3,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def in_place_on_what_may_be_the_argument(x):
    y = x.contiguous()
    y.add_(1)
    z = x.reshape(-1)
    z[0] = 7
    return y, z


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_memory_that_is_shared_in_some_calls(backend):
    compiled = cresset.compile(in_place_on_what_may_be_the_argument, backend=backend)
    for make in (lambda: X.clone().t(), X.clone, lambda: X.clone().t(), X.clone):
        x, y = make(), make()
        assert equal(compiled(x), in_place_on_what_may_be_the_argument(y)) and cresset.equal(x, y)


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_errors_are_those_of_the_function(backend):
    compiled = cresset.compile(lambda x, y: (x + y).relu(), backend=backend)
    compiled(X, X)
    with pytest.raises(RuntimeError) as first:
        X + cresset.ones(5, 4)
    with pytest.raises(RuntimeError) as second:
        compiled(X, cresset.ones(5, 4))
    assert type(first.value) is type(second.value) and str(first.value) == str(second.value)


def test_keywords_keep_their_order():
    compiled = cresset.compile(lambda **named: list(named))
    assert compiled(a=X, b=X) == ["a", "b"] and compiled(b=X, a=X) == ["b", "a"]


def test_captures_hold_no_arguments():
    import gc
    import weakref

    compiled = cresset.compile(lambda x, n: (x.relu(), x))
    x = cresset.randn(3)
    gone = weakref.ref(x)
    compiled(x, 2), compiled(x, 3)
    del x
    gc.collect()
    assert gone() is None


def test_a_view_that_is_impossible_raises_and_contiguous_results_are():
    flat = cresset.compile(lambda x: x.view(-1))
    x = cresset.arange(6.0).view(2, 3)
    assert flat(x).shape == (6,)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        flat(x.t())
    turned = cresset.compile(lambda x: (x + 1).t().contiguous())
    assert turned(x).stride() == turned(x).stride() == (2, 1)


def test_settings_that_libraries_write_change_nothing_and_are_put_back():
    from cresset._dynamo import config
    from cresset._subclasses.fake_tensor import FakeTensorMode

    with config.patch(fake_tensor_cache_enabled=True, fake_tensor_cache_crosscheck_enabled=True):
        with FakeTensorMode():
            assert [(cresset.ones(2, 3) @ cresset.ones(3, n)).shape for n in (1, 1, 4)] == [(2, 1), (2, 1), (2, 4)]
    assert config.fake_tensor_cache_enabled is False
    with pytest.raises(AttributeError, match="_dynamo.config has no setting 'unknown'"), config.patch(unknown=1):
        pass


def test_warnings_that_come_once():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for text in ("of a kernel", "of a kernel", "of another"):
            cresset._dynamo.utils.warn_once(text)
    assert [(str(w.message), w.category) for w in seen] == [("of a kernel", UserWarning), ("of another", UserWarning)] and seen[0].filename == __file__
    cresset._dynamo.utils.counters["group"]["pass"] += 1
    assert cresset._dynamo.utils.counters.pop("group") == {"pass": 1}


def test_blocks_without_a_limit_of_captures():
    compiled = cresset.compile(lambda x, n: x + n)
    with cresset._dynamo.utils.disable_cache_limit():
        for n in range(12):
            assert compiled(cresset.zeros(1), n).item() == n  # would warn at the ninth
    assert cresset._dynamo.config.recompile_limit == 8
