import pypose as pp
import torch
from answers import show
from torch import nn

x = pp.randn_SE3(2, 3)
show(
    "x",
    [
        x.tensor(),
        x.Inv().tensor(),
        x.Log().tensor(),
        x.matrix(),
        (x @ x).tensor(),
        x.Act(torch.ones(3)),
        str(x),
        x.Adj(pp.randn_se3(2, 3)).tensor(),
        x.rotation().tensor(),
        x.translation(),
    ],
)
r = pp.randn_so3(4, requires_grad=True)
r.Exp().matrix().sum().backward()
show("g", r.grad)
for t in ("SO3", "Sim3", "RxSO3"):
    y = getattr(pp, "randn_" + t)(3)
    show(t, [y.tensor(), y.Log().tensor(), pp.is_lietensor(y), y[1:].shape, torch.cat([y, y]).ltype.__class__.__name__])


class PI(nn.Module):
    def __init__(s):
        super().__init__()
        s.pose = pp.Parameter(pp.randn_SE3(3))

    def forward(s, i):
        return (s.pose @ i).Log().tensor()


inv = PI()
i = pp.randn_SE3(3)
o = pp.optim.LM(inv, strategy=pp.optim.strategy.Adaptive(damping=1e-6))
show("lm", [o.step(i) for _ in range(4)])
o = pp.optim.GN(PI())
show("gn", [o.step(i) for _ in range(3)])
show("mod", pp.module.IMUPreintegrator()(dt=torch.ones(1, 5, 1) * 0.1, gyro=torch.ones(1, 5, 3), acc=torch.ones(1, 5, 3))["pos"])
show("cub", pp.chspline(torch.rand(1, 5, 3)))
