"""Random graphs that can run, made of what passes of lowering look for: views, writes, copies, activations, layers, control flow, lists.

All tensors are float matrices of one square shape, so that every value fits everywhere.
"""

from __future__ import annotations

import random

SIZE = 3
UNARY = ["neg", "relu", "silu", "hardswish", "hardsigmoid", "sigmoid", "tanh"]
WRITES = ["silu_", "hardswish_", "hardsigmoid_", "relu_", "neg_"]
VIEWS = ["t", "detach"]
HEAD = """graph(%x : Float(3, 3, requires_grad=0, device=cpu), %w : Float(3, 3, requires_grad=0, device=cpu), %v : Tensor, %b : Float(3, requires_grad=0, device=cpu), %c : bool, %n : int):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %last : int = prim::Constant[value=-1]()
  %half : float = prim::Constant[value=0.5]()
  %no : bool = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %exact : str = prim::Constant[value="none"]()
  %float : int = prim::Constant[value=6]()
  %flat : int[] = prim::Constant[value=[9]]()
  %square : int[] = prim::Constant[value=[3, 3]]()
  %dims : int[] = prim::Constant[value=[-1]]()
"""


class Generator:
    def __init__(self, seed: int, size: int) -> None:
        self.random, self.left, self.count, self.lines = random.Random(seed), size, 0, []

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, depth: int, text: str) -> str:
        name = self.name()
        self.lines.append("  " * depth + f"{name} : Tensor = {text}")
        return name

    def tensor(self, scope: list[str]) -> str:
        return self.random.choice(scope[-5:] if self.random.random() < 0.7 else scope)

    def operator(self, scope: list[str], depth: int) -> str:
        r, x, y = self.random, self.tensor(scope), self.tensor(scope)
        mark = "[to_compile=0]" if r.random() < 0.05 else ""

        def op(name, *args):
            return self.line(depth, f"aten::{name}{mark}({', '.join(args)})")

        choice = r.randrange(16)
        if choice < 3:
            return op(r.choice(UNARY), x)
        if choice == 3:
            return op(r.choice(WRITES), x)
        if choice == 4:
            return op(r.choice(VIEWS), x)
        if choice == 5:
            return op("contiguous", x, "%zero")
        if choice == 6:
            return op("to", x, "%float", "%no", "%no", "%none")
        if choice == 7:
            return op(r.choice(["dropout", "dropout_"]), x, "%half", "%no")
        if choice == 8:
            c = op("contiguous", x, "%zero")
            return op("view", op("view", c, "%flat"), "%square")
        if choice == 9:
            return op("gelu", x, "%exact")
        if choice == 10:
            return op("log_softmax", op("contiguous", x, "%zero"), "%last", "%none")  # its result is contiguous, unlike a difference
        if choice == 11:
            return op("linear", x, "%w", r.choice(["%b", "%none"]))
        if choice == 12:
            return op("addmm", "%b", x, op("t", "%w"), "%one", "%one")
        if choice == 13:
            m = op("matmul", x, op("t", r.choice(["%w", "%v"])))
            return op(r.choice(["add", "add_"]), m, "%b", "%one")
        if choice == 14:
            return op("mul", x, op(r.choice(["var", "std"]), y, "%dims", "%no", "%yes"))
        return op(r.choice(["add", "add", "add_"]), x, y, "%one")

    def branch(self, scope: list[str], depth: int) -> str:
        name = self.name()
        self.lines.append("  " * depth + f"{name} : Tensor = prim::If(%c)")
        for k in range(2):
            self.lines.append("  " * (depth + 1) + f"block{k}():")
            inner = list(scope)
            self.block(inner, depth + 2)
            self.lines.append("  " * (depth + 2) + f"-> ({self.tensor(inner)})")
        return name

    def loop(self, scope: list[str], depth: int) -> str:
        name, carried, counter = self.name(), self.name(), self.name()
        self.lines.append("  " * depth + f"{name} : Tensor = prim::Loop(%n, %yes, {self.tensor(scope)})")
        self.lines.append("  " * (depth + 1) + f"block0({counter} : int, {carried} : Tensor):")
        inner = [*scope, carried]
        self.block(inner, depth + 2)
        self.lines.append("  " * (depth + 2) + f"-> (%yes, {self.tensor(inner)})")
        return name

    def kept_in_list(self, scope: list[str], depth: int) -> str:
        name = self.name()
        self.lines.append("  " * depth + f"{name} : Tensor[] = prim::ListConstruct({self.tensor(scope)})")
        if self.random.random() < 0.5:
            self.lines.append("  " * depth + f"{self.name()} : Tensor[] = aten::append({name}, {self.tensor(scope)})")
        return self.line(depth, f"aten::__getitem__({name}, %last)")

    def block(self, scope: list[str], depth: int) -> None:
        for _ in range(self.random.randint(1, 6)):
            if self.left <= 0:
                return
            self.left -= 1
            r = self.random.random()
            if r < 0.08 and depth < 6:
                scope.append(self.branch(scope, depth))
            elif r < 0.14 and depth < 6:
                scope.append(self.loop(scope, depth))
            elif r < 0.2:
                scope.append(self.kept_in_list(scope, depth))
            else:
                scope.append(self.operator(scope, depth))

    def text(self) -> str:
        scope = ["%x", "%v"]
        while self.left > 0:
            self.block(scope, 1)
        results = sorted({self.tensor(scope) for _ in range(self.random.randint(1, 3))})
        return HEAD + "\n".join(self.lines) + f"\n  return ({', '.join(results)})\n"


def lowering_graph(seed: int, size: int = 12) -> str:
    return Generator(seed, size).text()
