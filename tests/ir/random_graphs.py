"""Random well-typed graphs with nested control flow, writes, views and containers."""

from __future__ import annotations

import random

LITERALS = {
    "int": lambda r: str(r.randint(-(2**63), 2**63 - 1) if r.random() < 0.2 else r.randint(-5, 5)),
    "float": lambda r: r.choice(["0.", "-0.", "1.5", "inf", "-inf", "nan", "0.10000000000000001", "1e+20", "4.9406564584124654e-324"]),
    "bool": lambda r: r.choice("01"),
    "str": lambda r: r.choice(['""', '"a"', r'"q\"\n#%x"', r'"\\"', '"with graph_0 = "']),
    "Device": lambda r: '"cpu"',
    "complex": lambda r: r.choice(["0.+1.j", "1.-infj"]),
    "int[]": lambda r: "[" + ", ".join(str(r.randint(0, 9)) for _ in range(r.randint(0, 3))) + "]",
    "float[]": lambda r: "[" + ", ".join(r.choice(["1.", "nan"]) for _ in range(r.randint(0, 3))) + "]",
    "str[]": lambda r: r.choice(["[]", '["a", "b]"]']),
    "(int, str)": lambda r: '(1, "x")',
    "Dict(str, int)": lambda r: r.choice(["{}", '{"k": 2}']),
}
# operator, operand types, result types
OPERATORS = [
    ("aten::add", ("Tensor", "Tensor", "int"), ("Tensor",)),
    ("aten::add_", ("Tensor", "Tensor", "int"), ("Tensor",)),
    ("aten::relu", ("Tensor",), ("Tensor",)),
    ("aten::t", ("Tensor",), ("Tensor",)),
    ("aten::size", ("Tensor", "int"), ("int",)),
    ("aten::max", ("Tensor", "int", "bool"), ("Tensor", "Tensor")),
    ("aten::add", ("int", "int"), ("int",)),
    ("aten::mul", ("float", "int"), ("float",)),
    ("aten::lt", ("int", "int"), ("bool",)),
    ("aten::__not__", ("bool",), ("bool",)),
    ("aten::append", ("int[]", "int"), ("int[]",)),
    ("aten::__getitem__", ("int[]", "int"), ("int",)),
    ("aten::len", ("int[]",), ("int",)),
    ("aten::str", ("float",), ("str",)),
    ("aten::cat", ("Tensor[]", "int"), ("Tensor",)),
    ("prim::Print", ("str", "Tensor"), ()),
    ("prim::NumToTensor", ("int",), ("Tensor",)),
]
REFINED = ["Tensor", "Tensor", "Tensor", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "Long()", "Double(*, 3)", "Half(..., device=cpu)"]


