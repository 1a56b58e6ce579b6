from answers import show
import gpytorch
import torch

x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x) + 0.1 * torch.randn(20)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = -mll(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss)
show("losses", losses)
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    posterior = likelihood(model(torch.linspace(0, 1, 7)))
    show("posterior", [posterior.mean, posterior.variance, posterior.confidence_region()[0]])


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=True))
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


sparse, likelihood = Sparse(x[::4].clone()), gpytorch.likelihoods.GaussianLikelihood()
elbo = gpytorch.mlls.VariationalELBO(likelihood, sparse, num_data=20)
optimizer = torch.optim.Adam([*sparse.parameters(), *likelihood.parameters()], lr=0.1)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = -elbo(sparse(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss)
show("variational", losses)
