from answers import show
import geoopt
import torch

torch.set_default_dtype(torch.float64)
manifolds = [
    geoopt.Euclidean(1), geoopt.Stiefel(), geoopt.CanonicalStiefel(), geoopt.EuclideanStiefelExact(), geoopt.Sphere(), geoopt.SphereExact(), geoopt.PoincareBall(c=1.0),
    geoopt.Stereographic(torch.tensor(-0.7), learnable=True), geoopt.SymmetricPositiveDefinite(), geoopt.BirkhoffPolytope(),
]  # fmt: skip
for m in manifolds:
    name = type(m).__name__
    shape = (2, 3, 3) if name in ("SymmetricPositiveDefinite", "BirkhoffPolytope") else (5, 3)
    try:
        start = m.random(*shape) if name != "BirkhoffPolytope" else m.random(3, 3)
        goal = m.random(*start.shape)
        show(f"{name} points", [start, goal])
        for kind in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
            p = geoopt.ManifoldParameter(start.clone(), manifold=m)
            more = {"momentum": 0.5} if kind is geoopt.optim.RiemannianSGD else {"amsgrad": True}
            optimizer = kind([p], lr=1e-2, stabilize=2, **more)
            losses = []
            for _ in range(4):
                optimizer.zero_grad()
                loss = (p - goal).abs().square().sum()
                loss.backward()
                optimizer.step()
                losses.append(loss)
            show(f"{name} {kind.__name__}", [losses, p.data, m.check_point_on_manifold(p, atol=1e-4, rtol=1e-4)])
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:200])
ball = geoopt.PoincareBall(c=torch.tensor(0.5))
x, y, v = (torch.randn(4, 3) * 0.3 for _ in range(3))
x, y = ball.projx(x), ball.projx(y)
show("ball", [ball.expmap(x, v), ball.logmap(x, y), ball.mobius_add(x, y), ball.geodesic(torch.tensor(0.3), x, y), ball.transp(x, y, v), ball.dist2plane(x, y, v)])
show("weighted", ball.weighted_midpoint(torch.stack([x, y]), torch.rand(2, 4)))
