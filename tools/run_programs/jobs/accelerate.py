from answers import show
import tempfile

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

set_seed(4)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8, shuffle=True)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
losses = []
for _ in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = (model(x) - y).square().mean()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss))
show("losses", losses)
show("reduced", accelerator.reduce(torch.arange(3.0), "mean"))
with tempfile.TemporaryDirectory() as place:
    accelerator.save_state(place)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    accelerator.load_state(place)
    accelerator.save_model(model, place)
    with init_empty_weights():
        empty = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    show("meta", [str(p.device) for p in empty.parameters()])
    empty = load_checkpoint_and_dispatch(empty, f"{place}/model.safetensors", device_map={"": "cpu"})
show("weights", [list(model.parameters()), empty(torch.ones(1, 4))])
