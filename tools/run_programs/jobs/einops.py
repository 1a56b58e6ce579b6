from answers import show
import torch
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

x = torch.arange(2 * 3 * 4 * 6, dtype=torch.float32).reshape(2, 3, 4, 6).requires_grad_()
show("rearrange", rearrange(x, "b c (h s) w -> (b s) h w c", s=2))
show("reduce", [reduce(x, "b c h (w 2) -> b c w", how) for how in ("mean", "max", "min", "sum")])
show("repeat", repeat(x[0], "c h w -> c (h 2) w b", b=2))
show("einsum", einsum(x, x, "b c h w, b d h w -> c d"))
show("parse", parse_shape(x, "b _ h w"))
packed, shapes = pack([x[..., 0], x], "b c h *")
show("pack", [packed, [list(s) for s in shapes], unpack(packed, shapes, "b c h *")[0]])
layers = torch.nn.Sequential(Rearrange("b c h w -> b h w c"), EinMix("b h w c -> b h w o", weight_shape="c o", bias_shape="o", c=3, o=5), torch.nn.ReLU(), Reduce("b h w o -> b o", "max"))
y = layers(x)
y.square().sum().backward()
show("layers", [y, x.grad, [p.grad for p in layers.parameters()]])
scripted = torch.jit.script(torch.nn.Sequential(Rearrange("b c h w -> b (c h w)"), torch.nn.Linear(72, 3)))
show("scripted", scripted(x))
show("vmap", torch.func.vmap(lambda t: rearrange(t, "c h w -> (h w) c"))(x))
