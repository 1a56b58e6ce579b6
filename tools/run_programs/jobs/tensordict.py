from answers import show
import torch
from tensordict import TensorDict, from_module, pad, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential

td = TensorDict({"a": torch.randn(3, 4), "b": {"c": torch.arange(6).reshape(3, 2)}}, batch_size=[3])
show("items", {str(k): v for k, v in td.items(True, True)})
show("shape", [list(td.reshape(-1).batch_size), list(td[1:]["a"].shape), list(torch.stack([td, td], 0).batch_size), list(td.expand(2, 3).batch_size)])
show("arithmetic", [(td * 2 + 1)["b", "c"], td.apply(lambda t: t.float().mean(), batch_size=[])["a"], torch.cat([td, td], 0)["a"]])
td["d"] = torch.ones(3)
show("select", [sorted(map(str, td.select("a", ("b", "c")).keys(True))), sorted(map(str, td.exclude("a").keys()))])
show("flat", [sorted(td.flatten_keys(".").keys()), pad(td, [0, 1])["a"], td.to_tensordict().numpy() is not None])
net = TensorDictSequential(
    TensorDictModule(torch.nn.Linear(4, 8), ["a"], ["h"]), TensorDictModule(torch.nn.ReLU(), ["h"], ["h"]), TensorDictModule(torch.nn.Linear(8, 1), ["h"], ["out"])
)
show("modules", net(td)["out"])
params = from_module(net)
with params.data.zero_().to_module(net) if False else params.to_module(net):
    show("params", net(td)["out"])
show("locked", td.lock_().is_locked)


@tensorclass
class Point:
    x: torch.Tensor
    name: str = "p"


point = Point(x=torch.arange(4.0), batch_size=[4])
show("tensorclass", [point[1:3].x, point.name, torch.stack([point, point]).x])
show("state", sorted(map(str, td.state_dict())))
