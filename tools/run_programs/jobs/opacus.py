import torch
from answers import show
from opacus import GradSampleModule, PrivacyEngine
from opacus.validators import ModuleValidator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3))
opt = torch.optim.SGD(m.parameters(), 0.1)
ds = TensorDataset(torch.randn(32, 1, 6, 6), torch.randint(0, 3, (32,)))
pe = PrivacyEngine(accountant="rdp")
m, opt, dl = pe.make_private(module=m, optimizer=opt, data_loader=DataLoader(ds, batch_size=8), noise_multiplier=1.0, max_grad_norm=1.0)
for x, y in dl:
    opt.zero_grad()
    nn.functional.cross_entropy(m(x), y).backward()
    opt.step()
show("w", list(m.parameters()))
show("eps", pe.get_epsilon(1e-5))
from opacus.layers import DPLSTM, DPMultiheadAttention

for l, i in (
    (DPLSTM(3, 4, batch_first=True), (torch.randn(2, 5, 3),)),
    (nn.Embedding(5, 3), (torch.randint(0, 5, (2, 4)),)),
    (nn.LayerNorm(3), (torch.randn(2, 4, 3),)),
    (DPMultiheadAttention(4, 2), (torch.randn(3, 2, 4),) * 3),
):
    g = GradSampleModule(l, batch_first=not isinstance(l, DPMultiheadAttention))
    o = g(*i)
    (o[0] if isinstance(o, tuple) else o).square().sum().backward()
    show(type(l).__name__, [p.grad_sample for p in g.parameters()])
show("fix", str(ModuleValidator.fix(nn.Sequential(nn.BatchNorm2d(4), nn.LSTM(3, 4)))))
gs = GradSampleModule(nn.Linear(3, 2), force_functorch=True)
gs(torch.randn(4, 3)).sum().backward()
show("ft", [p.grad_sample for p in gs.parameters()])
