"""Lowering of graphs of 1,000 to 100,000 nodes: processor seconds of the whole phase, seconds of its slowest passes. Growth should be near to linear."""

import argparse
import random
import time

import cresset
from cresset import _C, lowering, nn
from cresset.nn import functional as F


def graph_text(nodes: int, seed: int = 0) -> str:
    """A network-like graph: linear layers, activations, in-place operators, size arithmetic, branches, checks, lists."""
    r = random.Random(seed)
    lines = ["graph(%x : Tensor, %w : Tensor, %b : Tensor, %c : bool):", "  %one : int = prim::Constant[value=1]()", "  %zero : int = prim::Constant[value=0]()",
             '  %m : str = prim::Constant[value="bad"]()', "  %p : float = prim::Constant[value=0.5]()", "  %no : bool = prim::Constant[value=0]()"]
    count, last = 5, "%x"
    while count < nodes:
        k, kind = count, r.randrange(8)
        if kind == 0:
            lines += [f"  %t{k} : Tensor = aten::t(%w)", f"  %v{k} : Tensor = aten::addmm(%b, {last}, %t{k}, %one, %one)"]
            count += 2
        elif kind == 1:
            lines += [f"  %a{k} : Tensor = aten::neg({last})", f"  %v{k} : Tensor = aten::relu_(%a{k})"]
            count += 2
        elif kind == 2:
            lines += [f"  %d{k} : int = aten::size({last}, %zero)", f"  %e{k} : int = aten::mul(%d{k}, %one)", f"  %f{k} : bool = aten::lt(%e{k}, %zero)",
                      f"   = prim::If(%f{k})", "    block0():", "       = prim::RaiseException(%m, %m)", "      -> ()", "    block1():", "      -> ()",
                      f"  %v{k} : Tensor = aten::sigmoid({last})"]
            count += 6
        elif kind == 3:
            lines += [f"  %v{k} : Tensor = prim::If(%c)", "    block0():", f"      %h{k} : Tensor = aten::tanh({last})", f"      -> (%h{k})", "    block1():",
                      f"      -> ({last})"]
            count += 2
        elif kind == 4:
            lines += [f"  %l{k} : Tensor[] = prim::ListConstruct({last}, {last})", f"  %v{k} : Tensor = aten::cat(%l{k}, %zero)"]
            count += 2
        elif kind == 5:
            lines += [f"  %v{k} : Tensor = aten::dropout({last}, %p, %no)"]
            count += 1
        elif kind == 6:
            lines += [f"  %q{k} : (Tensor, Tensor) = prim::TupleConstruct({last}, %x)", f"  %v{k} : Tensor, %u{k} : Tensor = prim::TupleUnpack(%q{k})"]
            count += 2
        else:
            lines += [f"  %i{k} : Tensor = aten::mul({last}, {last})", f"  %j{k} : Tensor = aten::mul({last}, {last})", f"  %v{k} : Tensor = aten::add(%i{k}, %j{k}, %one)"]
            count += 3
        last = f"%v{k}"
    return "\n".join([*lines, f"  return ({last})"]) + "\n"


def one_constant_text(uses: int) -> str:
    """A chain in which every node has the same constant as operand, every second one of a kind that is rewritten."""
    lines, last = ["graph(%x : Tensor, %w : Tensor, %b : Tensor):", "  %one : int = prim::Constant[value=1]()"], "%x"
    for k in range(0, uses, 3):
        lines += [f"  %u{k} : Tensor = aten::addmm(%b, {last}, %w, %one, %one)", f"  %v{k} : Tensor = aten::add(%u{k}, %x, %one)"]
        last = f"%v{k}"
    return "\n".join([*lines, f"  return ({last})"]) + "\n"


def replace_uses(uses: int, shuffled: bool) -> float:
    """Seconds for giving each user of a constant another operand."""
    graph = _C.parse_ir(one_constant_text(uses))
    places = [(u.user, u.offset) for u in next(graph.nodes()).output().uses()]
    other = graph.insertConstant(2)
    if shuffled:
        random.Random(0).shuffle(places)
    start = time.process_time()
    for user, offset in places:
        user.replaceInput(offset, other)
    return time.process_time() - start


def measure(text: str) -> tuple[float, list]:
    graph = _C.parse_ir(text)
    start = time.process_time()
    with lowering.logging.errors():
        lowered = lowering.lower(graph)
    return time.process_time() - start, sorted(lowered.steps, key=lambda s: -s.seconds)


class Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, out: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if inside != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet50() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(blocks):
            layers.append(Bottleneck(inside, width, 4 * width, stride if k == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


class TransformerBlock(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, n, w = x.size(0), x.size(1), x.size(2)
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).contiguous().view(b, n, w)
        x = x + self.drop(self.out(a))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self, words: int, causal: bool, width: int = 768, heads: int = 12, layers: int = 12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.blocks = nn.ModuleList([TransformerBlock(width, heads, causal) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.words(ids) + self.places(cresset.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def models():
    ids = cresset.randint(0, 1000, (1, 16))
    yield "ResNet-50", resnet50(), cresset.randn(1, 3, 64, 64)
    yield "BERT-base", Transformer(1000, False), ids
    yield "GPT-2 small", Transformer(1000, True), ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10000, 100000])
    parser.add_argument("--uses", type=int, nargs="*", default=[5000, 50000], help="graphs in which one constant has so many uses")
    parser.add_argument("--passes", type=int, default=5, help="how many of the slowest passes are shown")
    parser.add_argument("--models", action="store_true", help="modules of the shape of known models, too")
    options = parser.parse_args()
    for name, module, example in models() if options.models else ():
        scripted = cresset.jit.script(module.eval())
        start = time.process_time()
        with lowering.logging.errors():
            lowered = lowering.lower(scripted)
        seconds = time.process_time() - start
        same = cresset.allclose(lowered(example), module(example), atol=1e-4)
        print(f"{name:12s} {len(list(lowered.graph.nodes())):6d} nodes  {seconds:8.3f} s  answers {'agree' if same else 'DIFFER'}")
    first = None
    for nodes in options.sizes:
        seconds, steps = measure(graph_text(nodes))
        first = first or seconds / nodes
        slowest = ", ".join(f"{s.name} {s.seconds:.3f}" for s in steps[: options.passes])
        print(f"{nodes:8d} nodes  {seconds:8.3f} s  {seconds / nodes * 1e6:7.2f} us a node ({seconds / nodes / first:4.1f} times the first)   slowest: {slowest}")

    for uses in options.uses:
        seconds, steps = measure(one_constant_text(uses))
        slowest = ", ".join(f"{s.name} {s.seconds:.3f}" for s in steps[: options.passes])
        print(f"one constant, {uses} uses  {seconds:8.3f} s  {seconds / uses * 1e6:7.2f} us a use   slowest: {slowest}")
        replaced = [f"{replace_uses(uses, shuffled):.3f} s in {order} order" for order, shuffled in (("their", False), ("any", True))]
        print(f"{'':>14}each use replaced: {', '.join(replaced)}")


if __name__ == "__main__":
    main()
