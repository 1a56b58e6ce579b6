"""foreach and fused steps against the loop over parameters, their refusals, averages of models."""

import math

import cresset
import pytest
from cresset import nn, optim
from cresset.optim import swa_utils

SHAPES = [(3, 4), (5,), (2, 3, 2), (), (300, 300)]
OPTIONS = {
    "SGD": [{}, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True, "maximize": True}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}],
    "AdamW": [{}, {"amsgrad": True, "maximize": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}, {"maximize": True}],
    "Adadelta": [{}, {"weight_decay": 0.1}],
    "Adamax": [{}, {"weight_decay": 0.1, "maximize": True}],
    "NAdam": [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"weight_decay": 0.1, "betas": (0.8, 0.9)}],
    "Rprop": [{}],
    "ASGD": [{"t0": 2, "lambd": 0.1}],
    "Adafactor": [{}],
}
CASES = [(name, options) for name, each in OPTIONS.items() for options in each]
FUSED = [case for case in CASES if case[0] in ("SGD", "Adam", "AdamW", "Adagrad")]


def wave(shape, k, kind):
    n = cresset.Size(shape).numel()
    t = (cresset.arange(n, dtype=cresset.float64) * 1.3 + k).sin().reshape(shape)
    return cresset.complex(t, t.cos()) if kind == "complex" else t


def run(name, kind="real", steps=5, **options):
    """Parameters and state after some steps; one parameter has a gradient only now and then."""
    params = [wave(shape, i, kind).requires_grad_() for i, shape in enumerate(SHAPES)]
    optimizer = getattr(optim, name)([{"params": params[:2]}, {"params": params[2:], "lr": 0.03}], lr=0.01, **options)
    for k in range(steps):
        for i, p in enumerate(params):
            p.grad = None if i == 1 and k % 2 else wave(SHAPES[i], 10 + 3 * k + i, kind)
        optimizer.step()
    tensors = [p.detach() for p in params]
    for state in optimizer.state_dict()["state"].values():
        tensors += [t for t in state.values() if isinstance(t, cresset.Tensor)]
    return tensors


