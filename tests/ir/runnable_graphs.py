"""Random graphs that run: square float tensors, numbers, lists, tuples, nested If and Loop, writes, views, checks that hold."""

from __future__ import annotations

import random

HEADER = "graph(%x : Tensor, %y : Tensor, %n : int, %c : bool):"
UNARY = ["neg", "relu", "tanh", "sigmoid", "sin", "t", "contiguous_", "detach", "silu", "hardswish", "hardsigmoid", "rsqrt_"]
WRITES = ["relu_", "tanh_", "sigmoid_", "zero_"]


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

    def constant(self, scope, depth, kind, value) -> str:
        return self.define(scope, depth, kind, f"prim::Constant[value={value}]()")

    def pick(self, scope, kind) -> str:
        return self.r.choice([n for n, k in scope if k == kind][-8:])

    def number(self, scope, depth) -> str:
        return self.pick(scope, "int") if self.r.random() < 0.6 else self.constant(scope, depth, "int", self.r.choice([-1, 0, 1, 2, 3]))

    def tensor_operator(self, scope, depth) -> None:
        r, T = self.r, lambda: self.pick(scope, "Tensor")
        one = self.constant(scope, depth, "int", 1)
        choice = r.randrange(13)
        if choice < 3:
            op = r.choice(UNARY)
            if op == "contiguous_":
                zero = self.constant(scope, depth, "int", 0)
                self.define(scope, depth, "Tensor", f"aten::contiguous({T()}, {zero})")
            elif op == "rsqrt_":
                e = self.define(scope, depth, "Tensor", f"aten::exp({self.define(scope, depth, 'Tensor', f'aten::tanh({T()})')})")
                self.define(scope, depth, "Tensor", f"aten::rsqrt({e})")
            else:
                self.define(scope, depth, "Tensor", f"aten::{op}({T()})")
        elif choice < 5:
            self.define(scope, depth, "Tensor", f"aten::{r.choice(['add', 'sub'])}({T()}, {T()}, {one})")
        elif choice == 5:
            a = self.define(scope, depth, "Tensor", f"aten::tanh({T()})")
            self.define(scope, depth, "Tensor", f"aten::mul({a}, {self.number(scope, depth) if r.random() < 0.5 else T()})")
        elif choice == 6:
            self.define(scope, depth, "Tensor", f"aten::{r.choice(WRITES)}({T()})")
        elif choice == 7:
            self.define(scope, depth, "Tensor", f"aten::add_({T()}, {T()}, {one})")
        elif choice == 8:
            zero, three = self.constant(scope, depth, "int", 0), self.constant(scope, depth, "int", 3)
            items = self.define(scope, depth, "Tensor[]", f"prim::ListConstruct({T()}, {T()})")
            joined = self.define(scope, depth, "Wide", f"aten::cat({items}, {zero})".replace("Wide", "Tensor"))
            self.lines[-1] = self.lines[-1].replace(": Wide", ": Tensor")
            self.define(scope, depth, "Tensor", f"aten::slice({joined}, {zero}, {zero}, {three}, {one})")
        elif choice == 9:
            a = self.define(scope, depth, "Tensor", f"aten::tanh({T()})")
            w = self.define(scope, depth, "Tensor", f"aten::t({a})")
            b = self.define(scope, depth, "Tensor", f"aten::tanh({T()})")
            m = self.define(scope, depth, "Tensor", f"aten::addmm({T()}, {b}, {w}, {one}, {one})" if r.random() < 0.5 else f"aten::matmul({b}, {w})")
            self.define(scope, depth, "Tensor", f"aten::tanh({m})")
        elif choice == 10:
            p, no = self.constant(scope, depth, "float", "0.5"), self.constant(scope, depth, "bool", 0)
            self.define(scope, depth, "Tensor", f"aten::dropout({T()}, {p}, {no})")
        elif choice == 11:
            none, dim = self.define(scope, depth, "NoneType", "prim::Constant()"), self.constant(scope, depth, "int", r.choice([0, 1, -1]))
            self.define(scope, depth, "Tensor", f"aten::log_softmax({T()}, {dim}, {none})")
        else:
            a, b = self.name(), self.name()
            t = self.define(scope, depth, "(Tensor, Tensor)", f"prim::TupleConstruct({T()}, {T()})")
            self.emit(depth, f"{a} : Tensor, {b} : Tensor = prim::TupleUnpack({t})")
            scope += [(a, "Tensor"), (b, "Tensor")]

    def number_operator(self, scope, depth) -> None:
        choice = self.r.randrange(8)
        if choice < 3:
            self.define(scope, depth, "int", f"aten::{self.r.choice(['add', 'sub', 'mul'])}({self.number(scope, depth)}, {self.number(scope, depth)})")
        elif choice == 3:
            self.define(scope, depth, "bool", f"aten::{self.r.choice(['lt', 'eq', 'ne'])}({self.number(scope, depth)}, {self.number(scope, depth)})")
        elif choice == 4:
            self.define(scope, depth, "int[]", f"prim::ListConstruct({self.number(scope, depth)}, {self.number(scope, depth)})")
        elif choice == 5:
            lists = [n for n, k in scope if k == "int[]"]
            if lists:
                self.define(scope, depth, "int[]", f"aten::append({self.r.choice(lists)}, {self.number(scope, depth)})")
        elif choice == 6:
            lists = [n for n, k in scope if k == "int[]"]
            if lists:
                self.define(scope, depth, "int", f"aten::len({self.r.choice(lists)})" if self.r.random() < 0.5
                            else f"aten::__getitem__({self.r.choice(lists)}, {self.constant(scope, depth, 'int', self.r.choice([0, 1, -1]))})")
        else:
            self.define(scope, depth, "int", f"aten::size({self.pick(scope, 'Tensor')}, {self.constant(scope, depth, 'int', 0)})")

    def check(self, scope, depth) -> None:
        message = self.constant(scope, depth, "str", '"bad"')
        none = self.define(scope, depth, "NoneType", "prim::Constant()")
        limit = self.constant(scope, depth, "int", -100)
        size = self.define(scope, depth, "int", f"aten::size({self.pick(scope, 'Tensor')}, {self.constant(scope, depth, 'int', 0)})")
        bad = self.define(scope, depth, "bool", f"aten::lt({size}, {limit})")
        self.emit(depth, f" = prim::If({bad})")
        self.emit(depth + 1, "block0():")
        self.emit(depth + 2, f" = prim::RaiseException({message}, {none})")
        self.emit(depth + 2, "-> ()")
        self.emit(depth + 1, "block1():")
        self.emit(depth + 2, "-> ()")

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
        trip = self.constant(scope, depth, "int", self.r.randint(0, 3)) if self.r.random() < 0.6 else "%n"
        yes = self.constant(scope, depth, "bool", 1)
        initial = [self.pick(scope, k) for k in kinds]
        self.emit(depth, ", ".join(f"{n} : {k}" for n, k in zip(names, kinds)) + f" = prim::Loop({', '.join([trip, yes, *initial])})")
        self.emit(depth + 1, f"block0({', '.join([f'{i} : int'] + [f'{n} : {k}' for n, k in zip(inside, kinds)])}):")
        inner = [*scope, (i, "int"), *zip(inside, kinds)]
        self.block(inner, depth + 2, 4)
        go_on = yes if self.r.random() < 0.8 else self.pick(inner, "bool")
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
            elif what < 0.5:
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
