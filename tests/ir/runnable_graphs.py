"""Random graphs that run, made of what passes look for: views, writes, copies, activations, layers, numbers, lists, tuples, checks that hold, nested
If and Loop, fallback marks.

All tensors are float matrices of one square shape, so that every value fits everywhere.
"""

from __future__ import annotations

import random

HEADER = """graph(%x : Float(3, 3, requires_grad=0, device=cpu), %y : Tensor, %w : Float(3, 3, requires_grad=0, device=cpu), %b : Float(3, requires_grad=0, device=cpu), %n : int, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %last : int = prim::Constant[value=-1]()
  %three : int = prim::Constant[value=3]()
  %float : int = prim::Constant[value=6]()
  %limit : int = prim::Constant[value=-100]()
  %half : float = prim::Constant[value=0.5]()
  %no : bool = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %exact : str = prim::Constant[value="none"]()
  %bad : str = prim::Constant[value="bad"]()
  %flat : int[] = prim::Constant[value=[9]]()
  %square : int[] = prim::Constant[value=[3, 3]]()
  %dims : int[] = prim::Constant[value=[-1]]()"""
UNARY = ["neg", "relu", "tanh", "sigmoid", "sin", "silu", "hardswish", "hardsigmoid", "t", "detach"]
WRITES = ["relu_", "tanh_", "sigmoid_", "neg_", "silu_", "hardswish_", "hardsigmoid_", "zero_"]


