from answers import show
import torch
import pypose as pp

torch.manual_seed(0)
for name in ("SO3", "SE3", "Sim3", "RxSO3"):
    for _ in (0,):
        try:
            X = getattr(pp, f"randn_{name}")(2, 3, sigma=0.5, requires_grad=True)
            a = X.Log()
            b = a.Exp()
            p = torch.randn(2, 3, 3 if name in ("SO3", "SE3", "Sim3", "RxSO3") else 4)
            z = X.Act(p)
            show(name, [X, a, b, X.Inv(), X @ X.Inv(), z, X.Adj(a), X.AdjT(a), X.matrix(), pp.cumprod(X, dim=1), torch.autograd.grad((z.square().sum() + a.tensor().square().sum()), X)[0]])
        except Exception as error:
            show(name, f"{type(error).__name__}: {error}"[:250])
show("euler", [pp.euler2SO3(torch.randn(3, 3)), pp.randn_SO3(3).euler(), pp.mat2SO3(pp.randn_SO3(2).matrix()), pp.vec2skew(torch.randn(2, 3))])


class PoseInv(torch.nn.Module):
    def __init__(self, *dim):
        super().__init__()
        self.pose = pp.Parameter(pp.randn_se3(*dim))

    def forward(self, input):
        return (self.pose.Exp() @ input).Log().tensor()


for name, o in (("LM", lambda m: pp.optim.LM(m, strategy=pp.optim.strategy.Constant(damping=1e-4))), ("GN", pp.optim.GN)):
    try:
        torch.manual_seed(1)
        m = PoseInv(2)
        inp = pp.randn_SE3(2)
        opt = o(m)
        show(name, [opt.step(inp) for _ in range(4)] + [m.pose])
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:250])
from torch.optim import Adam

torch.manual_seed(2)
x = pp.Parameter(pp.randn_SE3(3))
target = pp.randn_SE3(3)
o = Adam([x], 0.1)
for _ in range(10):
    o.zero_grad()
    l = (x.Inv() @ target).Log().tensor().norm()
    l.backward()
    o.step()
show("adam", [l, x])
integrator = pp.module.IMUPreintegrator(torch.zeros(3), pp.identity_SO3(), torch.zeros(3))
r = integrator(dt=torch.full((1, 5, 1), 0.01), gyro=torch.randn(1, 5, 3), acc=torch.randn(1, 5, 3))
show("imu", [r["pos"], r["vel"], r["rot"], r.get("cov")])
A, B, C, D = torch.eye(3) * 0.9, torch.randn(3, 1), torch.eye(3), torch.zeros(3, 1)
s = pp.module.LTI(A, B, C, D)
show("lti", list(s(torch.ones(1, 3), torch.ones(1, 1))))
T = 4
n, m = 3, 1
Q = torch.eye(n + m).repeat(1, T, 1, 1)
p = torch.zeros(1, T, n + m)
lqr = pp.module.LQR(pp.module.LTI(A, B, torch.eye(3), torch.zeros(3, 1)), Q, p, T)
show("lqr", list(lqr(torch.ones(1, 3))))
show("icp", pp.module.ICP()(torch.randn(1, 20, 3), torch.randn(1, 20, 3)) if True else 0)
show("spline", [pp.chspline(torch.randn(1, 5, 3), 0.25), pp.bspline(pp.randn_SE3(1, 5), 0.25)])
