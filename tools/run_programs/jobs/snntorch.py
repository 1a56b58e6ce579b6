import torch
from answers import show
from torch import nn


def train(m, call, steps=3, opt=None, p=None):
    opt = opt or torch.optim.Adam(m.parameters(), 1e-2)
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        l = call()
        l.backward()
        opt.step()
        losses.append(l.detach())
    show("losses", losses)
    sd = m.state_dict()
    show("keys", list(sd)[:20])
    import io

    f = io.BytesIO()
    torch.save(sd, f)
    f.seek(0)
    show("loaded", str(m.load_state_dict(torch.load(f, weights_only=True))))
    return m


import snntorch as snn
from snntorch import functional as SF
from snntorch import spikegen, surrogate, utils

for L in (
    snn.Leaky(beta=0.9, spike_grad=surrogate.atan(), init_hidden=False),
    snn.Synaptic(alpha=0.8, beta=0.9),
    snn.Lapicque(beta=0.9),
    snn.RLeaky(beta=0.9, linear_features=4),
    snn.Alpha(alpha=0.9, beta=0.8),
    snn.LeakyParallel(4, 4) if hasattr(snn, "LeakyParallel") else snn.Leaky(0.5),
):
    torch.manual_seed(0)
    x = torch.rand(5, 3, 4, requires_grad=True)
    if "Parallel" in type(L).__name__:
        o = L(x)
        o.sum().backward()
        show("par", [o, x.grad])
        continue
    st = L.reset_mem()
    st = st if isinstance(st, tuple) else (st,)
    sp = []
    for t in range(5):
        r = L(x[t] * 2, *st)
        st = r if type(L).__name__ == "RLeaky" else r[1:]
        sp.append(r[0])
    o = torch.stack(sp)
    o.sum().backward()
    show(type(L).__name__, [o, x.grad])
n = nn.Sequential(nn.Linear(4, 8), snn.Leaky(beta=0.9, init_hidden=True), nn.Linear(8, 3), snn.Leaky(beta=0.9, init_hidden=True, output=True))


def loss():
    utils.reset(n)
    s = torch.stack([n(x[t].detach())[0] for t in range(5)])
    return SF.ce_rate_loss()(s, torch.tensor([0, 1, 2]))


train(n, loss)
show("rate", spikegen.rate(torch.rand(3, 4), num_steps=5))
show("lat", spikegen.latency(torch.rand(3, 4), num_steps=5, normalize=True, linear=True))
show("acc", SF.accuracy_rate(torch.rand(5, 3, 3), torch.tensor([0, 1, 2])))
