"""Fused optimiser steps against their formulas in NumPy double precision."""

import itertools

import cresset
import numpy as np
import pytest

ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
SGD = {"lr": 0.1, "momentum": 0.0, "weight_decay": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False, "is_first_step": False}
ADAGRAD = {"lr": 0.1, "lr_decay": 0.0, "weight_decay": 0.0, "eps": 1e-10, "maximize": False}


def adam(decoupled):
    def step(p, g, m, v, x, count, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize):
        g = -g if maximize else g
        if decoupled:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        x = np.maximum(x, v)
        root = np.sqrt(x if amsgrad else v) / np.sqrt(1 - beta2**count)
        return p - lr / (1 - beta1**count) * m / (root + eps), m, v, x

    return step


def sgd(p, g, b, count, *, lr, momentum, weight_decay, dampening, nesterov, maximize, is_first_step):
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        b = g if is_first_step else momentum * b + (1 - dampening) * g
        g = g + momentum * b if nesterov else b
    return p - lr * g, b


def adagrad(p, g, s, count, *, lr, lr_decay, weight_decay, eps, maximize):
    g = (-g if maximize else g) + weight_decay * p
    s = s + g * g
    return p - lr / (1 + (count - 1) * lr_decay) * g / (np.sqrt(s) + eps), s


# name: formula, defaults, number of state lists, are there steps, options to combine
STEPS = {
    "adam": (adam(False), ADAM, 3, True, [("weight_decay", 0.1), ("amsgrad", True), ("maximize", True)]),
    "adamw": (adam(True), ADAM, 3, True, [("weight_decay", 0.1), ("amsgrad", True), ("maximize", True)]),
    "sgd": (sgd, SGD, 1, False, [("momentum", 0.9), ("weight_decay", 0.1), ("dampening", 0.5), ("nesterov", True), ("maximize", True), ("is_first_step", True)]),
    "adagrad": (adagrad, ADAGRAD, 1, True, [("lr_decay", 0.5), ("weight_decay", 0.1), ("maximize", True)]),
}
CASES = [
    (name, dict(chosen))
    for name, (_, _, _, _, options) in STEPS.items()
    for count in range(len(options) + 1)
    for chosen in itertools.combinations(options, count)
]
SHAPES = [(3,), (2, 5), (0,), (), (40, 501)]


def lists(name, make=lambda a: cresset.from_numpy(a.copy())):
    """Parameters, gradients and states as arrays, and the same as tensors."""
    rng = np.random.default_rng(3)
    arrays = [[np.array(rng.normal(size=shape)) for shape in SHAPES] for _ in range(2 + STEPS[name][2])]
    arrays[2:] = [[np.array(np.abs(a)) for a in state] for state in arrays[2:]]
    return arrays, [[make(a).reshape(a.shape) for a in each] for each in arrays]


def call(name, tensors, counts, **options):
    steps = [[cresset.tensor(float(c)) for c in counts]] if STEPS[name][3] else []
    options = STEPS[name][1] | options
    if options.get("momentum") == 0:
        tensors = [*tensors[:2], []]
    return getattr(cresset, f"_fused_{name}_")(*tensors, *steps, **options)


