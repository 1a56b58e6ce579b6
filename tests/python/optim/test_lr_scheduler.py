"""Schedules: recorded courses, closed forms, state dictionaries, warnings and errors."""

import copy
import json
import pathlib
import sys
import warnings

import cresset
import pytest
from cresset import nn, optim
from cresset.optim import lr_scheduler as L

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
import training_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "schedules.json").read_text())


def sgd(lr=0.1, **options):
    return optim.SGD([nn.Parameter(cresset.ones(1))], lr=lr, **options)


@pytest.mark.parametrize("expression", training_cases.SCHEDULES)
def test_course(expression):
    assert training_cases.schedule(cresset, expression) == [
        pytest.approx(row, rel=1e-13) for row in RECORDED[expression]
    ]


@pytest.mark.parametrize("expression", training_cases.SCHEDULES)
def test_state_dict_continues_the_course(expression):
    scope = {"L": L, "S": optim.swa_utils}
    a = scope["o"] = sgd(momentum=0.9)
    first = eval(expression, scope)
    for _ in range(4):
        a.step()
        first.step()
    state, groups = copy.deepcopy(first.state_dict()), copy.deepcopy(a.state_dict())
    b = scope["o"] = sgd(momentum=0.9)
    second = eval(expression, scope)
    b.load_state_dict(groups)
    second.load_state_dict(state)
    for _ in range(6):
        for o, s in ((a, first), (b, second)):
            o.step()
            s.step()
        assert a.param_groups[0]["lr"] == b.param_groups[0]["lr"]


@pytest.mark.parametrize(
    "make",
    [
        lambda o: L.StepLR(o, 3, 0.5),
        lambda o: L.MultiStepLR(o, [2, 5, 5], 0.1),
        lambda o: L.ConstantLR(o, 0.5, 4),
        lambda o: L.LinearLR(o, 0.1, 0.8, 6),
        lambda o: L.ExponentialLR(o, 0.9),
        lambda o: L.PolynomialLR(o, 7, 2.0),
        lambda o: L.CosineAnnealingLR(o, 5, 0.01),
    ],
)
def test_closed_form_equals_the_chain(make):
    o = sgd()
    s = make(o)
    for epoch in range(1, 7):
        o.step()
        s.step()
        assert s._get_closed_form_lr() == pytest.approx(s.get_last_lr())
    closed = sgd()
    t = make(closed)
    with pytest.warns(UserWarning, match="epoch parameter in `scheduler.step\\(\\)` was not necessary"):
        closed.step()
        t.step(6)
    assert closed.param_groups[0]["lr"] == pytest.approx(o.param_groups[0]["lr"])


