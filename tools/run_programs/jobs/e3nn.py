from answers import show
import torch
from e3nn import o3
from e3nn.nn import BatchNorm, FullyConnectedNet, Gate

irreps = o3.Irreps("4x0e + 3x1o + 2x2e")
x = irreps.randn(6, -1)
sphere = o3.spherical_harmonics(o3.Irreps.spherical_harmonics(2), torch.randn(6, 3), normalize=True, normalization="component")
show("harmonics", sphere)
linear = o3.Linear(irreps, "5x0e + 2x1o")
show("linear", linear(x))
product = o3.FullyConnectedTensorProduct(irreps, "0e + 1o + 2e", "3x0e + 2x1o")
out = product(x, sphere)
out.square().sum().backward()
show("product", [out, product.weight.grad])
rotation = o3.rand_matrix()
turned = product(x @ irreps.D_from_matrix(rotation).T, sphere @ o3.Irreps("0e + 1o + 2e").D_from_matrix(rotation).T)
show("equivariance", bool(torch.allclose(turned, out @ o3.Irreps("3x0e + 2x1o").D_from_matrix(rotation).T, atol=1e-4)))
gate = Gate("4x0e", [torch.relu], "2x0e", [torch.sigmoid], "2x1o")
show("gate", gate(gate.irreps_in.randn(3, -1)))
show("norm", [BatchNorm(irreps)(x), FullyConnectedNet([4, 8, 2], torch.nn.functional.silu)(torch.randn(3, 4))])
show("wigner", o3.wigner_3j(1, 2, 1))
