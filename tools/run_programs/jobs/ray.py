import os
import tempfile

import ray
import ray.train
import torch
from answers import show
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model


def loop(config):
    torch.manual_seed(0)
    x = torch.arange(64.0).reshape(16, 4).sin()
    y = x @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]])
    loader = prepare_data_loader(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4))
    model = torch.nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    model = prepare_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(config["epochs"]):
        for a, b in loader:
            loss = torch.nn.functional.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total = loss.detach().clone()
        torch.distributed.all_reduce(total)
        with tempfile.TemporaryDirectory() as folder:
            first = torch.distributed.get_rank() == 0
            if first:
                torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
            ray.train.report({"loss": total.item(), "ranks": torch.distributed.get_world_size()}, checkpoint=Checkpoint.from_directory(folder) if first else None)


ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
with tempfile.TemporaryDirectory() as storage:
    trainer = TorchTrainer(loop, train_loop_config={"epochs": 2}, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(storage_path=storage))
    result = trainer.fit()
    show("metrics", [result.metrics["loss"], result.metrics["ranks"]])
    with result.checkpoint.as_directory() as folder:
        show("weights", list(torch.load(os.path.join(folder, "model.pt")).values()))
ray.shutdown()