def test_order_warning():
    s = L.StepLR(sgd(), 2)
    with pytest.warns(UserWarning, match="`lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        s.step()
    o = sgd()
    s = L.StepLR(o, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        o.step()
        s.step()
        s.step()
    o = sgd()
    s = L.StepLR(o, 2)
    o.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden after learning rate scheduler initialization.*how-to-adjust-learning-rate"):
        s.step()


def test_get_lr_outside_of_step_warns():
    s = L.ExponentialLR(sgd(), 0.5)
    with pytest.warns(UserWarning, match="please use `get_last_lr\\(\\)`"):
        s.get_lr()
    assert s.get_last_lr() == [0.1]


def test_lambda_for_each_group_and_its_state():
    class Halve:
        def __init__(self):
            self.base = 0.5

        def __call__(self, epoch):
            return self.base**epoch

    p, q = nn.Parameter(cresset.ones(1)), nn.Parameter(cresset.ones(1))
    o = optim.SGD([{"params": [p]}, {"params": [q], "lr": 1.0}], lr=0.1)
    s = L.LambdaLR(o, [lambda e: 1.0, Halve()])
    o.step()
    s.step()
    assert s.get_last_lr() == [0.1, 0.5]
    state = s.state_dict()
    assert state["lr_lambdas"] == [None, {"base": 0.5}] and "optimizer" not in state
    state["lr_lambdas"][1]["base"] = 0.1
    s.load_state_dict(state)
    o.step()
    s.step()
    assert s.get_last_lr() == [0.1, pytest.approx(0.01)]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        L.LambdaLR(o, [lambda e: 1.0])


@pytest.mark.parametrize("metrics", [[1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5]])
def test_reduce_on_plateau(metrics):
    o = sgd()
    s = L.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1, min_lr=0.03)
    rates = []
    for m in metrics:
        s.step(m)
        rates.append(o.param_groups[0]["lr"])
    assert rates == [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.03]
    assert s.get_last_lr() == [0.03] and s.best == 0.5
    other = L.ReduceLROnPlateau(sgd())
    other.load_state_dict(s.state_dict())
    assert other.best == 0.5 and other.patience == 1


def test_reduce_on_plateau_modes():
    for mode, threshold_mode, better, worse in (
        ("min", "rel", 0.89, 0.91), ("max", "rel", 1.11, 1.09), ("min", "abs", 0.89, 0.91), ("max", "abs", 1.11, 1.09),
    ):  # fmt: skip
        s = L.ReduceLROnPlateau(sgd(), mode, threshold=0.1, threshold_mode=threshold_mode)
        assert s._is_better(better, 1.0) and not s._is_better(worse, 1.0)
    o = sgd()
    s = L.ReduceLROnPlateau(o, patience=0)
    s.step(1.0)
    s.step(cresset.tensor(2.0))
    assert o.param_groups[0]["lr"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: L.StepLR(3, 2), TypeError, "int is not an Optimizer"),
        (lambda: L.StepLR(sgd(), 2, last_epoch=3), KeyError, "param 'initial_lr' is not specified in param_groups"),
        (lambda: L.SequentialLR(sgd(), [], []), ValueError, "expects at least one scheduler"),
        (lambda: L.ChainedScheduler([]), ValueError, "expects at least one scheduler"),
        (
            lambda: L.LinearLR(sgd(), start_factor=2),
            ValueError,
            "Starting multiplicative factor expected to be greater than 0",
        ),
        (
            lambda: L.LinearLR(sgd(), end_factor=2),
            ValueError,
            "Ending multiplicative factor expected to be between 0 and 1",
        ),
        (
            lambda: L.ConstantLR(sgd(), factor=2),
            ValueError,
            "Constant multiplicative factor expected to be between 0 and 1",
        ),
        (lambda: L.ReduceLROnPlateau(sgd(), factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda: L.ReduceLROnPlateau(sgd(), mode="x"), ValueError, "mode x is unknown"),
        (lambda: L.ReduceLROnPlateau(sgd(), threshold_mode="x"), ValueError, "threshold mode x is unknown"),
        (lambda: L.OneCycleLR(sgd(), 0.1), ValueError, r"either total_steps OR \(epochs AND steps_per_epoch\)"),
        (lambda: L.OneCycleLR(sgd(), 0.1, total_steps=-1), ValueError, "Expected positive integer total_steps"),
        (
            lambda: L.OneCycleLR(sgd(), 0.1, total_steps=5, anneal_strategy="x"),
            ValueError,
            "anneal_strategy must be one of",
        ),
        (lambda: L.CosineAnnealingWarmRestarts(sgd(), 0), ValueError, "Expected positive integer T_0"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_mixed_optimizers_are_refused():
    a, b = sgd(), sgd()
    with pytest.raises(ValueError, match=r"got scheduler StepLR at index 1 has SGD \((.|\n)*\), which is different from SGD"):
        L.SequentialLR(a, [L.StepLR(a, 1), L.StepLR(b, 1)], [2])
    with pytest.raises(ValueError, match="one more than the number of milestone"):
        L.SequentialLR(a, [L.StepLR(a, 1)], [2])


def test_one_cycle_refuses_a_step_too_many():
    o = sgd(momentum=0.9)
    s = L.OneCycleLR(o, 0.1, total_steps=2)
    with pytest.raises(ValueError, match="Tried to step 3 times. The specified number of total steps is 2"):
        for _ in range(3):
            o.step()
            s.step()


def test_rates_that_are_tensors_change_in_place():
    rate = cresset.tensor(1.0)
    o = sgd(lr=rate)
    s = L.ExponentialLR(o, 0.5)
    o.step()
    s.step()
    assert o.param_groups[0]["lr"] is rate and rate.item() == 0.5


def test_one_cycle_leaves_tensors_that_it_was_given_alone():
    top, rate = cresset.tensor(1.0), cresset.tensor(0.1)
    optimizer = cresset.optim.SGD([cresset.nn.Parameter(cresset.ones(1))], lr=rate, momentum=0.9)
    schedule = L.OneCycleLR(optimizer, max_lr=top, total_steps=5)
    group = optimizer.param_groups[0]
    assert group["max_lr"] is not top and group["lr"] is rate
    top.fill_(7.0)
    rates = []
    for _ in range(4):
        optimizer.step()
        schedule.step()
        rates.append(rate.item())
    assert rates == pytest.approx([0.95048, 0.61126, 0.18826, 4e-6], abs=1e-5)


def test_the_function_of_a_cycle_is_known_by_its_mode():
    def made(**options):
        return cresset.optim.lr_scheduler.CyclicLR(cresset.optim.SGD([cresset.ones(1, requires_grad=True)], lr=0.1), 0.1, 1, cycle_momentum=False, **options)

    assert made()._scale_fn_ref(3) == 1.0 and made(mode="triangular2")._scale_fn_ref(3) == 0.25
    assert made(mode="exp_range", gamma=0.5)._scale_fn_ref(3) == made(mode="exp_range", gamma=0.5).scale_fn(3) == 0.125
    own = made(scale_fn=lambda x: 0.5)
    assert not hasattr(own, "_scale_fn_ref") and own.scale_fn(3) == 0.5  # as in PyTorch 2.13
    restored = made()
    restored.load_state_dict(made(mode="triangular2").state_dict())
    assert "_scale_fn_ref" not in restored.state_dict() and restored._scale_fn_ref(3) == 0.25


def test_a_step_of_the_optimizer_counts_for_schedules_that_are_made_later():
    optimizer = optim.SGD([nn.Parameter(cresset.ones(1))], lr=1.0)
    first = L.StepLR(optimizer, 1)
    optimizer.step()
    first.step()
    later = L.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        later.step()
    unseen = optim.SGD([nn.Parameter(cresset.ones(1))], lr=1.0)
    unseen.step()  # before there is a schedule
    schedule = L.StepLR(unseen, 1)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        schedule.step()


def test_the_height_of_a_cycle_is_rounded_before_it_is_scaled():
    optimizer = optim.SGD([nn.Parameter(cresset.ones(1))], lr=1.0, momentum=0.9)
    schedule = L.CyclicLR(optimizer, 0.1, 1.0, 3, 4, mode="exp_range", gamma=0.9)
    rates = []
    for _ in range(5):
        optimizer.step()
        schedule.step()
        rates += schedule.get_last_lr()
    assert rates == [0.3699999999999999, 0.5859999999999999, 0.7561000000000001, 0.5428675000000002, 0.3657204999999999]  # PyTorch's
