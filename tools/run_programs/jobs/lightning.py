from answers import show
import tempfile

import lightning as L
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.body(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val", torch.nn.functional.mse_loss(self.body(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


L.seed_everything(1)
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
model = Net()
with tempfile.TemporaryDirectory() as place:
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=place, gradient_clip_val=0.5
    )
    trainer.fit(model, DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=16))
    show("metrics", {k: v for k, v in sorted(trainer.callback_metrics.items())})
    trainer.save_checkpoint(f"{place}/last.ckpt")
    again = Net.load_from_checkpoint(f"{place}/last.ckpt")
show("weights", [list(model.parameters()), all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters()))])

fabric = Fabric(accelerator="cpu", devices=1)
fabric.launch()
fabric.seed_everything(2)
net = torch.nn.Linear(4, 1)
net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
loader = fabric.setup_dataloaders(DataLoader(data, batch_size=8))
losses = []
for x, y in loader:
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean()
    fabric.backward(loss)
    optimizer.step()
    losses.append(loss)
show("fabric", losses)
