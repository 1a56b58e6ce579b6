"""Peak memory of one training step. Run with the module to measure: `memory.py cresset` or `memory.py torch`.

Prints one JSON object: MiB of resident memory above what parameters and data take, at the peak of forward and of backward of a
multilayer perceptron with 12 layers (4 MiB of weights each, activations of 8 MiB).
"""

import gc
import importlib
import json
import pathlib
import sys

T = importlib.import_module(sys.argv[1])
nn = importlib.import_module(f"{sys.argv[1]}.nn")
T.set_num_threads(1)
LAYERS, WIDTH, BATCH = 12, 1024, 2048


def resident(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def peak_of(step):
    """(what step() gives, MiB at its peak): the kernel's mark is put back first."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    result = step()
    return result, resident("VmHWM")


model = nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())))
x = T.randn(BATCH, WIDTH)
model(x[:2]).sum().backward()  # libraries are loaded and threads made
model.zero_grad()
gc.collect()
before = resident("VmRSS")
loss, forward = peak_of(lambda: model(x).pow(2).mean())
_, backward = peak_of(loss.backward)
print(json.dumps({"mlp forward": forward - before, "mlp backward": backward - before}))
