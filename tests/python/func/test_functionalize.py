"""functionalize: the same semantics, no writes. Expected operators, values and words recorded with PyTorch where it has the operators."""

import pytest

import cresset
from cresset._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode, disable_functional_mode, dispatch_functionalize
from cresset.func import functionalize, grad, jacrev, jvp, vmap
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.utils._python_dispatch import TorchDispatchMode

A = cresset.arange(6.0).reshape(2, 3)


class Log(TorchDispatchMode):
    """The operators that run, by name."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def operators(f, *args, **options):
    with Log() as log:
        functionalize(f, **options)(*args)
    return log.ops


def of_a_view(x):
    y = x.clone()
    v = y[0]
    v.add_(1)
    y.t_()
    return y, v


def of_an_input(x):
    x.add_(1)
    v = x.view(-1)
    v[0] = 100
    return v


def test_views_and_intermediates():
    y, v = functionalize(of_a_view)(A)
    assert y.tolist() == [[1, 3], [2, 4], [3, 5]] and v.tolist() == [1, 2, 3]
    assert A.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert operators(of_a_view, A)[:4] == ["clone", "select", "add", "select_scatter"]


def test_arguments_get_their_new_values_at_the_end():
    x = cresset.zeros(2, 3)
    result = functionalize(of_an_input)(x)
    assert x.tolist() == [[100, 1, 1], [1, 1, 1]] and result.tolist() == [100, 1, 1, 1, 1, 1]
    result.zero_()
    assert x[0, 0] == 100  # results are values, not views
    ops = operators(of_an_input, cresset.zeros(2, 3))
    assert ops[-1] == "copy_" and [op for op in ops if op.endswith("_")] == ["copy_"]


def test_nothing_is_copied_back_without_a_change():
    assert "copy_" not in operators(lambda x: x.clone().add_(1), A)


def test_out_arguments():
    def f(x):
        out = cresset.empty(0)
        again = cresset.add(x, x, out=out)
        assert again is out
        return out * 1

    assert operators(f, A) == ["empty", "add", "mul"]
    assert functionalize(f)(A).tolist() == (A * 2).tolist()


def test_views_become_copies():
    y, v = functionalize(of_a_view, remove="mutations_and_views")(A)
    assert y.tolist() == [[1, 3], [2, 4], [3, 5]] and v.tolist() == [1, 2, 3]


def halves(x):
    for i, part in enumerate(x.chunk(2)):
        part.mul_(i + 2)
    return x


def rows(x):
    a, b = x.unbind()
    a.copy_(b)
    x.diagonal().zero_()
    x.unsqueeze(0).squeeze(0).transpose(0, 1)[1:, ::1].neg_()
    x.as_strided((2,), (1,), 1).add_(10)
    x.permute(1, 0).reshape(-1)
    x.detach().mul_(2)
    return x


def parts(x):
    z = cresset.complex(x, x)
    z.real.add_(1)
    z.imag.mul_(3)
    cresset.view_as_real(z).sub_(1)
    x.split_with_sizes([1, 1])[1].fill_(7)
    x.expand(1, 2, 3).movedim(0, 1)
    return z, x


@pytest.mark.parametrize("f", [of_a_view, of_an_input, halves, rows, parts])
def test_the_same_values_with_and_without(f):
    x = cresset.randn(2, 3)
    mine, plain = x.clone(), x.clone()
    want, have = f(plain), functionalize(f)(mine)
    for h, w in zip(*((r if isinstance(r, tuple) else (r,)) for r in (have, want))):
        assert cresset.equal(h, w)
    assert cresset.equal(mine, plain)


def test_structures_and_captured_tensors():
    captured = cresset.zeros(2)

    def f(x, *, other):
        captured.add_(1)
        return [x, {"a": other.add_(1)}, 3, captured * x]

    x, other = cresset.ones(2), cresset.ones(2)
    out = functionalize(f)(x, other=other)
    assert out[1]["a"].tolist() == other.tolist() == [2, 2]
    assert out[2] == 3 and captured.tolist() == out[3].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="mutating a non-functional tensor with a functional tensor is not allowed"):
        functionalize(lambda x: captured.add_(x))(x)


def test_one_tensor_given_twice_is_one():
    x = cresset.ones(2)
    functionalize(lambda a, b: a.add_(b))(x, x)
    assert x.tolist() == [2, 2]


def test_random_and_other_operators_without_functional_form():
    x = cresset.ones(3)
    cresset.manual_seed(3)
    functionalize(lambda x: x.normal_())(x)
    cresset.manual_seed(3)
    assert x.tolist() == cresset.empty(3).normal_().tolist()
    y = cresset.ones(2)
    functionalize(lambda y: cresset._foreach_add_([y], 1))(y)
    assert y.tolist() == [2, 2]


def test_sizes_may_change():
    x = cresset.ones(3)
    result = functionalize(lambda x: x.resize_(2))(x)
    assert result.tolist() == x.tolist() == [1, 1]


def test_in_transforms_and_around_them():
    f = lambda x: x.clone().mul_(x).sum()  # noqa: E731
    x = cresset.tensor([1.0, 2.0])
    batch = cresset.stack([x, 2 * x])
    assert grad(functionalize(f))(x).tolist() == functionalize(grad(f))(x).tolist() == [2, 4]
    assert vmap(functionalize(f))(batch).tolist() == functionalize(vmap(f))(batch).tolist() == [5, 20]
    assert jacrev(functionalize(f))(x).tolist() == [2, 4]
    assert jvp(functionalize(f), (x,), (x,))[1].item() == 10
    w = x.clone().requires_grad_()
    functionalize(f)(w).backward()
    assert w.grad.tolist() == [2, 4]


def test_values_are_seen_by_python():
    assert functionalize(lambda x: x.add_(1).sum().item())(cresset.ones(2)) == 4
    assert functionalize(lambda x: 1 if x.add_(1).sum() > 3 else 0)(cresset.ones(2)) == 1


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x.long().add_(1.5), "result type Float can't be cast to the desired output type Long"),
        (lambda x: x[0].add_(x), r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"),
        (lambda x: x[0].expand(2, 3).add_(1), "While executing expand, functionalization encountered a tensor being mutated that has internal overlap"),
        (lambda x: x.unfold(1, 2, 1).abs_(), "While executing unfold, functionalization encountered a tensor being mutated that has internal overlap"),
    ],
)
def test_errors(f, message):
    with pytest.raises(RuntimeError, match=message):
        functionalize(f)(A.clone())


def test_a_changed_view_is_made_again():
    def of_a_view_twice(x):
        y = x.clone()
        view = y.view(4)
        view.add_(1)
        return view * 2, y

    def of_an_argument(x):
        x.diagonal().add_(1)
        return x

    for f, names in (
        (of_a_view_twice, ["clone", "view", "add", "view", "view", "mul"]), (of_an_argument, ["diagonal", "add", "diagonal_scatter", "diagonal", "copy_"]),
    ):  # fmt: skip
        recorded = make_fx(functionalize(f))(cresset.ones(2, 2))
        assert [str(n.target).split(".")[1] for n in recorded.graph.nodes if n.op == "call_function"] == names
        for result, expected in zip(recorded(cresset.eye(2)), f(cresset.eye(2))):
            assert cresset.equal(result, expected)


def test_new_constants_are_functional():
    def f(x):
        y = cresset.tensor([1, 2, 3])
        y.view(-1).add_(1)
        return y

    assert functionalize(f)(A).tolist() == [2, 3, 4]
    names = [str(n.target) for n in make_fx(functionalize(f))(A).graph.nodes if n.op == "call_function"]
    assert names[0] == "aten.lift_fresh_copy.default" and not any(name.split(".")[1].endswith("_") for name in names)


def test_expanded_without_overlap():
    x = cresset.ones(3)
    assert functionalize(lambda x: x.expand(1, 3).add_(1))(x).tolist() == [[2, 2, 2]] and x.tolist() == [2, 2, 2]


def test_dispatch_functionalize_leaves_arguments():
    x = cresset.ones(2)
    result, named, number = dispatch_functionalize(lambda a: (a, {"k": a.add_(1)}, 3))(x)
    assert result.tolist() == named["k"].tolist() == [2, 2] and number == 3 and x.tolist() == [1, 1]
    assert not isinstance(result, FunctionalTensor)


def test_what_remove_accepts():
    for bad in ("bogus", 3):
        with pytest.raises(RuntimeError, match=f"received invalid argument for remove={bad}. Valid options are:"):
            functionalize(of_a_view, remove=bad)


def test_functional_tensors():
    ones = cresset.ones(3)
    with FunctionalTensorMode():
        x = FunctionalTensor.to_functional(ones)
        y = x * 2
        v = y[1:]
        y.add_(1)
        assert type(y) is FunctionalTensor and y.is_base_tensor() and not v.is_base_tensor()
        assert y.from_functional().tolist() == [3, 3, 3]
        assert v.from_functional().tolist() == [3, 3]
        assert repr(v) == "FunctionalTensor(tensor([3., 3.]))"
        v.replace_(cresset.zeros(2).from_functional())
        v.commit_update()
        assert y.from_functional().tolist() == [3, 0, 0]
        with pytest.raises(AssertionError, match="to_functional: a tensor that is not functional was required"):
            FunctionalTensor.to_functional(x)
        with disable_functional_mode() as mode:
            assert type(cresset.ones(1)) is cresset.Tensor and isinstance(mode, FunctionalTensorMode)
    with pytest.raises(RuntimeError, match="Attempting to use FunctionalTensor on its own"):
        y + 1
    with pytest.raises(RuntimeError, match="Attempting to use FunctionalTensor on its own"):
        FunctionalTensor.to_functional(cresset.ones(1))
    with pytest.raises(NotImplementedError, match="pre_dispatch and export are not part of Cresset"):
        FunctionalTensorMode(pre_dispatch=True)


def test_functionalization_by_hand():
    x = cresset.ones(4)
    t = cresset._to_functional_tensor(x)
    assert cresset._is_functional_tensor(t) and not cresset._is_functional_tensor(x)
    cresset._enable_functionalization(reapply_views=True)
    try:
        with pytest.raises(RuntimeError, match="multiple layers of mode-style functionalization nesting"):
            cresset._enable_functionalization()
        view = t[:2]
        view.mul_(3)
        out = t + 1
    finally:
        cresset._disable_functionalization()
    cresset._sync(t)
    assert cresset._from_functional_tensor(t).tolist() == [3, 3, 1, 1] and cresset._from_functional_tensor(out).tolist() == [4, 4, 2, 2]
    assert x.tolist() == [1, 1, 1, 1]
    with pytest.raises(RuntimeError, match="a functional tensor was required"):
        cresset._sync(x)


def _view_smaller(x):
    y = x + 1
    z = y.view(4, 4)
    z.resize_(3, 3)
    z.fill_(7)
    return y, z


def _view_of_the_smaller(x):
    y = x + 1
    z = y.view(4, 4)
    z.resize_(3, 3)
    z.view(-1).add_(1)
    return y, z


def _base_smaller(x):
    y = x + 1
    z = y.view(16)
    y.resize_(3, 3)
    y.fill_(5)
    z[0] = 2
    return y, z


def _own_memory(x):
    y = cresset.empty(0)
    y.resize_(2, 2)
    y.fill_(3)
    z = x + 1
    z.view(-1)  # nobody keeps the view
    z.resize_(5, 5)
    return y, z.fill_(1), cresset.add(x, x, out=cresset.empty(0))


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("function", [_view_smaller, _view_of_the_smaller, _base_smaller, _own_memory])
def test_resized_tensors_stay_views(function, remove):
    x = cresset.arange(16.0).reshape(8, 2)
    for a, b in zip(function(x), functionalize(function, remove=remove)(x)):
        assert cresset.equal(a, b)


def test_resizes_that_would_leave_a_view():
    def view(x):
        return (x + 1).view(4, 4).resize_(5, 5)

    def base(x):
        y = x + 1
        z = y.view(16)
        return y.resize_(5, 5), z

    def apart(x):
        y = x + 1
        return y.t().resize_(3, 3), y

    x = cresset.ones(8, 2)
    for function in (view, base):
        with pytest.raises(RuntimeError, match="^Attempted to resize a view tensor to a larger size. This is not allowed in the functionalization pass"):
            functionalize(function)(x)
    with pytest.raises(RuntimeError, match="resize_ of a view whose elements do not lie one after the other"):
        functionalize(apart)(x)


VIEWS = [
    lambda a: a.view(-1), lambda a: a.t(), lambda a: a.transpose(0, 1), lambda a: a.permute(1, 0), lambda a: a.unsqueeze(0), lambda a: a[1], lambda a: a[:, 1:],
    lambda a: a.diagonal(), lambda a: a.split(1)[0], lambda a: a.unbind(1)[0], lambda a: a.unsqueeze(0).squeeze(0), lambda a: a.as_strided((2,), (1,), 1),
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_graphs_without_views(view):
    """Where views are copies, what puts a changed one back is no view either."""
    from cresset.fx.experimental.proxy_tensor import make_fx

    def function(x):
        y = x.clone()
        view(y).add_(1)
        return y

    x = cresset.arange(4.0).reshape(2, 2)
    graph = make_fx(functionalize(function, remove="mutations_and_views"))(x)
    assert cresset.equal(graph(x), function(x))
    for node in graph.graph.nodes:
        schemas = getattr(node.target, "_schema", None)
        assert schemas is None or not any(a.alias for a in (*schemas.arguments, *schemas.returns)), graph.code


def by_hand(function, *inputs):
    wrapped = [cresset._to_functional_tensor(x) for x in inputs]
    cresset._enable_functionalization(reapply_views=False)
    try:
        return function(*wrapped)
    finally:
        cresset._disable_functionalization()


def test_operators_run_again_without_values():
    from cresset._dispatch.python import enable_crossref_functionalize

    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    def function(x):
        y = x.clone()
        y.view(-1)[1].add_(1)
        return y.nonzero(), y.t_().sum(0)

    with enable_crossref_functionalize(), Seen():
        places, sums = by_hand(function, A)
    assert sums.from_functional().tolist() == [4.0, 12.0] and places.from_functional().shape == (5, 2)
    assert "aten::empty_strided" not in seen  # the second run is nobody's

    library = cresset.library.Library("functionalized", "DEF")
    library.define("wrong(Tensor x) -> Tensor")
    library.impl("wrong", lambda x: x.clone(), "CPU")
    library.impl("wrong", lambda x: x[0].clone(), "Meta")
    assert by_hand(cresset.ops.functionalized.wrong, A).shape == (2, 3)
    with enable_crossref_functionalize(), pytest.raises(RuntimeError) as raised:
        by_hand(cresset.ops.functionalized.wrong, A)
    assert "functionalized.wrong.default gives" in str(raised.value) and "of size [2, 3], and on the Meta device" in str(raised.value)


def test_frozen_storage():
    def function(x):
        y = x.clone()
        z = y[0]
        cresset._freeze_functional_tensor(y)
        for write in (lambda: y.add_(1), lambda: z.add_(1)):
            with pytest.raises(RuntimeError, match="^cannot mutate tensors with frozen storage$"):
                write()
        return z + 1

    assert by_hand(function, A).from_functional().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="a functional tensor was required"):
        cresset._freeze_functional_tensor(A)


def test_functional_tensors_by_hand_need_no_mode():
    x = cresset._to_functional_tensor(cresset.ones(3))
    first, more = x[0], x + 1
    first.add_(5)
    assert cresset._is_functional_tensor(more) and cresset._from_functional_tensor(more).tolist() == [2.0, 2.0, 2.0]
    cresset._sync(x)
    assert cresset._from_functional_tensor(x).tolist() == [6.0, 1.0, 1.0] and (more * x).from_functional().tolist() == [12.0, 2.0, 2.0]
    leaf = cresset._to_functional_tensor(cresset.ones(3)).requires_grad_()
    leaf.exp().sum().backward()
    assert cresset.allclose(leaf.grad.from_functional(), cresset.full((3,), 2.718281828))
    with FunctionalTensorMode():
        of_a_mode = FunctionalTensor.to_functional(A)
    with pytest.raises(RuntimeError, match="Attempting to use FunctionalTensor on its own"):
        of_a_mode + 1


def test_what_operators_give_beside_what_they_write():
    library = cresset.library.Library("functionalize_results", "FRAGMENT")
    ops = cresset.ops.functionalize_results

    def other(x, y):
        x.add_(5)
        return x + y

    def both(x, y):
        x.add_(5)
        y.mul_(3)
        return x, y, x + y

    def mixed(x, y):
        x.add_(1)
        return x, [x * y, y]

    def number(x):
        x.add_(1)
        return 7

    for schema, kernel in (
        ("other(Tensor(a!) x, Tensor y) -> Tensor", other),
        ("both(Tensor(a!) x, Tensor(b!) y) -> (Tensor, Tensor, Tensor)", both),
        ("mixed(Tensor(a!) x, Tensor y) -> (Tensor(a!), Tensor[])", mixed),
        ("number(Tensor(a!) x) -> int", number),
    ):
        library.impl(library.define(schema), kernel, "CompositeExplicitAutograd")

    def run(x, y):
        x, y = x.clone(), y.clone()
        return ops.other(x, y), ops.both(x, y), ops.mixed(x, y), ops.number(x), x, y

    a, b = cresset.tensor([1.0, 2.0]), cresset.tensor([3.0, 4.0])
    for expected, found in zip(cresset.utils._pytree.tree_leaves(run(a, b)), cresset.utils._pytree.tree_leaves(functionalize(run)(a, b)), strict=True):
        assert found == expected if isinstance(expected, int) else cresset.equal(found, expected)
    noise = cresset.zeros(2)
    cresset.manual_seed(0)
    out = functionalize(lambda x, noise: cresset.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, True))(-a, noise)
    assert cresset.equal(out, -a * noise) and (noise > 0).all()


def test_functional_forms():
    # Values of PyTorch 2.13.
    aten, x, w = cresset.ops.aten, cresset.arange(6.0), cresset.tensor([[3.0, 4.0], [1.0, 1.0]])
    assert aten.resize(x, [2, 2]).tolist() == [[0, 1], [2, 3]] and aten.resize_as(x, cresset.ones(2, 1)).tolist() == [[0], [1]] and x.shape == (6,)
    assert aten.set(x).shape == (0,) and aten.set.source_Tensor(x, cresset.ones(2)).tolist() == [1, 1]
    cresset.testing.assert_close(aten.embedding_renorm(w, cresset.tensor([0]), 1.0, 2.0), cresset.tensor([[0.6, 0.8], [1, 1]]), atol=1e-6, rtol=0)
    assert aten._index_put_impl(w, [cresset.tensor([0])], cresset.tensor(9.0)).tolist() == [[9, 9], [1, 1]] and w.tolist() == [[3, 4], [1, 1]]
    noise, mean, var = cresset.zeros(2), cresset.zeros(2), cresset.ones(2)
    out, drawn = aten.rrelu_with_noise_functional(-cresset.ones(2), noise, 0.1, 0.3, True)
    assert cresset.equal(out, -drawn) and drawn.min() >= 0.1 and noise.tolist() == [0, 0]
    *_, reserve, new_mean, new_var = aten._batch_norm_with_update_functional(cresset.arange(8.0).view(2, 2, 2), None, None, mean, var, 0.1, 1e-5)
    cresset.testing.assert_close(cresset.stack([new_mean, new_var]), cresset.tensor([[0.25, 0.45], [1.4666667, 1.4666667]]))
    assert (reserve.numel(), mean.tolist(), var.tolist()) == (0, [0, 0], [1, 1])
    assert aten.resize(x.to("meta"), [2, 5]).shape == (2, 5)


def test_resize_is_recorded():
    def f(x):
        y = x + 1
        y.resize_(5, 5)
        y.view(25).fill_(1)
        return y + 1

    graph = make_fx(functionalize(f))(cresset.ones(8, 2)).graph
    assert [str(n.target) for n in graph.nodes if n.op == "call_function"][:2] == ["aten.add.Tensor", "aten.resize.default"]
    assert functionalize(f)(cresset.ones(8, 2)).tolist() == [[2.0] * 5] * 5
