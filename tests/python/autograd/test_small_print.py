"""Small print of the backward graph that programs rely on: who sees which object, how often, and what is refused."""

import threading

import cresset as torch
import pytest
from cresset.autograd import functional


def test_a_hook_behind_the_accumulation_sees_the_gradient_itself():
    t = torch.rand(3, requires_grad=True)

    def behind(grad_in, grad_out):
        t.grad = grad_out[0].mul(10)

    node = t.view_as(t).grad_fn.next_functions[0][0]
    t.register_hook(lambda g: g.sub(2.0))
    node.register_prehook(lambda g: (g[0].div(5.0),))

    def after(t):
        t.grad.add_(0.5)

    t.register_post_accumulate_grad_hook(after)
    node.register_hook(behind)
    t.sum().backward()
    torch.testing.assert_close(t.grad, torch.full((3,), 3.0))


def test_any_hooks_run_once_in_each_pass_of_several_threads():
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    calls = []
    torch.autograd.graph.register_multi_grad_hook((a, b), calls.append, mode="any")
    out = (a * b).sum()
    threads = [threading.Thread(target=lambda: out.backward(inputs=(a, b), retain_graph=True)) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(calls) == 5


@pytest.mark.parametrize("fills", [True, False])
def test_zeros_for_outputs_that_are_not_differentiable(fills):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x.clone(), x.clone()
            ctx.mark_non_differentiable(b)
            if not fills:
                ctx._materialize_non_diff_grads = False
            return a, b

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a

    seen = []
    Two.apply(torch.ones((), requires_grad=True))[0].backward()
    assert (seen[0] is None) == (not fills)


def test_a_node_counts_what_it_is_called_with():
    x = torch.ones(1, requires_grad=True)
    y = x**2
    for wrong in ((), (x.detach(), x.detach())):
        with pytest.raises(TypeError, match=f"expected 1 arguments, got {len(wrong)} instead"):
            y.grad_fn(*wrong)
    y.grad_fn(x.detach())


def test_nodes_that_stand_alone():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Boom"):
        torch._C._functions.DelayedError("Boom", 1)(x).sum().backward()
    torch._C._functions.UndefinedGrad()(x * 2).sum().backward()
    assert x.grad is None
    assert isinstance(x.view(2).grad_fn.next_functions[0][0], torch._C._functions.AccumulateGrad)
    assert torch._C._autograd._saved_tensors_hooks_is_enabled()
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        assert not torch._C._autograd._saved_tensors_hooks_is_enabled()


def test_versions_of_resizes():
    x, y = torch.zeros(1), torch.zeros(3)
    versions = []
    for change in (lambda: x.resize_((1, 2)), lambda: x.resize_as_(y), lambda: x.resize_((3,)), lambda: x.resize_as_(y)):
        change()
        versions.append(x._version)
    assert versions == [1, 2, 2, 2]


CHANGES = [
    "x.transpose_(0, 1)", "x.t_()", "x.squeeze_()", "x.unsqueeze_(0)", "x.swapaxes_(0, 1)", "x.as_strided_((1,), (1,))", "x.resize_(2)",
    "x.resize_as_(torch.ones(3))", "x.set_(torch.ones(2))", "x.set_()", "x.add_(1)", "x.fill_(3)", "x.zero_()", "x.copy_(torch.zeros(1, 2))",
    "x.exp_()", "x.normal_()", "x.scatter_(0, torch.zeros(1, 2, dtype=torch.int64), 4.)", "x.index_fill_(1, torch.tensor([0]), 4.)",
    "x.__setitem__(0, 3.)", "x[0].mul_(4)", "torch.mul(x, 3, out=x)", "torch.sum(x, 0, out=x)", "torch.relu_(x)",
    "torch._foreach_add_([x], 1)", "torch._foreach_zero_([torch.ones(2), x])", "torch.nn.init.ones_(x)", "torch.nn.functional.dropout(x, 1., inplace=True)",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_inference_tensors_are_not_changed_outside(change):
    with torch.inference_mode():
        eval(change, {"x": torch.ones(1, 2), "torch": torch})
        x = torch.tensor([[2.0, 5.0]])
    for grad in (True, False):
        with torch.set_grad_enabled(grad), pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            eval(change, {"x": x, "torch": torch})
    assert x.tolist() == [[2, 5]] and x.is_inference()


def test_what_inference_tensors_may_outside():
    with torch.inference_mode():
        x, normal = torch.ones(2), None
    x.resize_(2), x.resize_as_(x), x.detach_(), x.requires_grad_(False)
    assert x.view(2).is_inference() and not (x + 1).is_inference()
    # What is detached outside counts for itself and may be written; a view of it may not.
    for detached in (x.detach(), x.data, torch.nn.Parameter(x, requires_grad=False)):
        before = detached._version
        detached.zero_()
        assert detached.is_inference() and (before, detached._version) == (0, 1) and x.tolist() == [0, 0]
        detached.add_(1)
        with pytest.raises(RuntimeError, match="outside InferenceMode"):
            detached.view(2).add_(1)
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            detached * torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        with torch.inference_mode(False):
            normal = torch.ones(2)
            normal.add_(1)
            with pytest.raises(RuntimeError, match="outside InferenceMode"):
                x.fill_(2)
        normal.add_(1), x.add_(1)
    assert normal.tolist() == [3, 3] and normal._version == 2 and x.tolist() == [2, 2]


def test_the_key_of_writes_and_views_is_that_of_a_thread_outside_of_inference_mode():
    key = torch._C.DispatchKey.ADInplaceOrView
    assert torch._C._dispatch_tls_local_include_set().has(key)
    with torch.inference_mode():
        assert not torch._C._dispatch_tls_local_include_set().has(key)
        with torch.inference_mode(False):
            assert torch._C._dispatch_tls_local_include_set().has(key)


def test_saved_tensors_are_cloned_once_for_each_version():
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        a = torch.randn(2, 3, requires_grad=True).clone()
        b, c = a**2, a**2
        assert len(ctx.tid_to_weakhandle) == 1 and len(ctx.cloned) == 0
        a.sin_()
        assert len(ctx.cloned) == 1
        d = a**2
        a.sin_()
        assert len(ctx.cloned) == 2
        del b, c
        assert len(ctx.cloned) == 1
        del d
        assert len(ctx.cloned) == 0


def foreign(a):
    return a.long().float().requires_grad_().clone().sum()


@pytest.mark.parametrize("caller", ["hessian", "hvp", "vhp"])
@pytest.mark.parametrize(
    "function, words",
    [
        (lambda a: a.detach().sum(), "Output 0 of the user-provided function does not require gradients"),
        (foreign, None),
        (lambda a: (3 * a).sum(), "jacobian of the user-provided function with respect to input 0 is independent of the input"),
    ],
)
def test_strict_second_derivatives(caller, function, words):
    x = torch.rand(4)
    arguments = (x,) if caller == "hessian" else (x, torch.rand(4))
    if words is None:
        words = "jacobian of the user-provided function with respect to input 0" if caller == "hessian" else "The output of the user-provided function is independent of input 0"
    with pytest.raises(RuntimeError, match=words):
        getattr(functional, caller)(function, *arguments, strict=True)


@pytest.mark.parametrize("caller", ["vjp", "jvp", "jacobian"])
def test_strict_with_a_graph_refuses_constant_jacobians(caller):
    x = torch.rand(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function is independent of input 0"):
        getattr(functional, caller)(lambda a: a.clone(), x, *(() if caller == "jacobian" else (torch.rand(4),)), create_graph=True, strict=True)


def test_gradient_weights_of_gradgradcheck_may_be_constants():
    x = torch.randn(3, dtype=torch.double, requires_grad=True)
    torch.autograd.gradgradcheck(lambda a: a.sin(), (x,), [torch.randn(3)])  # float32: no differences are taken of it


def test_a_hook_after_the_accumulation_returns_nothing():
    for hook in (lambda t: t.grad, lambda t: t.detach(), lambda t: t.view_as(t)):
        t = torch.ones(1, requires_grad=True)
        t.register_post_accumulate_grad_hook(hook)
        with pytest.raises(RuntimeError, match="Tensor post accumulate grad hooks should return None"):
            t.sum().backward()


def test_a_hook_after_the_accumulation_may_return_the_tensor_itself():
    t = torch.zeros(3, requires_grad=True)
    t.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.01))  # the example of PyTorch's page
    t.backward(torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(t.detach(), torch.tensor([-0.01, -0.02, -0.03]))


def test_what_is_deprecated_says_so():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert len(ctx.saved_variables) == 1
            return g * 2

    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"):
        Double.apply(torch.ones(1, requires_grad=True)).backward()
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Made:
            def __init__(self):
                assert not torch.is_grad_enabled()

    Made()


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("change, what", [(lambda x: torch.cat([x, x]), "shape"), (lambda x: x.float(), "dtype")])
def test_outputs_that_change_their_form_under_differences(change, what, fast):
    x = torch.ones(1, dtype=torch.double, requires_grad=True)
    with pytest.raises(AssertionError, match=f"return outputs with the same {what} when inputs are perturbed"):
        torch.autograd.gradcheck(lambda x: change(x) if bool((x >= 1).all()) else x, (x,), fast_mode=fast)


def test_zeros_for_edges_are_refused():
    x, y = torch.rand(2, requires_grad=True).clone(), torch.rand(2, requires_grad=True).clone()
    edge = torch.autograd.graph.GradientEdge(y.grad_fn, y.output_nr)
    assert torch.autograd.grad(x.clone().sum(), (x, edge), allow_unused=True)[1] is None
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        torch.autograd.grad(x.clone().sum(), (x, edge), allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("create_graph", [True, False])
def test_materialized_gradients_require_one_as_the_others(create_graph):
    x, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    found = torch.autograd.grad((x * x).sum(), [x, unused], materialize_grads=True, create_graph=create_graph)
    assert [g.requires_grad for g in found] == [create_graph] * 2
    assert found[1].tolist() == [0, 0]


def test_keywords_of_ctx():
    seen = []

    class Quiet(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(value=False)
            for name in ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable"):
                with pytest.raises(TypeError, match=rf"^FunctionCtx.{name}\(\) got an unexpected keyword argument 'x'$"):
                    getattr(ctx, name)(x=x)
            return x.clone(), x.clone()

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second)
            return first

    x = torch.ones(2, requires_grad=True)
    Quiet.apply(x)[0].sum().backward()
    assert seen == [None] and x.grad.tolist() == [1, 1]


def test_gradients_are_kept_only_where_one_is_required():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="^can't retain_grad on Tensor that has requires_grad=False$"):
        x.sum().backward(inputs=[torch.ones(2)])
    with pytest.raises(RuntimeError, match="^One of the differentiated Tensors does not require grad$"):
        torch.autograd.grad(x.sum(), torch.ones(2))


def test_set_parts_a_leaf_from_what_was_recorded():
    x = torch.rand(2, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(x)
    out = x.clone()
    with torch.no_grad():
        x.set_(torch.rand(2))
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        torch.autograd.grad(out.sum(), x)
    assert torch.autograd.grad(out.sum(), edge)[0].tolist() == [1.0, 1.0]


def test_a_ctx_says_what_it_was_told_until_forward_has_ended():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            told = ("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable")
            seen.append([getattr(ctx, name) for name in told])
            positive = x > 0
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(y)
            ctx.mark_non_differentiable(positive)
            seen.append([len(getattr(ctx, name) or ()) for name in told])
            return x * y, positive

        @staticmethod
        def backward(ctx, g, _):
            seen.append((ctx.to_save, ctx.saved_for_forward, ctx.non_differentiable))
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx, x_t, y_t):
            (y,) = ctx.saved_for_forward
            return x_t * y, None

    x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0])
    Product.apply(x, y)[0].backward()
    assert seen == [[None] * 4, [2, 1, 0, 1], (None, None, None)] and x.grad.item() == 3.0
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.tensor([5.0]))
        assert torch.autograd.forward_ad.unpack_dual(Product.apply(dual, y)[0]).tangent.item() == 15.0
    ctx = torch.autograd.function.FunctionCtx()
    ctx.to_save = (y,)
    assert ctx.to_save == (y,)