class Generator:
    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.left = size
        self.count = 0
        self.sections: list[str] = []
        self.lines: list[str] = []
        self.section_of: list[str] = []

    def name(self) -> str:
        self.count += 1
        r = self.random.random()
        if r < 0.4:
            return f"%{self.count}"
        return f"%{self.random.choice(['x', 'self.layer1.0.w', 'out_', '_a'])}{self.count}" + (".1" if r < 0.6 else "")

    def values(self, scope: list[tuple[str, str]], kind: str) -> list[str]:
        return [name for name, t in scope if t == kind]

    def pick(self, scope, kind, depth) -> str | None:
        have = self.values(scope, kind)
        if have and self.random.random() < 0.85:
            return self.random.choice(have[-6:])
        if kind in LITERALS:
            return self.constant(scope, kind, depth)
        if kind == "Tensor[]":
            return self.construct(scope, depth)
        return self.random.choice(have) if have else None

    def emit(self, depth: int, text: str) -> None:
        place = ""
        if self.random.random() < 0.2:
            place += f", scope: __module.l{self.random.randint(0, 3)}/sub"
        if self.random.random() < 0.3:
            place += f" # /src/my file.py:{self.random.randint(1, 999)}:{self.random.randint(0, 40)}"
        self.lines.append("  " * depth + text + place)

    def constant(self, scope, kind, depth) -> str:
        name = self.name()
        self.emit(depth, f"{name} : {kind} = prim::Constant[value={LITERALS[kind](self.random)}]()")
        scope.append((name, kind))
        return name

    def construct(self, scope, depth) -> str:
        members = [self.random.choice(self.values(scope, "Tensor")) for _ in range(self.random.randint(1, 3))]
        name = self.name()
        self.emit(depth, f"{name} : Tensor[] = prim::ListConstruct({', '.join(members)})")
        scope.append((name, "Tensor[]"))
        return name

    def operator(self, scope, depth) -> None:
        kind, operands, results = self.random.choice(OPERATORS)
        args = [self.pick(scope, t, depth) for t in operands]
        if None in args:
            return
        names = [self.name() for _ in results]
        left = ", ".join(f"{n} : {t}" for n, t in zip(names, results))
        self.emit(depth, f"{left} = {kind}({', '.join(args)})")
        scope += list(zip(names, results))

    def branch(self, scope, depth) -> None:
        condition = self.pick(scope, "bool", depth)
        kinds = [self.random.choice(["Tensor", "int", "int[]"]) for _ in range(self.random.randint(0, 3))]
        names = [self.name() for _ in kinds]
        self.emit(depth, ", ".join(f"{n} : {t}" for n, t in zip(names, kinds)) + f" = prim::If({condition})")
        for k in range(2):
            self.lines.append("  " * (depth + 1) + f"block{k}():")
            inner = list(scope)
            self.block(inner, depth + 2)
            results = [self.pick(inner, t, depth + 2) for t in kinds]
            self.lines.append("  " * (depth + 2) + f"-> ({', '.join(results)})")
        scope += list(zip(names, kinds))

    def loop(self, scope, depth) -> None:
        trip, condition = self.pick(scope, "int", depth), self.pick(scope, "bool", depth)
        kinds = [self.random.choice(["Tensor", "int", "float"]) for _ in range(self.random.randint(0, 3))]
        initial = [self.pick(scope, t, depth) for t in kinds]
        names, inside = [self.name() for _ in kinds], [self.name() for _ in kinds]
        self.emit(depth, ", ".join(f"{n} : {t}" for n, t in zip(names, kinds)) + f" = prim::Loop({', '.join([trip, condition, *initial])})")
        counter = self.name()
        formals = ", ".join([f"{counter} : int"] + [f"{n} : {t}" for n, t in zip(inside, kinds)])
        self.lines.append("  " * (depth + 1) + f"block0({formals}):")
        inner = scope + [(counter, "int")] + list(zip(inside, kinds))
        self.block(inner, depth + 2)
        go_on = self.pick(inner, "bool", depth + 2)
        results = [self.pick(inner, t, depth + 2) for t in kinds]
        self.lines.append("  " * (depth + 2) + f"-> ({', '.join([go_on, *results])})")
        scope += list(zip(names, kinds))

    def block(self, scope, depth) -> None:
        for _ in range(self.random.randint(0, 6)):
            if self.left <= 0:
                return
            self.left -= 1
            r = self.random.random()
            if r < 0.12 and depth < 12:
                self.branch(scope, depth)
            elif r < 0.2 and depth < 12:
                self.loop(scope, depth)
            elif r < 0.35:
                self.constant(scope, self.random.choice(list(LITERALS)), depth)
            else:
                self.operator(scope, depth)

    def text(self) -> str:
        inputs = [(self.name(), self.random.choice(REFINED)) for _ in range(self.random.randint(1, 3))]
        others = [(self.name(), t) for t in ("int", "bool", "float", "str", "int[]") if self.random.random() < 0.6]
        header = "graph(" + ",\n      ".join(f"{n} : {t}" for n, t in inputs + others) + "):"
        scope = [(n, "Tensor") for n, _ in inputs] + others
        while self.left > 0:
            self.block(scope, 1)
        results = [self.random.choice(scope)[0] for _ in range(self.random.randint(0, 3))]
        return "\n".join([header, *self.lines, f"  return ({', '.join(results)})"]) + "\n"


def random_text(seed: int, size: int = 40) -> str:
    return Generator(seed, size).text()
