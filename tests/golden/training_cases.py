"""Optimisers and schedules whose courses are recorded; shared by the recorder and the tests."""

import math

OPTIMIZERS = [
    "SGD(ps, lr=0.1)", "SGD(ps, lr=0.1, momentum=0.9)", "SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)",
    "SGD(ps, 0.01, 0.9, 0.5, maximize=True)", "SGD([{'params': ps[:1], 'lr': 0.5}, {'params': ps[1:]}], lr=0.1)",
    "Adam(ps)", "Adam(ps, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=True)", "Adam(ps, maximize=True)",
    "AdamW(ps, lr=0.05)", "AdamW(ps, lr=0.05, amsgrad=True)", "RMSprop(ps)",
    "RMSprop(ps, centered=True, momentum=0.9, weight_decay=0.1)", "Adagrad(ps, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.3)",
]  # fmt: skip

SCHEDULES = [
    "L.StepLR(o, 3, 0.5)", "L.MultiStepLR(o, [2, 5, 5, 9], 0.1)", "L.LambdaLR(o, lambda e: 0.9**e)",
    "L.MultiplicativeLR(o, lambda e: 0.9)", "L.ConstantLR(o, 0.5, 4)", "L.LinearLR(o, 0.1, 0.8, 6)", "L.ExponentialLR(o, 0.9)",
    "L.PolynomialLR(o, 7, 2.0)", "L.CosineAnnealingLR(o, 5, 0.01)", "L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)",
    "L.OneCycleLR(o, 0.5, total_steps=20)",
    "L.OneCycleLR(o, [0.5], epochs=4, steps_per_epoch=5, anneal_strategy='linear', three_phase=True)",
    "L.SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=3), L.CosineAnnealingLR(o, 10), L.ExponentialLR(o, 0.5)], [3, 8])",
    "L.ChainedScheduler([L.ConstantLR(o, 0.1, 4), L.ExponentialLR(o, 0.9)])",
]  # fmt: skip


def wave(lib, shape, step):
    n = math.prod(shape)
    return lib.tensor([math.sin(step * i + 0.5) for i in range(n)], dtype=lib.float64).reshape(shape)


def parameters(lib):
    return [lib.nn.Parameter(wave(lib, (4, 3), 0.7)), lib.nn.Parameter(wave(lib, (3,), 1.1))]


def loss(lib, ps):
    x, y = wave(lib, (5, 4), 0.3), wave(lib, (5, 3), 0.9)
    return (((x @ ps[0]).tanh() + ps[1] - y) ** 2).mean()


def train(lib, expression, steps=6):
    """Losses before each step, and the final parameters."""
    ps = parameters(lib)
    optimizer = eval(expression, vars(lib.optim), {"ps": ps})
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(lib, ps)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return [losses, ps[0].detach().reshape(-1).tolist(), ps[1].tolist()]


def schedule(lib, expression, steps=15):
    """(rate, momentum) at the start and after each step."""
    o = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1, momentum=0.9)
    scheduler = eval(expression, {"o": o, "L": lib.optim.lr_scheduler})
    course = [[o.param_groups[0]["lr"], o.param_groups[0]["momentum"]]]
    for _ in range(steps):
        o.step()
        scheduler.step()
        course.append([o.param_groups[0]["lr"], o.param_groups[0]["momentum"]])
    return course
