"""One line of output for each module of PyTorch that programs use: numbers, texts of generated code, representations. The same text comes from both."""

import pickle
import warnings

import torch

warnings.simplefilter("ignore")
import torch.nn as nn
import torch.nn.functional as F


def t(name, f):
    try:
        r = f()
    except Exception as e:
        r = f"!! {type(e).__name__} {str(e)[:160]}"
    print(name, "->", str(r).replace("\n", "|")[:600])


D = torch.distributions


def seeded(f):
    def g():
        torch.manual_seed(0)
        return f()

    return g


for n, f in {
    "normal": lambda: (
        D.Normal(0.0, 1.0).sample((3,)),
        D.Normal(0.0, 1.0).log_prob(torch.tensor(0.3)),
        D.Normal(0.0, 2.0).entropy(),
    ),
    "gamma": lambda: D.Gamma(torch.tensor([0.5, 2.0]), 1.0).rsample((2,)),
    "beta": lambda: D.Beta(0.5, 0.7).sample((3,)),
    "dir": lambda: D.Dirichlet(torch.tensor([0.3, 0.5, 2.0])).sample(),
    "cat": lambda: D.Categorical(logits=torch.tensor([0.1, 0.5, 0.2])).sample((5,)),
    "multi": lambda: D.Multinomial(10, torch.tensor([0.2, 0.3, 0.5])).sample(),
    "mvn": lambda: D.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]])).sample((2,)),
    "lkj": lambda: D.LKJCholesky(3, 0.5).sample(),
    "wishart": lambda: D.Wishart(torch.tensor(3.0), torch.eye(2)).log_prob(torch.eye(2) * 2),
    "studentT": lambda: D.StudentT(3.0).sample((2,)),
    "vonmises": lambda: D.VonMises(0.0, 2.0).sample((3,)),
    "poisson": lambda: D.Poisson(4.0).sample((5,)),
    "kl": lambda: (
        D.kl_divergence(D.Gamma(2.0, 1.0), D.Gamma(1.0, 2.0)),
        D.kl_divergence(D.Beta(1.0, 2.0), D.Beta(2.0, 2.0)),
    ),
    "trans": lambda: D.TransformedDistribution(
        D.Normal(0.0, 1.0), [D.AffineTransform(1.0, 2.0), D.SigmoidTransform()]
    ).log_prob(torch.tensor(0.4)),
    "mix": lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.tensor([0.0, 1.0]), 1.0)).log_prob(
        torch.tensor(0.3)
    ),
    "stick": lambda: (
        D.StickBreakingTransform()(torch.tensor([0.1, 0.2])),
        D.CorrCholeskyTransform()(torch.tensor([0.1, 0.2, 0.3])),
    ),
    "repr": lambda: D.Normal(torch.zeros(2), 1.0),
    "cons": lambda: (D.constraints.simplex.check(torch.tensor([0.5, 0.5])), D.Gamma.arg_constraints),
    "indep": lambda: D.Independent(D.Normal(torch.zeros(3), 1.0), 1).log_prob(torch.zeros(3)),
    "binom": lambda: (
        D.Binomial(10, torch.tensor(0.3)).sample((4,)),
        D.NegativeBinomial(3, torch.tensor(0.4)).sample((3,)),
        D.Geometric(torch.tensor(0.3)).sample((3,)),
    ),
    "gumbel": lambda: (
        D.Gumbel(0.0, 1.0).sample((2,)),
        D.Weibull(1.0, 2.0).sample((2,)),
        D.Pareto(1.0, 2.0).sample(),
        D.HalfCauchy(1.0).sample(),
        D.Kumaraswamy(1.0, 2.0).sample(),
        D.FisherSnedecor(2.0, 3.0).sample(),
        D.Chi2(2.0).sample(),
        D.LogNormal(0.0, 1.0).sample(),
        D.Cauchy(0.0, 1.0).sample(),
    ),
    "relax": lambda: (
        D.RelaxedBernoulli(0.5, logits=torch.tensor(0.2)).rsample(),
        D.RelaxedOneHotCategorical(0.5, logits=torch.tensor([0.2, 0.1])).rsample(),
        D.OneHotCategorical(torch.ones(3)).sample(),
        D.ContinuousBernoulli(0.3).sample(),
    ),
    "err": lambda: D.Normal(0.0, -1.0),
    "lowrank": lambda: D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)).sample(),
    "gpd": lambda: D.GeneralizedPareto(0.0, 1.0, 0.3).sample((2,)) if hasattr(D, "GeneralizedPareto") else None,
    "sobol": lambda: torch.quasirandom.SobolEngine(3, scramble=True, seed=3).draw(4),
    "sobolr": lambda: repr(torch.quasirandom.SobolEngine(3)),
}.items():
    t("dist." + n, seeded(f))
import torch.fx as fx


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, x, k=2):
        return torch.relu(self.l(x)).chunk(k, -1)[0] + x.sum()


torch.manual_seed(0)
m = M()
g = fx.symbolic_trace(m)
t("fx.code", lambda: g.code)
t("fx.graph", lambda: g.graph)
t("fx.pick", lambda: pickle.loads(pickle.dumps(g))(torch.ones(1, 3)))
t("fx.interp", lambda: fx.Interpreter(g).run(torch.ones(1, 3)))
from torch.fx.passes.shape_prop import ShapeProp

