"""vmap: dimensions, containers, levels, randomness, chunks, writing, rules from Python."""

import warnings

import cresset
import pytest
from cresset import vmap
from cresset.autograd import Function
from cresset.func import grad, jacrev


@pytest.fixture
def x():
    return cresset.arange(12.0).reshape(3, 4)


def test_dimensions_in_and_out(x):
    assert cresset.equal(vmap(lambda a: a.sum(), in_dims=1)(x), x.sum(0))
    assert cresset.equal(vmap(lambda a: a + 1, in_dims=-1, out_dims=-1)(x), x + 1)
    first, second = vmap(lambda a: (a, a * 2), out_dims=(1, 0))(x)
    assert cresset.equal(first, x.T) and cresset.equal(second, x * 2)


def test_trees_and_shared_inputs(x):
    f = lambda d, c, k=1: {"out": d["a"] * c + d["b"] * k}  # noqa: E731
    result = vmap(f, in_dims=({"a": 0, "b": None}, None))({"a": x, "b": x[0]}, 3.0, k=2)
    assert cresset.equal(result["out"], x * 3 + x[0] * 2)


def test_levels(x):
    table = vmap(lambda a: vmap(lambda b: (a * b).sum())(x))(x)
    assert cresset.equal(table, x @ x.T)
    inner_only = vmap(lambda a: vmap(lambda b: b + 1)(x))(x)
    assert inner_only.shape == (3, 3, 4)


def test_results_that_do_not_depend_on_the_batch_are_repeated(x):
    assert vmap(lambda a: cresset.ones(2))(x).shape == (3, 2)
    assert vmap(lambda a: cresset.ones(2), out_dims=None)(x).shape == (2,)


def test_an_empty_batch():
    assert vmap(lambda a: a.exp() + 1)(cresset.ones(0, 2)).shape == (0, 2)


def test_what_an_example_looks_like(x):
    def f(a):
        assert a.shape == (4,) and a.dim() == 1 and len(a) == 4 and a.dtype == x.dtype and not a.requires_grad
        assert repr(a).startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor(")
        return sum(b for b in a)

    assert cresset.equal(vmap(f)(x.clone().requires_grad_()).detach(), x.sum(1))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7])
def test_chunks(chunk_size, x):
    assert cresset.equal(
        vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1, chunk_size=chunk_size)(x, x[0]), (x * x[0]).T
    )


def test_promotion_is_that_of_one_example():
    scalars = cresset.ones(3, dtype=cresset.float64)
    assert vmap(lambda s: cresset.ones(4) * s)(scalars).dtype == cresset.float32
    assert vmap(lambda s: s * cresset.ones(4))(scalars).dtype == cresset.float32
    assert vmap(lambda s: s + cresset.ones((), dtype=cresset.float32))(scalars).dtype == cresset.float64


def test_writing_to_batched_tensors(x):
    def f(a):
        b = a.clone()
        b[0] = a[1]
        b[1:3].mul_(2)
        b.unsqueeze_(0).add_(1)
        return b

    want = x.clone()
    want[:, 0] = x[:, 1]
    want[:, 1:3] *= 2
    assert cresset.equal(vmap(f)(x), (want + 1)[:, None])
    inside = x.clone()
    vmap(lambda a: a.add_(1))(inside)
    assert cresset.equal(inside, x + 1)


def test_randomness(x):
    for f in (lambda a: cresset.rand(5), lambda a: cresset.randn_like(cresset.ones(5)), lambda a: cresset.randperm(50).float(),
              lambda a: cresset.nn.functional.dropout(cresset.ones(40)), lambda a: a.repeat(10).normal_()):  # fmt: skip
        same, different = vmap(f, randomness="same")(x), vmap(f, randomness="different")(x)
        assert cresset.equal(same[0], same[1]) and not cresset.equal(different[0], different[1])
    nested = vmap(lambda a: vmap(lambda b: cresset.rand(2), randomness="different")(a), randomness="same")(x)
    assert cresset.equal(nested[0], nested[1]) and not cresset.equal(nested[0, 0], nested[0, 1])
    half = cresset.full((40,), 0.5)
    same = vmap(lambda a: a.bernoulli_(half), randomness="same")(cresset.zeros(3, 40))  # the probabilities are the same for all
    assert cresset.equal(same[0], same[1]) and 0 < same[0].sum() < 40
    drawn = vmap(lambda a: cresset.multinomial(a + 1, 2), randomness="different")(x)
    assert drawn.shape == (3, 2) and bool((drawn < 4).all())


