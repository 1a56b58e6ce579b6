"""Optimisers: recorded courses, construction errors, groups, state dictionaries, hooks, closures."""

import copy
import json
import pathlib
import pickle
import sys
import warnings

import cresset
import pytest
from cresset import nn, optim

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
import training_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "training.json").read_text())


def flat(rows):
    return [v for row in rows for v in row]


@pytest.mark.parametrize("expression", training_cases.OPTIMIZERS)
def test_course(expression):
    assert flat(training_cases.train(cresset, expression)) == pytest.approx(
        flat(RECORDED[expression]), rel=1e-12, abs=1e-14
    )


@pytest.mark.parametrize("expression", training_cases.CLOSURES)
def test_course_with_closure(expression):
    assert flat(training_cases.train_with_closure(cresset, expression)) == pytest.approx(flat(RECORDED[expression]), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("expression", training_cases.OPTIMIZERS)
def test_state_dict_continues_the_course(expression):
    ps = training_cases.parameters(cresset)
    make = lambda: eval(expression, vars(optim), {"ps": ps})  # noqa: E731
    optimizer, losses = make(), []
    for step in range(6):
        if step == 3:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = make()
            optimizer.load_state_dict(state)
        optimizer.zero_grad()
        value = training_cases.loss(cresset, ps)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    # Loading gives the states of float32 that are no step counts (mu_product, eta, mu) the parameter's type.
    rel = 1e-8 if expression.startswith(("NAdam", "ASGD")) else 1e-12
    assert losses == pytest.approx(RECORDED[expression][0], rel=rel)


@pytest.mark.parametrize("expression", training_cases.OPTIMIZERS)
def test_foreach_gives_the_same(expression):
    assert training_cases.train(cresset, expression[:-1] + ", foreach=True)") == training_cases.train(
        cresset, expression
    )


def params():
    return [nn.Parameter(cresset.ones(2))]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD(params()[0]), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda: optim.SGD(params(), lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD(params(), lr=cresset.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.SGD(params(), momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD(params(), weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (
            lambda: optim.SGD(params(), nesterov=True),
            ValueError,
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (lambda: optim.Adam(params(), eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam(params(), betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam(params(), betas=(0.9,)), IndexError, "tuple index out of range"),
        (lambda: optim.Adamax(params(), betas=(0.9,)), IndexError, "tuple index out of range"),
        (lambda: optim.AdamW(params(), betas=(0.9, -1)), ValueError, "Invalid beta parameter at index 1: -1"),
        (lambda: optim.RMSprop(params(), alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda: optim.Adagrad(params(), lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda: optim.SGD([params()[0] * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([{"params": set(params())}]), TypeError, "ordering of tensors in sets will change"),
        (lambda: optim.SGD(params()).add_param_group(3), TypeError, "param_group must be a dict"),
        (
            lambda: optim.Optimizer(params(), {"lr": optim.optimizer.required}),
            ValueError,
            "required optimization parameter lr",
        ),
        (lambda: optim.Optimizer(params(), {}).step(), NotImplementedError, "step"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_duplicates():
    p = params()
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optim.SGD([{"params": p}, {"params": p}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD(p * 2)


def test_groups_take_defaults_and_names():
    a, b = nn.Parameter(cresset.ones(1)), nn.Parameter(cresset.ones(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5] and optimizer.param_groups[1]["momentum"] == 0.9
    assert optimizer.param_groups[1]["params"] == [b]
    optimizer.add_param_group({"params": [nn.Parameter(cresset.ones(1))], "lr": 1.0})
    assert len(optimizer.param_groups) == 3
    named = optim.SGD(nn.Linear(1, 1).named_parameters(), lr=0.1)
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with/without names"):
        named.add_param_group({"params": [nn.Parameter(cresset.ones(1))]})


def test_repr():
    optimizer = optim.SGD([{"params": params()}, {"params": params(), "lr": 0.5}], lr=0.1)
    block = (
        "Parameter Group {}\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: {}\n"
        "    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n"
    )
    assert repr(optimizer) == "SGD (\n" + block.format(0, 0.1) + "\n" + block.format(1, 0.5) + ")"


def stepped(cls=optim.Adam, **options):
    p = nn.Parameter(cresset.ones(2))
    optimizer = cls([p], **options)
    p.grad = cresset.ones(2)
    optimizer.step()
    return optimizer, p


def test_state_dict_layout():
    optimizer, p = stepped()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"]) == [0] and sorted(state["state"][0]) == ["exp_avg", "exp_avg_sq", "step"]
    assert state["state"][0]["step"].item() == 1.0 and state["state"][0]["step"].dtype == cresset.float32
    assert state["param_groups"][0]["params"] == [0] and state["param_groups"][0]["lr"] == 1e-3


def test_load_state_dict_casts_and_checks():
    optimizer, _ = stepped()
    state = optimizer.state_dict()
    double = nn.Parameter(cresset.ones(2, dtype=cresset.float64))
    other = optim.Adam([double], lr=5.0)
    other.load_state_dict(state)
    assert (
        other.state[double]["exp_avg"].dtype == cresset.float64 and other.state[double]["step"].dtype == cresset.float32
    )
    assert other.param_groups[0]["lr"] == 1e-3 and other.param_groups[0]["params"] == [double]
    assert other.state[double]["exp_avg"].data_ptr() != state["state"][0]["exp_avg"].data_ptr()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.Adam([{"params": params()}, {"params": params()}]).load_state_dict(state)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.Adam(params() + params()).load_state_dict(state)


def test_deepcopy_and_pickle():
    optimizer, p = stepped()
    for clone in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        q = clone.param_groups[0]["params"][0]
        assert q is not p and clone.state[q]["step"].item() == 1.0
        q.grad = cresset.ones(2)
        clone.step()
        assert clone.state[q]["step"].item() == 2.0 and optimizer.state[p]["step"].item() == 1.0


def test_zero_grad():
    optimizer, p = stepped()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None
    before = p.tolist()
    optimizer.step()
    assert p.tolist() == before


def test_closure_runs_with_gradients_and_returns_the_loss():
    p = nn.Parameter(cresset.ones(1))
    optimizer = optim.SGD([p], lr=0.5)

    def closure():
        assert cresset.is_grad_enabled()
        optimizer.zero_grad()
        value = (p * 2).sum()
        value.backward()
        return value

    with cresset.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert p.tolist() == [0.0]
    assert optimizer.step() is None


def test_step_hooks():
    optimizer, _ = stepped(optim.SGD)
    calls = []
    a = optimizer.register_step_pre_hook(
        lambda o, args, kwargs: calls.append(("pre", o is optimizer, args[1:], kwargs))
    )
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("post"))
    g = optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: calls.append("global"))
    optimizer.step()
    assert calls == ["global", ("pre", True, (), {}), "post"]
    a.remove()
    g.remove()
    calls.clear()
    optimizer.step()
    assert calls == ["post"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_run_once_when_a_subclass_calls_its_base():
    class Mine(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    calls = []
    optimizer, _ = stepped(Mine, lr=0.1)
    optimizer.register_step_post_hook(lambda *a: calls.append(1))
    optimizer.step()
    assert calls == [1]


def test_state_dict_hooks():
    optimizer, _ = stepped(optim.SGD)
    calls = []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    state = optimizer.state_dict()
    assert calls == ["pre"] and state["note"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda o, s: {k: v for k, v in s.items() if k != "note"})
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(state)
    assert calls == ["pre", "loaded"]


def test_differentiable_steps_carry_gradients():
    for make in (
        lambda p: optim.SGD([p], lr=0.5, differentiable=True),
        lambda p: optim.Adam([p], lr=0.5, eps=0.1, differentiable=True),
    ):
        scale = cresset.tensor(2.0, requires_grad=True)
        p = cresset.ones(1, requires_grad=True).clone()
        p.retain_grad()
        optimizer = make(p)
        p.grad = scale * cresset.ones(1)
        optimizer.step()
        p.sum().backward()
        assert scale.grad is not None and scale.grad.item() != 0.0


def test_tensor_learning_rate():
    rate = cresset.tensor(0.5)
    p = nn.Parameter(cresset.ones(1))
    optimizer = optim.SGD([p], lr=rate)
    p.grad = cresset.ones(1)
    optimizer.step()
    rate.fill_(0.25)
    optimizer.step()
    assert p.item() == 0.25


def test_complex_parameters_step_like_pairs_of_reals():
    for cls, options in (
        (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (optim.Adam, {"lr": 0.1}),
        (optim.RMSprop, {"lr": 0.1}),
    ):
        z = nn.Parameter(cresset.tensor([1 + 2j, 3 - 1j]))
        r = nn.Parameter(cresset.view_as_real(z.detach()).clone())
        oz, orr = cls([z], **options), cls([r], **options)
        for _ in range(3):
            z.grad = cresset.tensor([0.5 - 1j, 2 + 0.25j])
            r.grad = cresset.view_as_real(z.grad).clone()
            oz.step()
            orr.step()
        assert cresset.allclose(cresset.view_as_real(z.detach()), r.detach(), rtol=1e-6)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepped(optim.AdamW)


def test_a_subclass_that_does_not_call_init():
    class Plain(cresset.optim.Optimizer):
        def __init__(self, params):
            self.param_groups, self.state, self.defaults = [{"params": list(params), "lr": 0.5}], {}, {}

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad, alpha=-group["lr"])

    p = cresset.nn.Parameter(cresset.ones(2))
    optimizer, seen = Plain([p]), []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    p.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    assert p.tolist() == [0.5, 0.5] and p.grad is None and seen == [1] and "lr: 0.5" in repr(optimizer)
    assert not Plain([p])._optimizer_step_post_hooks


def test_the_search_of_lbfgs_where_no_cubic_is():
    from cresset.optim.lbfgs import _cubic_interpolate

    one, two, three = cresset.tensor(1.0), cresset.tensor(2.0), cresset.tensor(3.0)
    assert float(_cubic_interpolate(one, two, three, one, two, three)) == 1.0  # both points are one: PyTorch's answer for tensors
    assert _cubic_interpolate(1.0, 2.0, 3.0, 1.0, 2.0, 3.0) == 1.0  # PyTorch divides by zero
    assert _cubic_interpolate(0.0, 0.0, 0.0, 1.0, 0.0, 0.0) == 0.5  # level: no place is lower


def test_the_search_of_lbfgs_under_the_names_that_libraries_import():
    from cresset.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    # t^3 - t falls to 1 / sqrt(3); the cubic through two of its points is the function itself.
    assert _cubic_interpolate(0.0, 0.0, -1.0, 1.0, 0.0, 2.0) == pytest.approx(3**-0.5)
    assert _cubic_interpolate(1.0, 0.0, 2.0, 0.0, 0.0, -1.0, bounds=(0.0, 0.5)) == 0.5

    def parabola(x, t, d):
        y = x + t * d
        return (y * y).sum().item(), 2 * y

    x = cresset.tensor([3.0, 4.0], dtype=cresset.float64)
    loss, grad = parabola(x, 0, x)
    found, slope, step, calls = _strong_wolfe(parabola, x, 0.5, -grad, loss, grad, -grad.dot(grad))
    assert (found, slope.tolist(), step, calls) == (0.0, [0.0, 0.0], 0.5, 1)  # half of the gradient leads to the minimum
    found, slope, step, calls = _strong_wolfe(parabola, x, 1.0, -grad, loss, grad, -grad.dot(grad))  # as far up on the other side
    assert found == pytest.approx(0.0) and float(step) == pytest.approx(0.5) and calls == 2


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_betas_as_tensors_on_lists_need_capturable(name):
    betas = (cresset.tensor(0.9), cresset.tensor(0.99))
    with pytest.raises(ValueError, match=r"betas\[0\] as a Tensor is not supported for capturable=False and foreach=True"):
        getattr(optim, name)([cresset.zeros(2)], betas=betas, foreach=True)
    assert getattr(optim, name)([cresset.zeros(2)], betas=betas).param_groups[0]["foreach"] is None