def close(have, want):
    assert len(have) == len(want)
    for h, w in zip(have, want):
        assert h.dtype == w.dtype and cresset.allclose(h, w, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name, options", CASES)
def test_foreach_is_the_loop(name, options, kind):
    if name == "Adafactor" and kind == "complex":
        with pytest.raises(RuntimeError, match="does not support complex"):
            run(name, kind, **options)
        return
    close(run(name, kind, foreach=True, **options), run(name, kind, **options))


@pytest.mark.parametrize("name, options", FUSED)
def test_fused_is_the_loop(name, options):
    close(run(name, fused=True, **options), run(name, **options))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("how", ["loop", "foreach", "fused"])
def test_tensor_lr(name, how):
    if how == "fused" and name not in [n for n, _ in FUSED]:
        return
    option = {} if how == "loop" else {how: True}
    p = cresset.ones(2, 2, requires_grad=True)
    q = cresset.ones(2, 2, requires_grad=True)
    p.grad, q.grad = cresset.full((2, 2), 0.5), cresset.full((2, 2), 0.5)
    if how == "foreach" and name.startswith("Adam") and name in ("Adam", "AdamW"):
        with pytest.raises(ValueError, match="lr as a Tensor is not supported for capturable=False and foreach=True"):
            getattr(optim, name)([p], lr=cresset.tensor(0.25), **option)
        return
    getattr(optim, name)([p], lr=cresset.tensor(0.25), **option).step()
    getattr(optim, name)([q], lr=0.25, **option).step()
    assert cresset.allclose(p, q)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        getattr(optim, name)([p], lr=cresset.tensor([0.1, 0.2]))


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD"])
def test_differentiable_steps(name):
    """The result of a step has a gradient for the learning parameter before it."""
    start = cresset.tensor([0.4, -0.7], dtype=cresset.float64, requires_grad=True)
    p = start.clone()
    p.retain_grad()
    optimizer = getattr(optim, name)([p], lr=0.1, differentiable=True)
    p.grad = start * 2
    optimizer.step()
    (grad,) = cresset.autograd.grad(p.sum(), start)
    assert grad.shape == start.shape and bool(cresset.isfinite(grad).all())


@pytest.mark.parametrize("name", ["Adam", "SGD", "Adagrad"])
def test_choices_that_exclude_each_other(name):
    p = [cresset.ones(2, requires_grad=True)]
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        getattr(optim, name)(p, fused=True, foreach=True)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        getattr(optim, name)(p, fused=True, differentiable=True)
    z = cresset.ones(2, dtype=cresset.complex64, requires_grad=True)
    z.grad = cresset.ones(2, dtype=cresset.complex64)
    with pytest.raises(RuntimeError, match="requires all the params to be floating point Tensors"):
        getattr(optim, name)([z], fused=True).step()


def test_capturable_and_recorded_lists_are_refused():
    p = cresset.ones(2, requires_grad=True)
    p.grad = cresset.ones(2)
    for name in ("Adam", "RMSprop", "NAdam"):
        with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported devices"):
            getattr(optim, name)([p], capturable=True).step()
        with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
            getattr(optim, name)([p], foreach=True, differentiable=True).step()


def test_gradient_scaler_attributes():
    p = cresset.ones(2, requires_grad=True)
    p.grad = cresset.full((2,), 8.0)
    optimizer = optim.Adam([p], lr=0.1, fused=True)
    optimizer.grad_scale, optimizer.found_inf = cresset.tensor(4.0), cresset.tensor(1.0)
    optimizer.step()
    assert p.tolist() == [1.0, 1.0] and optimizer.state[p]["step"].item() == 0
    optimizer.found_inf = cresset.tensor(0.0)
    optimizer.step()
    assert p.grad.tolist() == [2.0, 2.0] and optimizer.state[p]["step"].item() == 1


def test_muon_makes_updates_orthogonal():
    p = wave((6, 4), 0, "real").float().requires_grad_()
    before = p.detach().clone()
    p.grad = cresset.randn(6, 4)
    optim.Muon([p], lr=0.1, weight_decay=0.0).step()
    update = (before - p.detach()) / (0.1 * (6 / 4) ** 0.5)
    singular = cresset.sqrt(((update.T @ update) ** 2).sum() / 4)  # 1 for an orthogonal matrix
    assert 0.3 < singular.item() < 1.6
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([cresset.ones(2, requires_grad=True)])


def test_sparse_adam_refuses_dense_gradients():
    p = cresset.ones(2, requires_grad=True)
    p.grad = cresset.ones(2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        optim.SparseAdam([p]).step()


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda p: optim.Adafactor(p, d=0.5), ValueError, "Clipping threshold d should be >= 1"),
        (lambda p: optim.Adadelta(p, rho=1.5), ValueError, "Invalid rho value"),
        (lambda p: optim.NAdam(p, momentum_decay=-1.0), ValueError, "Invalid momentum_decay value"),
        (lambda p: optim.RAdam(p, betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0"),
        (lambda p: optim.Rprop(p, etas=(1.5, 0.5)), ValueError, "Invalid eta values"),
        (lambda p: optim.LBFGS([{"params": p}, {"params": [cresset.ones(1, requires_grad=True)]}]), ValueError, "per-parameter options"),
        (lambda p: optim.LBFGS(p, line_search_fn="x").step(lambda: (p[0].sum().backward(), p[0].sum())[1]), RuntimeError, "only 'strong_wolfe' is supported"),
    ],
)
def test_refusals(make, kind, text):
    with pytest.raises(kind, match=text):
        make([cresset.ones(2, requires_grad=True)])


def test_lbfgs_finds_the_minimum():
    p = cresset.tensor([-1.2, 1.0], dtype=cresset.float64, requires_grad=True)
    optimizer = optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2  # Rosenbrock's valley
        loss.backward()
        return loss

    optimizer.step(closure)
    assert p.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


# --- averages of models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, weights",
    [
        ({}, [0.25] * 4),
        ({"avg_fn": swa_utils.get_swa_avg_fn()}, [0.25] * 4),
        ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}, [0.729, 0.081, 0.09, 0.1]),
        ({"avg_fn": swa_utils.get_ema_avg_fn(0.9)}, [0.729, 0.081, 0.09, 0.1]),
    ],
)
def test_averaged_model(options, weights):
    model = nn.Linear(3, 2)
    averaged = swa_utils.AveragedModel(model, **options)
    values = [wave((2, 3), k, "real").float() for k in range(4)]
    for value in values:
        with cresset.no_grad():
            model.weight.copy_(value)
        averaged.update_parameters(model)
    want = sum(w * v for w, v in zip(weights, values))
    assert cresset.allclose(averaged.module.weight, want, atol=1e-6)
    assert averaged.n_averaged.item() == 4
    assert set(averaged.state_dict()) == {"n_averaged", "module.weight", "module.bias"}


