from answers import show
import numpy
import torch
from e3nn import o3
from e3nn.util import jit
from mace import data, modules, tools
from mace.tools.torch_geometric.dataloader import DataLoader

torch.set_default_dtype(torch.float64)
table = tools.AtomicNumberTable([1, 8])
forces = numpy.array([[0.0, -1.3, 0.0], [1.0, 0.2, 0.0], [0.0, 1.1, 0.3]])
water = data.Configuration(
    atomic_numbers=numpy.array([8, 1, 1]),
    positions=numpy.array([[0.0, -2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    properties={"forces": forces, "energy": -1.5},
    property_weights={"forces": 1.0, "energy": 1.0},
)
block = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
model = modules.MACE(
    r_max=5, num_bessel=4, num_polynomial_cutoff=6, max_ell=2, interaction_cls=block, interaction_cls_first=block, num_interactions=2, num_elements=2,
    hidden_irreps=o3.Irreps("4x0e + 4x1o"), MLP_irreps=o3.Irreps("4x0e"), gate=torch.nn.functional.silu, atomic_energies=numpy.array([1.0, 3.0]),
    avg_num_neighbors=8, atomic_numbers=table.zs, correlation=2, radial_type="bessel",
)  # fmt: skip
atoms = data.AtomicData.from_config(water, z_table=table, cutoff=3.0)
batch = next(iter(DataLoader([atoms, atoms], batch_size=2, shuffle=False)))
optimizer, loss_of = torch.optim.Adam(model.parameters(), 1e-2), modules.WeightedEnergyForcesLoss()
for _ in range(2):
    out = model(batch.to_dict(), training=True)
    loss = loss_of(pred=out, ref=batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show("loss", [loss, out["energy"], out["forces"]])
scripted = jit.compile(model)
torch.jit.save(scripted, "model.pt")
for f in (scripted, torch.jit.load("model.pt")):
    out = f(batch.to_dict())
    show("script", [out["energy"], out["forces"]])
