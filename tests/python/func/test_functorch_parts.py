"""The parts of torch._functorch that programs name: chosen arguments, ensembles made from a class, gradients of batched functions."""

import importlib

import cresset
import pytest
from cresset import nn
from cresset._functorch.autograd_function import reductify_leaf
from cresset._functorch.eager_transforms import _slice_argnums
from cresset._functorch.make_functional import functional_init, functional_init_with_buffers


def test_chosen_arguments():
    args = (1.0, [2.0], 3.0)
    assert _slice_argnums(args, 0) == (1.0,) and _slice_argnums(args, (2, -2)) == (3.0, [2.0])
    assert _slice_argnums(args, 1, as_tuple=False) == [2.0]
    for wrong, words in (((), "must be non-empty"), ((0, -3), "must be unique"), (3, "positional inputs")):
        with pytest.raises(RuntimeError, match=words):
            _slice_argnums(args, wrong)


def test_ensembles_from_a_class():
    weights, call, names = functional_init(nn.Linear, (3,))(2, 4)
    assert names == ("weight", "bias") and [w.shape for w in weights] == [(3, 4, 2), (3, 4)]
    assert not cresset.equal(weights[0][0], weights[0][1])
    x = cresset.randn(3, 5, 2)
    out = cresset.vmap(call)(weights, (x,))
    cresset.testing.assert_close(out[1], x[1] @ weights[0][1].t() + weights[1][1])
    single, call, _ = functional_init(nn.Linear)(2, 4)
    assert call(single, (x[0],)).shape == (5, 4)
    params, buffers, _, _, names = functional_init_with_buffers(nn.BatchNorm1d, (2,))(3)
    assert len(params) == 2 and names == ("running_mean", "running_var", "num_batches_tracked") and buffers[0].shape == (2, 3)
    with pytest.raises(RuntimeError, match="functional_init_with_buffers"):
        functional_init(nn.BatchNorm1d)(3)
    for shape in ((0,), (2, 2)):
        with pytest.raises(ValueError):
            functional_init(nn.Linear, shape)(2, 4)


def test_gradients_where_the_examples_are_elsewhere():
    g = cresset.randn(4, 2, 3)
    assert reductify_leaf(None, None, 0, 2) is None
    assert reductify_leaf(g, None, None, 2) is g
    assert cresset.equal(reductify_leaf(g, 1, None, 2), g.sum(1))
    assert cresset.equal(reductify_leaf(g, 1, 0, 2), g.movedim(1, 0))
    assert cresset.equal(reductify_leaf(g, None, 1, 5), g.unsqueeze(1).expand(4, 5, 2, 3))
    cresset.testing.assert_close(reductify_leaf(g, 1, 0, 2, (3,)), g.sum(0))


def test_levels_count_from_one():
    with pytest.raises(RuntimeError, match="levels of vmap count from 1; level 0 was given"):
        cresset._C._functorch._add_batch_dim(cresset.ones(2), 0, 0)


def test_steps_that_libraries_put_their_own_in_place_of(monkeypatch):
    from cresset._functorch import eager_transforms, vmap

    seen = []

    class Marked(cresset.Tensor):
        pass

    def keeps_class(module_name, name):
        module = importlib.import_module(module_name)
        step = getattr(module, name)

        def wrapper(tensor, *more):
            seen.append(name)
            made = step(tensor, *more)
            return made.as_subclass(Marked) if isinstance(tensor, Marked) else made

        monkeypatch.setattr(module, name, wrapper)

    keeps_class(eager_transforms._wrap_tensor_for_grad.__module__, "_wrap_tensor_for_grad")
    keeps_class(vmap.__name__, "_add_batch_dim")
    x = cresset.ones(2, 3).as_subclass(Marked)
    kinds = []
    cresset.func.grad(lambda t: (kinds.append(type(t)), t.sum())[1])(x)
    cresset.vmap(lambda t: (kinds.append(type(t)), t + 1)[1])(x)
    assert kinds == [Marked, Marked] and seen == ["_wrap_tensor_for_grad", "_add_batch_dim"]


def test_a_ctx_with_other_saved_tensors():
    from cresset._functorch.autograd_function import CtxWithSavedTensors

    class Ctx:
        pass

    ctx = Ctx()
    ctx.a, ctx.saved_tensors = 1, (5,)
    outer = CtxWithSavedTensors(CtxWithSavedTensors(ctx, (1, 2)), (3,))
    outer.b = 4
    assert (outer.saved_tensors, outer._pt_inner_ctx.saved_tensors, outer.a, ctx.b) == ((3,), (1, 2), 1, 4)
    assert vars(ctx) == {"a": 1, "saved_tensors": (5,), "b": 4}
    ctx._pt_new_saved_tensors = 1
    with pytest.raises(RuntimeError, match="name collision"):
        CtxWithSavedTensors(ctx, ())