def test_update_bn_gives_the_statistics_of_all_batches():
    model = nn.Sequential(nn.BatchNorm1d(3))
    model(cresset.ones(4, 3) * 7)
    batches = [wave((5, 3), k, "real").float() for k in range(3)]
    swa_utils.update_bn(batches, model)
    mean = sum(b.mean(0) for b in batches) / 3
    assert cresset.allclose(model[0].running_mean, mean, atol=1e-6) and model[0].momentum == 0.1


def test_average_refusals():
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match="Invalid decay value 2.0"):
        swa_utils.get_ema_avg_fn(2.0)
    optimizer = optim.SGD([cresset.ones(1, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match="anneal_strategy must be one of"):
        swa_utils.SWALR(optimizer, 0.1, anneal_strategy="x")


def test_lbfgs_goes_on_where_numbers_overflow():
    """The curvature of a loss that hardly changes is tiny: factors beyond the parameters' type are inf there, and no error."""
    p = cresset.nn.Parameter(cresset.tensor([1.0, 2.0]))
    optimizer = optim.LBFGS([p], max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = ((p - 3) ** 4).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    state = optimizer.state[p]
    assert all(isinstance(v, cresset.Tensor) and v.dtype is p.dtype for v in (*state["ro"], state["H_diag"], *state["al"][: len(state["ro"])]))
    state["ro"] = [cresset.tensor(3e38) for _ in state["ro"]]
    state["old_stps"] = [s * 1e4 for s in state["old_stps"]]
    optimizer.step(closure)
    assert not p.isfinite().all()


def test_lbfgs_without_gradient():
    p = cresset.ones(2, requires_grad=True)
    assert optim.LBFGS([p], tolerance_grad=-math.inf).step(lambda: cresset.tensor([10.0])) == 10 and p.tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "RMSprop"])
def test_capturable_without_gradients_has_nothing_to_refuse(kind):
    p = cresset.nn.Parameter(cresset.ones(2))
    optimizer = getattr(cresset.optim, kind)([p], capturable=True)
    assert optimizer.step() is None
    p.grad = cresset.ones(2)
    with pytest.raises(AssertionError, match="If capturable=True"):
        optimizer.step()


def test_hooks_around_a_step_that_is_decorated():
    class Plain(cresset.optim.SGD):
        @cresset.optim.Optimizer.profile_hook_step
        def step(self, closure=None):
            return "done"

    optimizer, seen = Plain([cresset.nn.Parameter(cresset.ones(1))], lr=0.1), []
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.register_step_post_hook(lambda *args: seen.append("behind"))
    assert optimizer.step() == "done" and seen == ["before", "behind"]


@pytest.mark.parametrize("name", [n for n in OPTIONS if n != "SGD"])
@pytest.mark.parametrize("foreach", [False, True])
def test_steps_saved_as_numbers_become_tensors(name, foreach):
    """As states of PyTorch before 1.12 have them."""
    made = lambda: getattr(optim, name)([wave(SHAPES[0], 0, "real").requires_grad_()], foreach=foreach)
    results = []
    for as_numbers in (False, True):
        first, second = made(), made()
        for optimizer in (first, second):
            (p,) = optimizer.param_groups[0]["params"]
            p.grad = wave(SHAPES[0], 1, "real")
            if optimizer is second:
                state = first.state_dict()
                for own in state["state"].values():
                    own["step"] = own["step"].item() if as_numbers else own["step"]
                second.load_state_dict(state)
                assert second.state[p]["step"].dtype == cresset.float32
            optimizer.step()
        results.append([p.detach(), second.state[p]["step"]])
    assert results[0][1] == 2 and all(map(cresset.equal, *results))
