"""Runs one of the model benchmarks: `cases.py MODULE THREADS NAME [CLOCK]` with MODULE cresset or torch, CLOCK wall or cpu; prints one JSON object:
"s" seconds a step (median), "system" the kernel's share of the processor time, "peak" MiB of memory that the steps added, "check" the
mean of the first result's magnitudes, which must be the same in both. `cases.py --list` prints the names.
"""

import contextlib
import copy
import importlib
import json
import resource
import statistics
import sys
import time

from networks import networks_of

SECONDS, STEPS = 4.0, 200  # as many steps as fit, three at least


def image(T, batch=1, size=224):
    return T.randn(batch, 3, size, size)


def inference(make, example, channels_last=False, bfloat16=False):
    def build(T, N):
        model, x = make(N).eval(), example(T)
        if channels_last:
            model, x = model.to(memory_format=T.channels_last), x.contiguous(memory_format=T.channels_last)

        def step():
            with T.no_grad(), T.autocast("cpu", T.bfloat16) if bfloat16 else contextlib.nullcontext():
                return model(x)

        return step

    return build


def training(make, example, classes, optimizer=lambda T, p: T.optim.SGD(p, 0.01, momentum=0.9), bfloat16=False):
    """A step on random labels: `classes` is the size of dimension 1 of the results, or of the last one where there are three."""

    def build(T, N):
        model, x = make(N), example(T)
        opt = optimizer(T, model.parameters())
        with T.no_grad():
            shape = copy.deepcopy(model)(x).shape
        last = len(shape) == 3
        labels = T.randint(0, classes, shape[:2] if last else (shape[0], *shape[2:]))

        def step():
            opt.zero_grad()
            with T.autocast("cpu", T.bfloat16) if bfloat16 else contextlib.nullcontext():
                out = model(x)
                loss = T.nn.functional.cross_entropy(out.flatten(0, 1) if last else out, labels.flatten() if last else labels)
            loss.backward()
            opt.step()
            return loss

        return step

    return build


def decoding(T, N):
    """16 tokens behind a prompt of 64, one at a time, with the keys and values of those before kept."""
    model, prompt = N.GPT().eval(), T.randint(0, 50257, (1, 64))

    def step():
        with T.no_grad():
            caches, ids = [[] for _ in model.blocks], prompt
            for past in (0, *range(64, 79)):
                logits = model(ids, caches, past)
                ids = logits.argmax(-1)
        return logits

    return step


def dqn(T, N):
    """Double networks, a batch of 128 transitions, a soft update of the target (PyTorch's tutorial on DQN)."""
    policy, target = N.mlp(4, 128, 128, 2), N.mlp(4, 128, 128, 2)
    target.load_state_dict(policy.state_dict())
    opt = T.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True)
    state, following, reward, action = T.randn(128, 4), T.randn(128, 4), T.randn(128), T.randint(0, 2, (128, 1))

    def step():
        value = policy(state).gather(1, action)
        with T.no_grad():
            expected = target(following).max(1).values * 0.99 + reward
        loss = T.nn.functional.smooth_l1_loss(value, expected.unsqueeze(1))
        opt.zero_grad()
        loss.backward()
        T.nn.utils.clip_grad_value_(policy.parameters(), 100)
        opt.step()
        with T.no_grad():
            for old, new in zip(target.parameters(), policy.parameters()):
                old.lerp_(new, 0.005)
        return loss

    return step


def resnet18(N):
    return N.ResNet([2, 2, 2, 2], 1)


def resnet50(N):
    return N.ResNet([3, 4, 6, 3], 4)


def tiny_gpt(N):
    return N.GPT(vocabulary=65, context=64, width=128, depth=4, heads=4)


def adamw(T, parameters):
    return T.optim.AdamW(parameters, lr=1e-3)


CASES = {
    "ResNet-18, batch 1": inference(resnet18, image),
    "ResNet-18, batch 8": inference(resnet18, lambda T: image(T, 8)),
    "ResNet-18, batch 8, training": training(resnet18, lambda T: image(T, 8), 1000),
    "ResNet-50, batch 1": inference(resnet50, image),
    "ResNet-50, batch 1, channels_last": inference(resnet50, image, channels_last=True),
    "ResNet-50, batch 1, bfloat16": inference(resnet50, image, bfloat16=True),
    "ResNet-50, batch 8": inference(resnet50, lambda T: image(T, 8)),
    "ResNet-50, batch 4, training": training(resnet50, lambda T: image(T, 4), 1000),
    "MobileNetV3-large, batch 1": inference(lambda N: N.MobileNetV3(), image),
    "ViT-B/16, batch 1": inference(lambda N: N.ViT(), image),
    "BERT-base, 128 tokens": inference(lambda N: N.Bert(), lambda T: T.randint(0, 30522, (1, 128))),
    "BERT-base, 128 tokens, bfloat16": inference(lambda N: N.Bert(), lambda T: T.randint(0, 30522, (1, 128)), bfloat16=True),
    "GPT-2 small, prompt of 128": inference(lambda N: N.GPT(), lambda T: T.randint(0, 50257, (1, 128))),
    "GPT-2 small, 16 tokens with cache": decoding,
    "LSTM 2x200, training": training(lambda N: N.LanguageLSTM(200), lambda T: T.randint(0, 10000, (35, 20)), 10000),
    "LSTM 2x650, training": training(lambda N: N.LanguageLSTM(650), lambda T: T.randint(0, 10000, (35, 20)), 10000),
    "U-Net 128x128": inference(lambda N: N.UNet(), lambda T: image(T, 1, 128)),
    "U-Net 128x128, training": training(lambda N: N.UNet(), lambda T: image(T, 2, 128), 2),
    "MLP 784-512-512-10, batch 64, training": training(lambda N: N.mlp(784, 512, 512, 10), lambda T: T.randn(64, 784), 10),
    "MLP 32-64-64-10, batch 64, training": training(lambda N: N.mlp(32, 64, 64, 10), lambda T: T.randn(64, 32), 10),
    "tiny GPT (4x128, context 64), training": training(tiny_gpt, lambda T: T.randint(0, 65, (12, 64)), 65, adamw),
    "DQN step": dqn,
}


def run(module: str, threads: int, name: str, clock) -> dict:
    T = importlib.import_module(module)
    T.set_num_threads(threads)
    T.manual_seed(0)
    step = CASES[name](T, networks_of(T))
    before = resource.getrusage(resource.RUSAGE_SELF)
    check = step().detach().float().abs().mean().item()
    step()
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < SECONDS and len(times) < STEPS):
        at = clock()
        step()
        times.append(clock() - at)
    after = resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return {"s": statistics.median(times), "system": system / (user + system), "peak": (after.ru_maxrss - before.ru_maxrss) / 1024, "check": check}


def main() -> None:
    if sys.argv[1] == "--list":
        print(json.dumps(list(CASES)))
        return
    clock = time.process_time if sys.argv[4:5] == ["cpu"] else time.perf_counter
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), sys.argv[3], clock)))


if __name__ == "__main__":
    main()
