"""What recording costs, and what looking at it costs. Run with the module to measure: `cases.py cresset` or `cases.py torch`.

Prints one JSON object: nanoseconds of processor time an event that a session adds, by option, and nanoseconds an event of making a table.
"""

import importlib
import json
import sys
import time

NAME = sys.argv[1]
T = importlib.import_module(NAME)
profile = importlib.import_module(f"{NAME}.autograd.profiler").profile
T.set_num_threads(1)

N = 4000
x, y = T.ones(1), T.ones(1)
w = T.ones(8, requires_grad=True)


def adds():
    for _ in range(N):
        x + y


def steps():
    for _ in range(N // 20):
        ((w * w).exp().tanh() * w).sum().backward()


def nanoseconds(body, repetitions=5):
    best = float("inf")
    for _ in range(repetitions):
        start = time.process_time_ns()
        body()
        best = min(best, time.process_time_ns() - start)
    return best


def cost(body, **options):
    """Nanoseconds an event that recording adds to `body`: best with, less best without."""
    plain, recorded, events = nanoseconds(body), float("inf"), 0
    for _ in range(5):
        with profile(**options) as p:
            start = time.process_time_ns()
            body()
            recorded = min(recorded, time.process_time_ns() - start)
        events = len(p.function_events)
    return (recorded - plain) / events


def table_cost():
    with profile() as p:
        adds()
    start = time.process_time_ns()
    p.key_averages().table()
    return (time.process_time_ns() - start) / N


adds(), steps()
print(
    json.dumps(
        {
            "add": cost(adds),
            "add, shapes": cost(adds, record_shapes=True),
            "add, memory": cost(adds, profile_memory=True),
            "add, stack": cost(adds, with_stack=True),
            "training step": cost(steps),
            "events and table": table_cost(),
        }
    )
)