def test_a_generated_vmap_rule_keeps_apart_what_is_saved_for_backward_and_for_forward():
    class Product(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y = inputs
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(y)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx, x_t, y_t):
            assert len(ctx.saved_tensors) == 1
            return x_t * ctx.saved_for_forward[0]

    x, y = torch.arange(6.0).reshape(2, 3), torch.full((3,), 3.0)
    by_y = torch.vmap(torch.func.grad(lambda a, b: Product.apply(a, b).sum(), argnums=1), in_dims=(0, None))
    assert by_y(x, y).tolist() == x.tolist()
    tangent = torch.vmap(lambda a: torch.func.jvp(lambda q: Product.apply(q, y), (a,), (torch.ones(3),))[1])
    assert tangent(x).tolist() == [[3.0] * 3] * 2


def test_private_parts_of_jacobians_that_libraries_call():
    x = torch.ones(2, requires_grad=True)
    grads = functional._grad_postprocess(((x * 2, x * 3), (x * 4,)), False)
    assert [[g.requires_grad for g in row] for row in grads] == [[False, False], [False]]
    assert functional._grad_postprocess(x * 2, True).requires_grad
    assert functional._tuple_postprocess((1, 2), True) == (1, 2) and functional._tuple_postprocess((1,), False) == 1
    assert functional._tuple_postprocess(((1, 2),), (False, True)) == (1, 2) and functional._tuple_postprocess(((1,), (2,)), (True, False)) == (1, 2)
    assert functional._as_tuple(x, "inputs", "jacobian") == (False, (x,))
    with pytest.raises(TypeError, match="The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        functional._as_tuple([x], "inputs", "jacobian")


def test_attributes_that_cannot_be_deleted():
    x = torch.ones(2, requires_grad=True)
    for name, words in {
        "data": "Deleting tensor data is not allowed. Delete tensor instead!", "requires_grad": "requires_grad must be a bool",
        "_grad_fn": "Deletion of _grad_fn not allowed. Detach tensor instead!", "_backward_hooks": "Deletion of _backwards_hooks not allowed!",
        "_post_accumulate_grad_hooks": "Deletion of _post_accumulate_grad_hooks not allowed!",
    }.items():  # fmt: skip
        with pytest.raises(RuntimeError) as error:
            delattr(x, name)
        assert str(error.value) == words
    for name in ("real", "imag"):  # PyTorch ends there
        with pytest.raises(RuntimeError, match="part of a tensor is not allowed"):
            delattr(torch.ones(2, dtype=torch.complex64), name)
    y = x * 2
    with pytest.raises(RuntimeError, match="_grad_fn can be only set to None"):
        y._grad_fn = 3
    y._grad_fn = None
    assert y.grad_fn is None and not y.requires_grad


def test_hooks_of_saved_tensors_give_back_the_object():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.saved_tensors[0] is b)
            return g, None

    seen, a, b = [], torch.tensor(1.0, requires_grad=True), torch.tensor(1.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        r = Keeps.apply(a, b)
    r.backward()
    assert seen == [True]


def test_sums_of_gradients_begin_with_the_older_one():
    """A dense gradient is added to a sparse one as a dense tensor, with and without a graph of it."""
    for create_graph in (False, True):
        p = torch.tensor([1.5, 1.5]).requires_grad_()
        p.grad = sparse = torch.sparse_coo_tensor([[1, 1]], [1.0, 1.0], (2,))
        (p * 1.5).sum().backward(create_graph=create_graph)
        assert p.grad is not sparse and p.grad.layout == torch.strided and p.grad.tolist() == [1.5, 3.5]