class Maker:
    def __init__(self, seed: int, size: int) -> None:
        self.r = random.Random(seed)
        self.left, self.count, self.lines = size, 0, []

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def define(self, scope, depth, kind, call) -> str:
        name = self.name()
        self.emit(depth, f"{name} : {kind} = {call}")
        scope.append((name, kind))
        return name

    def pick(self, scope, kind) -> str:
        return self.r.choice([n for n, k in scope if k == kind][-8:])

    def number(self, scope, depth) -> str:
        if self.r.random() < 0.6:
            return self.pick(scope, "int")
        return self.define(scope, depth, "int", f"prim::Constant[value={self.r.choice([-1, 0, 1, 2, 3])}]()")

    def tensor_operator(self, scope, depth) -> None:
        r = self.r

        def tensor():
            return self.pick(scope, "Tensor")

        def op(name, *args, to=scope):
            mark = "[to_compile=0]" if r.random() < 0.04 else ""
            return self.define(to, depth, "Tensor", f"aten::{name}{mark}({', '.join(args)})")

        def other_shape(name, *args):
            return op(name, *args, to=[])

        def bounded():
            return op("tanh", tensor())

        def list_of(*members):
            return self.define(scope, depth, "Tensor[]", f"prim::ListConstruct({', '.join(members)})")

        def cat():
            return op("slice", other_shape("cat", list_of(tensor(), tensor()), "%zero"), "%zero", "%zero", "%three", "%one")

        def kept_in_list():
            items = list_of(tensor())
            if r.random() < 0.5:
                self.define(scope, depth, "Tensor[]", f"aten::append({items}, {tensor()})")
            return op("__getitem__", items, "%last")

        def tuples():
            a, b = self.name(), self.name()
            pair = self.define(scope, depth, "(Tensor, Tensor)", f"prim::TupleConstruct({tensor()}, {tensor()})")
            self.emit(depth, f"{a} : Tensor, {b} : Tensor = prim::TupleUnpack({pair})")
            scope.extend([(a, "Tensor"), (b, "Tensor")])

        choices = [
            (4, lambda: op(r.choice(UNARY), tensor())),
            (2, lambda: op(r.choice(WRITES), tensor())),
            (1, lambda: op("add_", tensor(), tensor(), "%one")),
            (3, lambda: op(r.choice(["add", "sub"]), tensor(), tensor(), "%one")),
            (1, lambda: op("mul", bounded(), self.number(scope, depth) if r.random() < 0.5 else tensor())),
            (1, lambda: op("contiguous", tensor(), "%zero")),
            (1, lambda: op("to", tensor(), "%float", "%no", "%no", "%none")),
            (1, lambda: op("view", other_shape("view", op("contiguous", tensor(), "%zero"), "%flat"), "%square")),
            (1, lambda: op("rsqrt", op("exp", bounded()))),
            (1, lambda: op(r.choice(["dropout", "dropout_"]), tensor(), "%half", "%no")),
            (1, lambda: op("gelu", tensor(), "%exact")),
            # The operator's result is contiguous, a difference has the strides of its operand: they are the same here.
            (1, lambda: op("log_softmax", op("contiguous", tensor(), "%zero"), r.choice(["%zero", "%one", "%last"]), "%none")),
            (1, lambda: op("linear", bounded(), "%w", r.choice(["%b", "%none"]))),
            (1, lambda: op("tanh", op("addmm", r.choice(["%b", tensor()]), bounded(), op("t", r.choice(["%w", bounded()])), "%one", "%one"))),
            (1, lambda: op(r.choice(["add", "add_"]), op("matmul", bounded(), op("t", r.choice(["%w", "%y"]))), "%b", "%one")),
            (1, lambda: op("mul", tensor(), other_shape(r.choice(["var", "std"]), bounded(), "%dims", "%no", "%yes"))),
            (1, cat),
            (1, kept_in_list),
            (1, tuples),
        ]  # fmt: skip
        r.choices([c for _, c in choices], [weight for weight, _ in choices])[0]()

    def number_operator(self, scope, depth) -> None:
        r, lists = self.r, [n for n, k in scope if k == "int[]"]

        def number():
            return self.number(scope, depth)

        match r.choice(["arithmetic", "arithmetic", "compare", "list", "append", "read", "size"]):
            case "arithmetic":
                self.define(scope, depth, "int", f"aten::{r.choice(['add', 'sub', 'mul'])}({number()}, {number()})")
            case "compare":
                self.define(scope, depth, "bool", f"aten::{r.choice(['lt', 'eq', 'ne'])}({number()}, {number()})")
            case "list":
                self.define(scope, depth, "int[]", f"prim::ListConstruct({number()}, {number()})")
            case "append" if lists:
                self.define(scope, depth, "int[]", f"aten::append({r.choice(lists)}, {number()})")
            case "read" if lists:
                reading = ["len({})", "__getitem__({}, %zero)", "__getitem__({}, %last)"]
                self.define(scope, depth, "int", f"aten::{r.choice(reading)}".format(r.choice(lists)))
            case "size":
                self.define(scope, depth, "int", f"aten::size({self.pick(scope, 'Tensor')}, %zero)")

    def check(self, scope, depth) -> None:
        size = self.define(scope, depth, "int", f"aten::size({self.pick(scope, 'Tensor')}, %zero)")
        wrong = self.define(scope, depth, "bool", f"aten::lt({size}, %limit)")
        for inner, text in [(0, f" = prim::If({wrong})"), (1, "block0():"), (2, " = prim::RaiseException(%bad, %none)"), (2, "-> ()"), (1, "block1():"), (2, "-> ()")]:
            self.emit(depth + inner, text)

    def branch(self, scope, depth) -> None:
        kinds = [self.r.choice(["Tensor", "int"]) for _ in range(self.r.randint(0, 2))]
        names = [self.name() for _ in kinds]
        self.emit(depth, ", ".join(f"{n} : {k}" for n, k in zip(names, kinds)) + f" = prim::If({self.pick(scope, 'bool')})")
        for i in range(2):
            self.emit(depth + 1, f"block{i}():")
            inner = list(scope)
            self.block(inner, depth + 2, 4)
            self.emit(depth + 2, f"-> ({', '.join(self.pick(inner, k) for k in kinds)})")
        scope += zip(names, kinds)

    def loop(self, scope, depth) -> None:
        kinds = [self.r.choice(["Tensor", "int"]) for _ in range(self.r.randint(0, 2))]
        names, inside, i = [self.name() for _ in kinds], [self.name() for _ in kinds], self.name()
        trip = self.define(scope, depth, "int", f"prim::Constant[value={self.r.randint(0, 3)}]()") if self.r.random() < 0.6 else "%n"
        initial = [self.pick(scope, k) for k in kinds]
        self.emit(depth, ", ".join(f"{n} : {k}" for n, k in zip(names, kinds)) + f" = prim::Loop({', '.join([trip, '%yes', *initial])})")
        self.emit(depth + 1, f"block0({', '.join([f'{i} : int'] + [f'{n} : {k}' for n, k in zip(inside, kinds)])}):")
        inner = [*scope, (i, "int"), *zip(inside, kinds)]
        self.block(inner, depth + 2, 4)
        go_on = "%yes" if self.r.random() < 0.8 else self.pick(inner, "bool")
        self.emit(depth + 2, f"-> ({', '.join([go_on, *(self.pick(inner, k) for k in kinds)])})")
        scope += zip(names, kinds)

    def block(self, scope, depth, most) -> None:
        for _ in range(self.r.randint(1, most)):
            if self.left <= 0:
                return
            self.left -= 1
            what = self.r.random()
            if what < 0.1 and depth < 8:
                self.branch(scope, depth)
            elif what < 0.18 and depth < 8:
                self.loop(scope, depth)
            elif what < 0.22:
                self.check(scope, depth)
            elif what < 0.4:
                self.number_operator(scope, depth)
            else:
                self.tensor_operator(scope, depth)

    def text(self) -> str:
        scope = [("%x", "Tensor"), ("%y", "Tensor"), ("%n", "int"), ("%c", "bool")]
        while self.left > 0:
            self.block(scope, 1, 8)
        results = [self.pick(scope, k) for k in ("Tensor", "Tensor", "int")]
        return "\n".join([HEADER, *self.lines, f"  return ({', '.join(results)})"]) + "\n"


def runnable_text(seed: int, size: int = 25) -> str:
    return Maker(seed, size).text()