@pytest.mark.parametrize("name, options", CASES, ids=lambda x: x if isinstance(x, str) else "-".join(x) or "plain")
def test_formula(name, options):
    formula, defaults = STEPS[name][:2]
    arrays, tensors = lists(name)
    counts = range(1, len(SHAPES) + 1)
    assert call(name, tensors, counts, **options) is None
    for i, count in enumerate(counts):
        p, g, *state = (each[i] for each in arrays)
        want = formula(p, g, *state, count, **(defaults | options))
        have = [tensors[0][i], *(each[i] for each in tensors[2:])]
        for n, (h, w) in enumerate(zip(have, want)):
            if not (n == 3 and not options.get("amsgrad")):
                np.testing.assert_allclose(h.numpy(), w, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(tensors[1][i].numpy(), g)


@pytest.mark.parametrize("name", STEPS)
def test_scaled_gradients(name):
    """grad_scale divides the gradients, also where they are kept; found_inf stops the step."""
    arrays, tensors = lists(name)
    _, plain = lists(name)
    counts = [2] * len(SHAPES)
    before = [t.clone() for each in tensors for t in each]
    call(name, tensors, counts, grad_scale=cresset.tensor(4.0), found_inf=cresset.tensor(1.0))
    assert all(cresset.equal(a, b) for a, b in zip(before, (t for each in tensors for t in each)))
    call(name, tensors, counts, grad_scale=cresset.tensor(4.0), found_inf=cresset.tensor(0.0))
    for grad in plain[1]:
        grad.div_(4)
    call(name, plain, counts)
    for have, want in zip((t for each in tensors for t in each), (t for each in plain for t in each)):
        np.testing.assert_array_equal(have.numpy(), want.numpy())


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("layout", ["permuted", "holes", "half", "bfloat16", "float32"])
def test_layouts_and_types(name, layout):
    """Strides that differ between a parameter and its states, memory with holes, and half types."""

    def make(a):
        t = cresset.from_numpy(a.copy()).reshape(a.shape)
        if layout == "permuted" and t.dim() == 2 and a.shape[0] == 2:
            return t.t().contiguous().t()
        if layout == "holes":
            return cresset.stack([t, t], -1)[..., 0]
        return t.to(getattr(cresset, layout)) if hasattr(cresset, layout) and layout not in ("permuted", "holes") else t

    arrays, tensors = lists(name, make)
    if layout == "permuted":
        tensors[0] = [t.contiguous() for t in tensors[0]]
    _, want = lists(name)
    versions = [t._version for t in tensors[0]]
    for each in (tensors, want):
        call(name, each, [3] * len(SHAPES), weight_decay=0.1)
    tolerance = {"half": 5e-3, "bfloat16": 4e-2, "float32": 1e-5}.get(layout, 1e-13)
    for have, exact in zip(tensors[0], want[0]):
        np.testing.assert_allclose(have.double().numpy(), exact.numpy(), rtol=tolerance, atol=tolerance)
    assert [t._version - v for t, v in zip(tensors[0], versions)] == [1] * len(SHAPES)


@pytest.mark.parametrize("name", STEPS)
def test_tensor_lr_and_copies(name):
    _, tensors = lists(name)
    _, want = lists(name)
    steps = [[cresset.tensor(2.0) for _ in SHAPES]] if STEPS[name][3] else []
    momentum = {"momentum": 0.9} if name == "sgd" else {}  # without it there are no buffers
    options = STEPS[name][1] | {"lr": cresset.tensor(0.1, dtype=cresset.float64)} | momentum
    results = getattr(cresset.ops.aten, f"_fused_{name}").tensor_lr(*tensors, *steps, **options)
    assert all(cresset.equal(a, b) for each, other in zip(tensors, want) for a, b in zip(each, other))
    call(name, want, [2] * len(SHAPES), **momentum)
    getattr(cresset, f"_fused_{name}_")(*tensors, *steps, **options)
    for have, copies, expected in zip(tensors, results, want):
        assert all(cresset.equal(a, b) and cresset.equal(a, c) for a, b, c in zip(have, expected, copies, strict=True))


def adam_call(*tensors, **options):
    cresset._fused_adam_(*tensors, **(ADAM | options))


def ones(*shape, dtype=cresset.float32):
    return [cresset.ones(*shape, dtype=dtype)]


STEP = [cresset.tensor(1.0)]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: adam_call(ones(2), ones(3), ones(2), ones(2), [], STEP), RuntimeError, r"grads\[0\] must have the size of its parameter"),
        (lambda: adam_call(ones(2), [], ones(2), ones(2), [], STEP), RuntimeError, r"Expected grads.size\(\) == n_tensors to be true"),
        (lambda: adam_call(ones(2), ones(2), ones(2), ones(2), [], []), RuntimeError, r"Expected state_steps.size\(\) == n_tensors"),
        (lambda: adam_call(ones(2), ones(2), ones(2), ones(2), [], STEP, amsgrad=True), RuntimeError, r"max_exp_avg_sqs.size\(\) == n_tensors"),
        (lambda: adam_call(ones(2), ones(2, dtype=cresset.float64), ones(2), ones(2), [], STEP), RuntimeError, "expected scalar type Float but found Double"),
        (lambda: adam_call(ones(2), ones(2), ones(2), ones(2), [], [cresset.ones(2)]), RuntimeError, "must have one element"),
        (lambda: adam_call(*[ones(2, dtype=cresset.int64)] * 4, [], STEP), NotImplementedError, "not implemented for 'Long'"),
        (lambda: cresset._fused_sgd_(ones(2), ones(2), ones(3), **(SGD | {"momentum": 0.9})), RuntimeError, "momentum_buffer_list"),
        (lambda: cresset._fused_adagrad_(ones(2), ones(2), ones(1), STEP, **ADAGRAD), RuntimeError, "state_sums"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_no_parameters_and_a_rate_in_a_tensor():
    assert cresset.ops.aten._fused_adam_.tensor_lr([], [], [], [], [], [], **(ADAM | {"lr": cresset.tensor(0.1)})) is None
