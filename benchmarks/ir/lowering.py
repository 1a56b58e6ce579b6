"""Lowering of graphs of 1,000 to 100,000 nodes: processor seconds of the whole phase, seconds of its slowest passes. Growth should be near to linear."""

import argparse
import random
import time

from cresset import _C, lowering


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


def measure(nodes: int) -> tuple[float, list]:
    graph = _C.parse_ir(graph_text(nodes))
    start = time.process_time()
    with lowering.logging.errors():
        lowered = lowering.lower(graph)
    return time.process_time() - start, sorted(lowered.steps, key=lambda s: -s.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10000, 100000])
    parser.add_argument("--passes", type=int, default=5, help="how many of the slowest passes are shown")
    options = parser.parse_args()
    for nodes in options.sizes:
        seconds, steps = measure(nodes)
        slowest = ", ".join(f"{s.name} {s.seconds:.3f}" for s in steps[: options.passes])
        print(f"{nodes:8d} nodes  {seconds:8.3f} s  {seconds / nodes * 1e6:7.2f} us a node   slowest: {slowest}")


if __name__ == "__main__":
    main()
