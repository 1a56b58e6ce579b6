"""Optimisers and schedules whose courses are recorded; shared by the recorder and the tests."""

import math

OPTIMIZERS = [
    "SGD(ps, lr=0.1)", "SGD(ps, lr=0.1, momentum=0.9)", "SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)",
    "SGD(ps, 0.01, 0.9, 0.5, maximize=True)", "SGD([{'params': ps[:1], 'lr': 0.5}, {'params': ps[1:]}], lr=0.1)",
    "Adam(ps)", "Adam(ps, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=True)", "Adam(ps, maximize=True)",
    "AdamW(ps, lr=0.05)", "AdamW(ps, lr=0.05, amsgrad=True)", "RMSprop(ps)",
    "RMSprop(ps, centered=True, momentum=0.9, weight_decay=0.1)", "Adagrad(ps, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.3)",
    "Adadelta(ps)", "Adadelta(ps, rho=0.8, weight_decay=0.1, maximize=True)", "Adamax(ps, lr=0.1)", "Adamax(ps, weight_decay=0.1, maximize=True)",
    "NAdam(ps, lr=0.1)", "NAdam(ps, weight_decay=0.1, momentum_decay=0.1)", "NAdam(ps, weight_decay=0.1, decoupled_weight_decay=True)",
    "RAdam(ps, lr=0.1)", "RAdam(ps, weight_decay=0.1, decoupled_weight_decay=True, betas=(0.8, 0.9))", "Rprop(ps)",
    "Rprop(ps, etas=(0.3, 1.5), step_sizes=(1e-3, 0.1))", "ASGD(ps)", "ASGD(ps, t0=2, lambd=0.1, weight_decay=0.1)", "Adafactor(ps)",
    "Adafactor(ps, weight_decay=0.1, d=1.5, eps=(1e-4, 1e-2))",
]  # fmt: skip

SCHEDULES = [
    "L.StepLR(o, 3, 0.5)", "L.MultiStepLR(o, [2, 5, 5, 9], 0.1)", "L.LambdaLR(o, lambda e: 0.9**e)",
    "L.MultiplicativeLR(o, lambda e: 0.9)", "L.ConstantLR(o, 0.5, 4)", "L.LinearLR(o, 0.1, 0.8, 6)", "L.ExponentialLR(o, 0.9)",
    "L.PolynomialLR(o, 7, 2.0)", "L.CosineAnnealingLR(o, 5, 0.01)", "L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)",
    "L.OneCycleLR(o, 0.5, total_steps=20)",
    "L.OneCycleLR(o, [0.5], epochs=4, steps_per_epoch=5, anneal_strategy='linear', three_phase=True)",
    "L.SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=3), L.CosineAnnealingLR(o, 10), L.ExponentialLR(o, 0.5)], [3, 8])",
    "L.ChainedScheduler([L.ConstantLR(o, 0.1, 4), L.ExponentialLR(o, 0.9)])",
    "L.CyclicLR(o, 0.01, 0.1, step_size_up=4)", "L.CyclicLR(o, [0.02], [0.3], step_size_up=3, step_size_down=5, mode='triangular2')",
    "L.CyclicLR(o, 0.01, 0.1, step_size_up=4, mode='exp_range', gamma=0.9, cycle_momentum=False)",
    "L.CyclicLR(o, 0.01, 0.1, step_size_up=4, scale_fn=lambda x: 1 / (x + 1), scale_mode='iterations')", "S.SWALR(o, 0.02, anneal_epochs=6)",
    "S.SWALR(o, [0.02], anneal_epochs=4, anneal_strategy='linear')", "S.SWALR(o, 0.02, anneal_epochs=0)",
]

# Course of the losses of LBFGS, which calls its closure as often as it wants.
CLOSURES = ["LBFGS(ps)", "LBFGS(ps, lr=0.5, max_iter=7, history_size=3)", "LBFGS(ps, line_search_fn='strong_wolfe', max_iter=6)"]  # fmt: skip


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


def train_with_closure(lib, expression, steps=3):
    """Losses that three steps return, and the final parameters."""
    ps = parameters(lib)
    optimizer = eval(expression, vars(lib.optim), {"ps": ps})

    def closure():
        optimizer.zero_grad()
        value = loss(lib, ps)
        value.backward()
        return value

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return [losses, ps[0].detach().reshape(-1).tolist(), ps[1].tolist()]


def schedule(lib, expression, steps=15):
    """(rate, momentum) at the start and after each step."""
    o = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1, momentum=0.9)
    scheduler = eval(expression, {"o": o, "L": lib.optim.lr_scheduler, "S": lib.optim.swa_utils})
    course = [[o.param_groups[0]["lr"], o.param_groups[0]["momentum"]]]
    for _ in range(steps):
        o.step()
        scheduler.step()
        course.append([o.param_groups[0]["lr"], o.param_groups[0]["momentum"]])
    return course