def test_one_draw_for_values_that_differ_in_tangents_alone():
    """Values of PyTorch 2.13: what has a batch of tangents is one value, of which the same is drawn for all examples."""
    weights = cresset.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])

    def f(y):
        drawn = y.softmax(1).multinomial(2, replacement=True)
        return (y.gather(1, drawn) ** 2).sum()

    cresset.manual_seed(0)
    along = vmap(lambda v: cresset.func.jvp(f, (weights,), (v,))[1], randomness="same")(cresset.stack([cresset.ones(2, 4), cresset.eye(2, 4)]))
    assert [round(a, 4) for a in along.tolist()] == [2.2, 0.6]
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmap(f, randomness="same")(cresset.stack([weights, weights]))


IN_PLACE = {
    "t_": lambda a: a.t_(),
    "squeeze_": lambda a: a.unsqueeze_(0).squeeze_(),
    "as_strided_": lambda a: a.as_strided_((2,), (1,), a.storage_offset()),
    "resize_, smaller": lambda a: a.resize_(2, 1),
    "resize_, larger": lambda a: a.resize_(2, 4).view(-1)[:6],
    "resize_as_": lambda a: a.resize_as_(cresset.empty(3)),
    "set_": lambda a: a.set_(cresset.full((2,), 7.0) + a[0, 0]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("change", IN_PLACE)
def test_in_place_changes_of_shape(change):
    x = cresset.arange(18.0).reshape(3, 2, 3)
    alone = cresset.stack([IN_PLACE[change](row.clone()) for row in x])

    def changed(a):
        own = a.clone()
        result = IN_PLACE[change](own)
        assert change.startswith("resize_, larger") or own.shape == result.shape == alone.shape[1:]
        return result

    assert vmap(changed)(x).tolist() == alone.tolist()
    assert x.flatten().tolist() == list(range(18))


@pytest.mark.filterwarnings("error")
def test_sorted_sequences_of_each_example():
    sequences, values = cresset.arange(12.0).reshape(3, 4), cresset.tensor([[[0.5, 9.0]], [[4.0, 6.5]], [[8.0, 11.5]]])
    for f, dims in (
        (cresset.searchsorted, (0, 0)),
        (cresset.searchsorted, (0, None)),
        (cresset.searchsorted, (None, 0)),
        (lambda s, v: cresset.bucketize(v, s, right=True), (0, 0)),
    ):
        given = [t if d == 0 else t[1] for t, d in zip((sequences, values), dims)]
        examples = [[t[k] if d == 0 else t for t, d in zip(given, dims)] for k in range(3)]
        assert vmap(f, in_dims=dims)(*given).tolist() == [f(*e).tolist() for e in examples]


def test_an_operator_without_a_rule_warns_once_and_loops(x):
    @cresset.library.custom_op("functest::double", mutates_args=())
    def double(t: cresset.Tensor) -> cresset.Tensor:
        return t * 2

    with pytest.warns(
        UserWarning,
        match="There is a performance drop because we have not yet implemented the batching rule for functest::double",
    ):
        assert cresset.equal(vmap(double)(x), x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(double)(x)


def test_register_vmap(x):
    seen = []

    @cresset.library.custom_op("functest::scale", mutates_args=())
    def scale(t: cresset.Tensor, by: float) -> cresset.Tensor:
        return t * by

    @scale.register_vmap
    def rule(info, in_dims, t, by):
        seen.append((info.batch_size, info.randomness, in_dims))
        return scale(t, by), in_dims[0]

    assert cresset.equal(vmap(lambda a: scale(a, 3.0), in_dims=1)(x), x.T * 3)
    assert seen == [(4, "error", (1, None))]
    nested = vmap(vmap(lambda a: scale(a, 3.0)))(x)
    assert cresset.equal(nested, x * 3) and len(seen) == 3
    scale.register_vmap(lambda info, in_dims, t, by: (t * 0, in_dims[0]))
    assert cresset.equal(vmap(lambda a: scale(a, 3.0))(x), x * 0)


def test_library_register_vmap(x):
    lib = cresset.library.Library("functest2", "FRAGMENT")
    lib.define("pair(Tensor a, Tensor b) -> (Tensor, Tensor)")
    lib.impl("pair", lambda a, b: (a + b, a - b), "CompositeExplicitAutograd")
    cresset.library.register_vmap("functest2::pair", lambda info, d, a, b: ((a * 10, b), (d[0], d[1])), lib=lib)
    first, second = vmap(cresset.ops.functest2.pair, in_dims=(0, None), out_dims=(0, 0))(x, x[0])
    assert cresset.equal(first, x * 10) and cresset.equal(second, x[0].expand(3, 4))


class Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return x**3 * k, x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.k + h * 2, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return t * 3 * x**2 * ctx.k, t * 2


class Square(Function):
    @staticmethod
    def forward(x):
        return x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == x.shape[in_dims[0]]
        return Square.apply(x), in_dims[0]


@pytest.mark.parametrize("f, derivative", [
    (lambda a: Cube.apply(a, 2.0)[0], lambda a: 6 * a**2), (lambda a: sum(Cube.apply(a, 1.0)), lambda a: 3 * a**2 + 2), (Square.apply, lambda a: 2 * a),
])  # fmt: skip
def test_functions_with_rules(f, derivative, x):
    assert cresset.allclose(vmap(f)(x), f(x))
    assert cresset.allclose(vmap(vmap(f))(x), f(x))
    assert cresset.allclose(vmap(grad(lambda a: f(a).sum()))(x), derivative(x))
    assert cresset.allclose(grad(lambda b: vmap(f)(b).sum())(x), derivative(x))
    assert cresset.allclose(vmap(jacrev(f))(x), cresset.diag_embed(derivative(x)))
    shared = x[0].clone().requires_grad_()
    vmap(lambda a: f(shared) * a)(x).sum().backward()
    assert cresset.allclose(shared.grad, derivative(x[0]) * x.sum(0))


class Doubled(Function):
    """Doubles its input in place."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a):
        return a.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t.mul_(2)


@pytest.mark.parametrize("dim", [0, 1])
def test_generated_rules_change_in_place(dim, x):
    given = x.clone()
    out = vmap(Doubled.apply, in_dims=dim)(given)
    assert cresset.equal(out, (x * 2).movedim(dim, 0)) and cresset.equal(given, x * 2)
    gradient = vmap(grad(lambda a: (Doubled.apply(a * 1.0) ** 2).sum()), in_dims=dim)(x)
    cresset.testing.assert_close(gradient, (8 * x).movedim(dim, 0))
    cresset.testing.assert_close(cresset.func.jacfwd(lambda a: Doubled.apply(a * 1.0))(x[0]), 2 * cresset.eye(x.shape[1], dtype=x.dtype))


class Same(Function):
    """Its input, and what is saved of it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a, saves):
        return a, a * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*{"input": inputs[:1], "output": output[:1], "new": output[1:], "nothing": ()}[inputs[1]])

    @staticmethod
    def backward(ctx, g, h):
        return 3 * g + 2 * h, None


@pytest.mark.parametrize("saves", ["input", "output", "new", "nothing"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_an_input_returned_as_it_is_cannot_be_saved(saves, dim, x):
    def total(a):
        same, double = Same.apply(a, saves)
        return same.sum() + double.sum()

    def gradient():
        return grad(total)(x) if dim is None else vmap(grad(total), in_dims=dim, out_dims=dim)(x)

    if saves in ("input", "output"):
        with pytest.raises(RuntimeError, match="An input that has been returned as-is as output is being saved for backward"):
            gradient()
    else:
        cresset.testing.assert_close(gradient(), cresset.full_like(x, 5))


@pytest.mark.parametrize("attributes, text", [
    ({"generate_vmap_rule": True, "vmap": staticmethod(lambda info, d, a: (a, 0))}, "it has both generate_vmap_rule=True and an overridden vmap staticmethod"),
    ({}, "it does not have vmap support. Please override and implement the vmap staticmethod or set generate_vmap_rule=True."),
    ({"generate_vmap_rule": True, "setup_context": Function.setup_context}, "it must override the setup_context staticmethod."),
    ({"vmap": staticmethod(lambda info, d, a: a)}, "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. Got a <class"),
])  # fmt: skip
def test_functions_without_a_usable_rule(attributes, text, x):
    body = {
        "forward": staticmethod(lambda a: a * 2),
        "setup_context": staticmethod(lambda ctx, i, o: None),
        "backward": staticmethod(lambda ctx, g: g),
    }
    made = type("Made", (Function,), body | attributes)
    with pytest.raises(RuntimeError) as caught:
        vmap(made.apply)(x)
    assert text in str(caught.value)
    made.apply(x) if "setup_context" not in attributes else None


def test_modules(x):
    from cresset.func import functional_call, stack_module_state

    models = [
        cresset.nn.Sequential(cresset.nn.Linear(4, 5), cresset.nn.Tanh(), cresset.nn.Linear(5, 2)) for _ in range(3)
    ]
    assert cresset.allclose(vmap(models[0])(x), models[0](x), atol=1e-6)
    params, buffers = stack_module_state(models)
    assert all(p.requires_grad and p.is_leaf for p in params.values())
    out = vmap(lambda p, b, a: functional_call(models[0], (p, b), (a,)))(params, buffers, x)
    assert cresset.allclose(out, cresset.stack([m(a) for m, a in zip(models, x)]), atol=1e-6)


def test_convolution_weights_of_their_own():
    images, weights = (
        cresset.randn(3, 2, 4, 8, 8, dtype=cresset.float64),
        cresset.randn(3, 6, 4, 3, 3, dtype=cresset.float64),
    )
    f = lambda i, w: cresset.nn.functional.conv2d(i, w, padding=1)  # noqa: E731
    want = cresset.stack([f(i, w) for i, w in zip(images, weights)])
    assert cresset.allclose(vmap(f)(images, weights), want)
    assert cresset.allclose(
        vmap(f, in_dims=(None, 0))(images[0], weights), cresset.stack([f(images[0], w) for w in weights])
    )


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("drop", ["dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d"])
def test_dropout_of_nothing_or_everything_draws_nothing(drop, p):
    f = getattr(cresset.nn.functional, drop)
    x = cresset.ones(3, 4, 5)
    assert vmap(lambda a: f(a, p, True))(x).sum().item() == (60 if p == 0 else 0)
    assert vmap(lambda a: f(a, 0.5, False))(x).sum().item() == 60
    assert vmap(vmap(lambda a: cresset.dropout(a, p, True)))(x).sum().item() == (60 if p == 0 else 0)


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("drop", ["dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d"])
def test_dropout_differs_between_examples_or_does_not(drop, batched):
    f = getattr(cresset.nn.functional, drop)
    x, plain = cresset.ones(2, 8, 64, 5), cresset.ones(8, 64, 5)
    for randomness in ("same", "different"):
        a, b = vmap(lambda t: f(t if batched else plain, 0.5, True) + 0 * t, randomness=randomness)(x)
        assert cresset.equal(a, b) == (randomness == "same") and len(a.unique()) == 2
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(lambda t: f(t, 0.5, True))(x)


def test_quantiles_of_batched_places():
    x, q = cresset.arange(6.0).view(2, 3), cresset.tensor([0.1, 0.2])
    assert cresset.equal(vmap(lambda p: cresset.quantile(x, p))(q), cresset.stack([cresset.quantile(x, p) for p in q]))
    with pytest.raises(RuntimeError, match="please provide an explicit positive num_classes argument"):
        vmap(cresset.nn.functional.one_hot)(cresset.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor that doesn't have storage"):
        vmap(lambda t: t.numpy())(x)


@pytest.mark.parametrize("rearrange", [lambda t: cresset.channel_shuffle(t, 2), lambda t: cresset.pixel_shuffle(t, 2), lambda t: cresset.pixel_unshuffle(t, 2)])
def test_examples_between_channels_of_their_neighbours(rearrange):
    x = cresset.arange(1.0 * 4 * 3 * 2 * 2).view(1, 3, 2, 2, 4).permute(0, 4, 1, 2, 3)  # examples' channels lie last, batch between
    assert cresset.equal(vmap(rearrange, in_dims=2)(x), cresset.stack([rearrange(x.select(2, i)) for i in range(3)]))


def test_a_batch_of_what_is_not_read():
    x, g, buffers = cresset.randn(3), cresset.ones(3), cresset.empty(2, 0)
    got = vmap(lambda b: cresset.ops.aten.log_sigmoid_backward(g, x, b))(buffers)
    assert cresset.equal(got, cresset.ops.aten.log_sigmoid_backward(g, x, buffers[0]).expand(2, 3))


def test_functions_take_batched_tensors_in_tuples_lists_and_dictionaries():
    seen = []

    class Sum(cresset.autograd.Function):
        @staticmethod
        def forward(pair, more, factor):
            return pair[0] * pair[1] + more["k"] * factor

        @staticmethod
        def setup_context(*_):
            pass

        @staticmethod
        def vmap(info, in_dims, pair, more, factor):
            seen.append((info.batch_size, in_dims))
            return pair[0] * pair[1] + more["k"] * factor, 0

    class Generated(cresset.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, pair):
            return x * pair[0] + pair[1]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[1][0])

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    class NoRule(cresset.autograd.Function):
        @staticmethod
        def forward(pair):
            return pair[0] + 1

        @staticmethod
        def setup_context(*_):
            pass

    x, ones = cresset.arange(6.0).reshape(2, 3), cresset.ones(3)
    assert cresset.vmap(lambda a: Sum.apply((a, ones), {"k": a}, 2.0))(x).equal(x * 3)
    assert cresset.vmap(lambda a: Sum.apply([ones, a], {"k": ones}, 2.0))(x).equal(x + 2)
    assert seen == [(2, ((0, None), {"k": 0}, None)), (2, ([None, 0], {"k": None}, None))]
    assert cresset.vmap(lambda a: Generated.apply(a, (a, ones)))(x).equal(x * x + 1)
    slopes = cresset.vmap(lambda b: cresset.func.grad(lambda a: Generated.apply(a, (b, ones)).sum())(ones))(x)
    assert slopes.equal(x)
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        cresset.vmap(lambda a: NoRule.apply((a,)))(x)


@pytest.mark.parametrize("dims", [(0, 0), (None, 0), (0, None)])
def test_cat_leaves_out_examples_of_size_0(dims):
    for shape, options in (((5, 4), {"dim": 1}), ((3, 2, 2), {}), ((3, 2, 2), {"dim": 2}), ((3,), {})):
        nothing = cresset.empty(2, 0, dtype=cresset.float64) if dims[0] == 0 else cresset.empty(0, dtype=cresset.float64)
        some = cresset.rand(2, *shape) if dims[1] == 0 else cresset.rand(*shape)
        joined = vmap(lambda a, b, o=options: cresset.cat([a, b], **o), dims)(nothing, some)
        assert joined.dtype is cresset.float64 and cresset.equal(joined, some.double().expand(2, *shape))
    assert vmap(lambda a, b: cresset.cat([a, b]), dims)(nothing, nothing.new_empty(2, 0) if dims[1] == 0 else nothing.new_empty(0)).shape == (2, 0)


def test_the_transpose_of_a_number_is_itself():
    x = cresset.rand(3)
    for dims in ((0, 0), (0, -1), (-1, 0)):
        assert vmap(lambda a, d=dims: cresset.transpose(a, *d))(x) is x
    with pytest.raises(IndexError, match="Dimension out of range"):
        vmap(lambda a: cresset.transpose(a, 0, 1))(x)


class KeywordOnly(cresset.autograd.Function):
    @staticmethod
    def forward(x, *, y):
        return x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x, *, y):
        return x + y, 0


def test_a_function_with_a_keyword_only_tensor_is_refused():
    x = cresset.ones(3)
    with pytest.raises(NotImplementedError, match="Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors"):
        cresset.func.vmap(KeywordOnly.apply)(x, y=x)
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'y'"):
        KeywordOnly.apply(x, y=x)


def test_derivatives_of_pinv_of_hermitian_matrices():
    """The gradient of each matrix is the one that it has alone; eigh's, of which the operator is made, would be symmetric."""
    cresset.manual_seed(0)
    a, c = cresset.randn(2, 3, 3, dtype=cresset.float64), cresset.randn(2, 3, 3, dtype=cresset.float64)
    a = a + a.mT
    push = lambda p, c: cresset.func.vjp(lambda x: cresset.linalg.pinv(x, hermitian=True), p)[1](c)[0]  # noqa: E731
    cresset.testing.assert_close(cresset.vmap(push)(a, c), cresset.stack([push(x, y) for x, y in zip(a, c, strict=True)]))


def test_parameters_of_norms_fit_each_example():
    x, norm = cresset.ones(3, 4), cresset.nn.functional.layer_norm
    with pytest.raises(RuntimeError, match="Expected bias to be of same shape as normalized_shape"):
        vmap(lambda b: norm(x, [4], None, b))(cresset.ones(2, 5))
    with pytest.raises(RuntimeError, match="mixed dtype"):
        vmap(lambda w: cresset.nn.functional.batch_norm(x, None, None, w, None, True))(cresset.ones(2, 4, dtype=cresset.float64))
    assert vmap(lambda b: norm(x, [4], None, b))(cresset.ones(2, 4)).shape == (2, 3, 4)


def test_gradients_of_medians_of_examples_are_shared_by_equal_elements():
    x = cresset.tensor([[1.0, 1.0, 1.0, 2.0], [0.0, 3.0, 3.0, 5.0], [2.0, float("nan"), 2.0, 4.0]])
    for f, last in ((cresset.median, [0.0, 1.0, 0.0, 0.0]), (cresset.nanmedian, [0.5, 0.0, 0.5, 0.0])):
        expected = [[pytest.approx(1 / 3)] * 3 + [0.0], [0.0, 0.5, 0.5, 0.0], last]
        assert [grad(f)(row).tolist() for row in x] == expected
        assert vmap(grad(f))(x).tolist() == expected
    assert vmap(cresset.median)(cresset.tensor([[3, 1, 2], [5, 5, 4]])).tolist() == [2, 5]
