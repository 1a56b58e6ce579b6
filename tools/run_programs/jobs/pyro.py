from answers import show
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.optim import Adam

data = torch.randn(20) + 2.0


def model(data):
    mean = pyro.sample("mean", dist.Normal(0.0, 3.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(data)):
        pyro.sample("x", dist.Normal(mean, scale), obs=data)


pyro.set_rng_seed(1)
guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO(num_particles=2))
show("svi", [svi.step(data) for _ in range(6)])
show("guide", {k: v for k, v in guide.median().items()})
show("predictive", Predictive(model, guide=guide, num_samples=3)(data)["mean"])


@config_enumerate
def mixture(data):
    weights = pyro.param("weights", torch.ones(2) / 2, constraint=dist.constraints.simplex)
    places = pyro.param("places", torch.tensor([0.0, 2.0]))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("x", dist.Normal(places[which], 1.0), obs=data)


pyro.clear_param_store()
svi = SVI(mixture, lambda data: None, Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=1))
show("enumeration", [svi.step(data) for _ in range(4)])
pyro.set_rng_seed(2)
chain = MCMC(NUTS(model, max_tree_depth=3), num_samples=6, warmup_steps=6, disable_progbar=True)
chain.run(data)
show("nuts", chain.get_samples()["mean"])
