from answers import show
import normflows
import torch
import zuko
from nflows import distributions, flows, transforms
from nflows.nn import nets


def train(name, parameters, loss_of, steps=2):
    optimizer = torch.optim.SGD(parameters, 1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        show(name, loss)


x, context = torch.randn(16, 4), torch.randn(16, 3)
parts = []
for _ in range(2):
    parts += [
        transforms.RandomPermutation(4),
        transforms.MaskedAffineAutoregressiveTransform(4, 12, context_features=3, num_blocks=1),
        transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(4, 8, num_bins=5, tails="linear", tail_bound=3.0, num_blocks=1, context_features=3),
        transforms.PiecewiseRationalQuadraticCouplingTransform(
            [1, 0, 1, 0], lambda a, b: nets.ResidualNet(a, b, 8, context_features=3, num_blocks=1), num_bins=4, tails="linear", tail_bound=2.0
        ),
        transforms.LULinear(4),
        transforms.ActNorm(4),
    ]
flow = flows.Flow(transforms.CompositeTransform(parts), distributions.StandardNormal([4]))
train("nflows", flow.parameters(), lambda: -flow.log_prob(x, context=context).mean(), 3)
flow.eval()
show("noise", flow.transform_to_noise(x, context))
show("sample", flow.sample(3, context=context[:2]))
for t in (transforms.QRLinear(4, 3), transforms.SVDLinear(4, 2), transforms.HouseholderSequence(4, 3), transforms.Tanh(), transforms.LeakyReLU()):
    y, change = t(x)
    show(type(t).__name__, [y, change, *t.inverse(y)])
show("mixture", distributions.MADEMoG(4, 8, 0, 1, 2).log_prob(x))

layers = []
for _ in range(3):
    layers += [normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 16, 16, 2], init_zeros=True)), normflows.flows.Permute(2, mode="swap")]
moons = normflows.distributions.TwoMoons()
model = normflows.NormalizingFlow(normflows.distributions.base.DiagGaussian(2), layers, moons)
train("normflows", model.parameters(), lambda: model.reverse_kld(32))
z = moons.sample(20)
show("moons", [z, model.forward_kld(z), model.log_prob(z)])
for name in ("AutoregressiveRationalQuadraticSpline", "CoupledRationalQuadraticSpline"):
    show(name, getattr(normflows.flows, name)(2, 1, 8)(z))
for t in (normflows.flows.LULinearPermute(2), normflows.flows.Planar((2,)), normflows.flows.Radial((2,)), normflows.flows.MaskedAffineAutoregressive(2, 8)):
    show(type(t).__name__, t(z))
glow = normflows.flows.GlowBlock(4, 8, split_mode="channel", leaky=0.1)
y, change = glow(torch.randn(2, 4, 4, 4))
show("glow", [y, change, *glow.inverse(y)])

x, c = torch.randn(12, 3), torch.randn(12, 2)
kinds = {
    "MAF": {"transforms": 2}, "NSF": {"transforms": 2, "bins": 4}, "NAF": {"transforms": 1}, "UNAF": {"transforms": 1}, "SOSPF": {"transforms": 1},
    "RealNVP": {"transforms": 2}, "NICE": {"transforms": 2}, "CNF": {}, "GF": {"transforms": 1, "components": 4}, "BPF": {"degree": 4, "transforms": 1},
}  # fmt: skip
for name, more in kinds.items():
    flow = getattr(zuko.flows, name)(3, 2, hidden_features=[8], **more)
    train(name, flow.parameters(), lambda: -flow(c).log_prob(x).mean())
    if name in ("MAF", "NSF", "RealNVP", "CNF"):
        show("sample", flow(c[:2]).sample((2,)))
