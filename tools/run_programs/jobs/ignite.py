from answers import show
import torch
import torch.nn.functional as F
from torch import nn
from ignite.engine import Events, create_supervised_trainer, create_supervised_evaluator
from ignite.metrics import Accuracy, Loss, Precision, Recall, ConfusionMatrix, RunningAverage
from ignite.handlers import ModelCheckpoint, CosineAnnealingScheduler, EMAHandler
import tempfile

net = nn.Linear(4, 3)
data = [(torch.randn(6, 4), torch.randint(0, 3, (6,))) for _ in range(4)]
opt = torch.optim.SGD(net.parameters(), 0.1)
tr = create_supervised_trainer(net, opt, F.cross_entropy)
ev = create_supervised_evaluator(
    net,
    metrics={
        "a": Accuracy(),
        "l": Loss(F.cross_entropy),
        "p": Precision(average=True),
        "r": Recall(average=False),
        "cm": ConfusionMatrix(3),
    },
)
RunningAverage(output_transform=lambda x: x).attach(tr, "avg")
d = tempfile.mkdtemp()
tr.add_event_handler(Events.EPOCH_COMPLETED, ModelCheckpoint(d, "m", n_saved=1, require_empty=False), {"net": net})
tr.add_event_handler(Events.ITERATION_STARTED, CosineAnnealingScheduler(opt, "lr", 0.1, 0.01, 8))
EMAHandler(net).attach(tr)


@tr.on(Events.EPOCH_COMPLETED)
def f(e):
    ev.run(data)


tr.run(data, max_epochs=3)
show(
    "m",
    [
        ev.state.metrics["a"],
        ev.state.metrics["l"],
        float(ev.state.metrics["p"]),
        ev.state.metrics["r"],
        ev.state.metrics["cm"].float(),
        float(tr.state.metrics["avg"]),
    ],
)
import os

show("files", sorted(os.listdir(d)))