t(
    "fx.shape",
    lambda: (
        ShapeProp(g).propagate(torch.ones(1, 3)),
        [
            n.meta["tensor_meta"].shape
            for n in g.graph.nodes
            if "tensor_meta" in n.meta and hasattr(n.meta["tensor_meta"], "shape")
        ],
    )[1],
)
from torch.fx.passes.split_module import split_module

t("fx.split", lambda: split_module(g, m, lambda n: 0 if n.name in ("x", "l", "relu") else 1).code)
from torch.fx.experimental.proxy_tensor import make_fx

t("fx.make", lambda: make_fx(lambda x: (x.sin() * 2).sum())(torch.ones(2)).code)


class T(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)


t("fx.trans", lambda: T(g).transform().code)
t("fx.rewrite", lambda: (fx.replace_pattern(g, lambda x: torch.relu(x), lambda x: torch.tanh(x)).__len__(), g.code))
from torch.nn.attention.flex_attention import flex_attention, create_block_mask

q = torch.arange(24.0).view(1, 2, 4, 3) / 10
t("flex", lambda: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1))
t(
    "flexb",
    lambda: flex_attention(
        q, q, q, block_mask=create_block_mask(lambda b, h, i, j: i >= j, None, None, 4, 4, device="cpu")
    ),
)
t("bm", lambda: create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cpu"))
qd = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), {nn.Linear}, torch.qint8)
t("ao", lambda: qd)
torch.manual_seed(1)
l = nn.Linear(3, 2)
ql = torch.ao.quantization.quantize_dynamic(nn.Sequential(l))
t("ao.num", lambda: ql(torch.ones(1, 3)))
torch.manual_seed(1)
l = nn.LSTM(3, 2)
ql = torch.ao.quantization.quantize_dynamic(nn.Sequential(l), {nn.LSTM})
t("ao.lstm", lambda: ql(torch.ones(2, 1, 3))[0])
fut = torch.futures.Future()
t("fut", lambda: (fut.then(lambda f: f.value() + 1), fut.set_result(2), fut.done(), fut.wait())[2:])
t("futall", lambda: torch.futures.wait_all([fut]))
from torch.utils.flop_counter import FlopCounterMode


def fl():
    with FlopCounterMode(display=False) as f:
        F.linear(torch.ones(2, 3), torch.ones(4, 3))
        torch.ones(2, 3) @ torch.ones(3, 2)
    return f.get_total_flops()


t("flops", fl)
t(
    "statel",
    lambda: nn.utils.stateless.functional_call(
        nn.Linear(2, 1, bias=False), {"weight": torch.ones(1, 2)}, torch.ones(1, 2)
    ),
)
t(
    "future",
    lambda: (
        torch.__future__.get_overwrite_module_params_on_conversion(),
        torch.__future__.get_swap_module_params_on_conversion(),
    ),
)
import functorch

t(
    "functorch",
    lambda: (
        functorch.vmap(torch.sin)(torch.ones(2)),
        functorch.make_functional(nn.Linear(1, 1))[0].__class__.__name__,
    ),
)
t(
    "dyn",
    lambda: (
        torch._dynamo.is_compiling(),
        torch._dynamo.config.cache_size_limit,
        torch._dynamo.disable(lambda: 3)(),
        torch._dynamo.graph_break(),
        torch._inductor.config.max_autotune,
    ),
)
t(
    "mon",
    lambda: torch.monitor.Stat("a", [torch.monitor.Aggregation.SUM], __import__("datetime").timedelta(seconds=1)).name,
)
t(
    "cuda",
    lambda: (
        torch.cuda.is_available(),
        torch.cuda.device_count(),
        torch.cuda.get_arch_list(),
        torch.cuda.is_initialized(),
        torch.cuda.memory_stats(),
    ),
)
t("cudae", lambda: torch.cuda.current_device())
t("mps", lambda: (torch.device("mps"), torch.device("xla:1"), torch.device("hpu"), torch.device("vulkan")))
t(
    "back",
    lambda: (torch.backends.mps.is_available(), torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.version()),
)


class Bare(torch.optim.Optimizer):
    def __init__(self, p):
        self.param_groups = [{"params": list(p), "lr": 0.1}]
        self.state = {}
        self.defaults = {}

    def step(self):
        return 5


t("opt", lambda: Bare(nn.Linear(1, 1).parameters()).step())


@torch.jit.script
def sd(x: torch.Tensor):
    d = {"a": 1}
    return x + d["a"]


t("script", lambda: sd(torch.ones(1)))
import torch.multiprocessing as mp

t(
    "mp",
    lambda: (mp.get_sharing_strategy() in mp.get_all_sharing_strategies(), torch.ones(2).share_memory_().is_shared()),
)
t("ds", lambda: list(torch.utils.data.DistributedSampler(range(7), 2, 1, shuffle=True, seed=3)))
t("det", lambda: torch.utils.deterministic.fill_uninitialized_memory)
t("mt", lambda: torch.utils.module_tracker.ModuleTracker().parents)
t("weak", lambda: len(torch.utils.weak.WeakTensorKeyDictionary()))
t("env", lambda: torch.utils.collect_env.get_pretty_env_info.__name__)
