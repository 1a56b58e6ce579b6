"""Random functions on numbers and lists of numbers, for Python, the interpreter and native code alike."""

import random

# {name: (source, argument lists)}; numbers stay in 64 bits, so that Python gives the same.
PROGRAMS = {
    "division": (
        """
def f(n: int, d: int):
    q = 0
    for i in range(-n, n):
        q = (q * 31 + i // d + (i % d) * 7 + i // 8 + i % 8 + i // 7 + i % 10 + (i - 5000000000) // 7 + (i + 5000000000) % 10) % 1000003
        q += i // -3 + i % -3 + (i * 10000000000) // 3 + (i * 10000000000) % 3 + i // 1 + i % 1
    return q
""",
        [(50, 3), (50, -3), (50, 1), (50, -1), (50, 10**12), (50, -(10**12)), (50, 64)],
    ),
    "comparisons as values": (
        """
def f(n: int, a: float, b: float):
    s = 0
    for i in range(n):
        x = float(i) * a
        lt = x < b
        le = x <= b
        gt = x > b
        ge = x >= b
        eq = x == b
        ne = x != b
        s = s * 2 + int(lt) + 3 * int(le) + 5 * int(gt) + 7 * int(ge) + 11 * int(eq) + 13 * int(ne)
        il = i < 3
        ie = i == 3
        s += int(il) + 2 * int(i >= 4) + 4 * int(ie) + 8 * int(i != 5) + int(not il) + int(il and ie) + int(il or ie) + int(il ^ ie)
        s = s % 1000003
    return s
""",
        [
            (20, 1.0, 4.0),
            (20, -0.5, -4.0),
            (20, float("nan"), 1.0),
            (20, 1.0, float("nan")),
            (20, float("inf"), float("inf")),
        ],
    ),
    "comparisons that jump": (
        """
def f(n: int, a: float, b: float):
    s = 0
    for i in range(n):
        x = float(i) * a
        if x < b:
            s += 1
        if x <= b:
            s += 10
        if x > b:
            s += 100
        if x >= b:
            s += 1000
        if x == b:
            s += 10000
        if x != b:
            s += 100000
        if not x < b:
            s += 3
        if not x == b:
            s += 7
        while x > b and s % 3 != 0:
            s += 1
    return s
""",
        [
            (20, 1.0, 4.0),
            (20, -0.5, -4.0),
            (20, float("nan"), 1.0),
            (20, 1.0, float("nan")),
            (20, float("inf"), float("inf")),
        ],
    ),
    "many values at once": (
        "def f(n: int, x: float):\n"
        + "".join(f"    i{k} = {k}\n    d{k} = {k}.5\n" for k in range(40))
        + "    for i in range(n):\n"
        + "".join(f"        i{k} = (i{(k + 1) % 40} * 3 + i{(k + 7) % 40} + i) % 1009\n" for k in range(40))
        + "".join(f"        d{k} = d{(k + 3) % 40} * 0.5 + d{(k + 11) % 40} - x + float(i{k})\n" for k in range(40))
        + "    return "
        + ", ".join(f"i{k}, d{k}" for k in range(40)),
        [(0, 1.0), (1, 0.25), (30, 0.1)],
    ),
    "values that change places": (
        """
def f(n: int):
    a, b, c = 1, 2, 3
    x, y = 0.5, 1.5
    for i in range(n):
        a, b, c = c, a, b + 1
        x, y = y, x
        for j in range(i % 4):
            a, b = b, a + j
            x, y = y, x + 1.0
    return a, b, c, x, y
""",
        [(0,), (1,), (17,)],
    ),
    "exits": (
        """
def f(n: int, m: int):
    s = 0
    for i in range(n):
        if i % 7 == 6:
            continue
        j = 0
        while True:
            j += 1
            if j * i > m:
                break
            if j > 10:
                return s + 100000
            for k in range(j):
                if k == 5:
                    break
                s += k
        s += j
    return s
""",
        [(0, 5), (30, 5), (30, 1000), (8, 40)],
    ),
    "shifts and bits": (
        """
def f(n: int, a: int):
    s = a
    for i in range(n):
        s = s ^ (s >> (i % 70)) ^ ((i % 1000) << (i % 50)) ^ (~i)
        s = (s & 0xFFFFFFFFFF) | (i >> 2) | (1 << 3)
    return s
""",
        [(0, 1), (200, 12345), (200, -12345)],
    ),
    "functions": (
        """
def f(n: int, x: float):
    s = 0.0
    k = 0
    for i in range(n):
        y = x + float(i)
        s += math.exp(-y) + math.sin(y) * math.cos(i) + math.atan2(y, x) + math.fmod(y, 3.0) + math.sqrt(y * y) + math.pow(y, 2)
        s += y // 0.75 + y % 0.75 + i / (k * k + 1) + abs(-y) + abs(-i) + min(y, 3.0) + max(y, 3) + min(i, 3) + max(i, 3)
        k += int(y) + math.floor(y) + math.ceil(y) + int(-y) + int(bool(i)) + int(bool(y))
        if math.isnan(s):
            return 0.0, k
    return s, k
""",
        [(0, 1.0), (40, 0.3), (40, -7.7), (5, 1e9)],
    ),
    "lists": (
        """
def f(n: int, at: int):
    a: List[int] = []
    x: List[float] = []
    b = [True] * n
    for i in range(n):
        a.append(i * i)
        x.append(float(i) / 3.0)
        b[i] = i % 3 == 0
    s = 0
    t = 0.0
    for i in range(n):
        if b[i]:
            s += a[i] + a[at] + len(a)
            a[-1 - i] = s % 1000
            x[i] = x[i] * 2.0 + x[-1]
    for v in x:
        t += v
    return s, t, a, x, b
""",
        [(0, 0), (1, 0), (100, 3), (100, -7)],
    ),
    "lists in lists": (
        """
def f(n: int):
    rows = [[float(i * j) for j in range(n)] for i in range(n)]
    s = 0.0
    for i in range(n):
        row = rows[i]
        for j in range(n):
            s += row[j] * rows[j][i]
            row[j] = s
    return s, rows
""",
        [(0,), (1,), (12,)],
    ),
    "rows that grow and change": (
        """
def f(n: int):
    rows = [[i] for i in range(n)]
    s = 0
    for i in range(n):
        for j in range(n):
            rows[j].append(rows[i][-1] + j)
            s += len(rows[j]) * rows[i][j % len(rows[i])]
            if j % 3 == 0:
                rows[j] = rows[i]
            row = rows[j] if j % 2 == 0 else rows[i]
            row[0] = s % 1009
    return s, rows
""",
        [(0,), (1,), (9,)],
    ),
    "dicts and texts between": (
        """
def f(n: int):
    d: Dict[int, int] = {}
    text = ""
    s = 0
    for i in range(n):
        s = (s * 7 + i * 3 + 1) % 101
        k = s * s - s // 3
        if k % 5 == 0:
            d[k] = i
        if k % 11 == 0:
            text = text + "ab"
        s += k % 13 - k // 17
    return d, text, s
""",
        [(0,), (200,)],
    ),
}


class Generator:
    """Random functions of two ints, two floats and two lists, with nested loops, branches and exits."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.ints = ["a", "b", "i"]
        self.floats = ["x", "y"]

    def int_expression(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return r.choice(
                [
                    *self.ints,
                    *self.ints,
                    "len(l)",
                    "l[a % len(l)]",
                    "l[-1]",
                    str(r.choice([0, 1, 2, 3, 7, 8, 10, -1, -4, 100, 4294967296, -5000000000])),
                ]
            )
        left, right = self.int_expression(depth - 1), self.int_expression(depth - 1)
        form = r.choice([
            "({0} + {1})", "({0} - {1})", "({0} % 1000 * ({1} % 1000))", "({0} // ({1} * 2 + 1))", "({0} % ({1} * 2 + 1))", "({0} // 7)",
            "({0} % 7)", "({0} // 16)", "({0} % 16)", "({0} & {1})", "({0} | {1})", "({0} ^ {1})", "min({0}, {1})", "max({0}, {1})",
            "abs({0})", "(-{0})", "(~{0})", "({0} >> ({1} % 66))", "({0} % 1000 << ({1} % 40))", "int({2})", "int({3})", "({0} if {2} else {1})",
        ])  # fmt: skip
        return form.format(left, right, self.condition(depth - 1), f"({self.float_expression(depth - 1)} % 1000.0)")

    def float_expression(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return r.choice(
                [
                    *self.floats,
                    *self.floats,
                    "m[b % len(m)]",
                    "m[-(i % len(m))]",
                    str(r.choice([0.0, -0.0, 0.5, 1.0, -3.25, 1e10, 1e-10])),
                ]
            )
        left, right = self.float_expression(depth - 1), self.float_expression(depth - 1)
        form = r.choice([
            "({0} + {1})", "({0} - {1})", "(({0} % 100.0 + 0.0) * ({1} % 100.0 + 0.0))", "({0} / ({1} * {1} + 1.0))", "({0} % 7.5 + 0.0)",
            "min({0}, {1})", "max({0}, {1})", "abs({0})", "(-{0})", "float({2})", "float({3})", "math.sin({0})", "math.atan2({0}, {1})",
            "({0} if {3} else {1})", "(0.0 + {0} % 50.0 + {2} % 50)",
        ])  # fmt: skip
        return form.format(left, right, self.int_expression(depth - 1), self.condition(depth - 1))

    def condition(self, depth=1):
        r = self.random
        kind = self.int_expression if r.random() < 0.5 else self.float_expression
        comparison = f"{kind(max(depth, 0))} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {kind(max(depth, 0))}"
        return f"({comparison})" if r.random() < 0.7 else f"(not ({comparison}))"

    def statements(self, indent, depth, in_loop):
        r = self.random
        pad = "    " * indent
        for _ in range(r.randint(1, 4)):
            what = r.random()
            if what < 0.35:
                self.lines.append(f"{pad}{r.choice(['a', 'b'])} = {self.int_expression()} % 1000000007")
            elif what < 0.65:
                self.lines.append(f"{pad}{r.choice(['x', 'y'])} = {self.float_expression()} % 1000000.5 + 0.0")
            elif what < 0.72:
                place = f"{self.int_expression(1)} % len"
                self.lines.append(pad + r.choice([
                    f"l[{place}(l)] = {self.int_expression(1)} % 1000003", f"m[{place}(m)] = {self.float_expression(1)} % 1000.5 + 0.0",
                    f"l.append({self.int_expression(1)} % 1000003)", f"m.append({self.float_expression(1)} % 1000.5 + 0.0)",
                ]))  # fmt: skip
            elif what < 0.8 and depth:
                self.lines.append(f"{pad}if {self.condition()}:")
                self.statements(indent + 1, depth - 1, in_loop)
                if r.random() < 0.5:
                    self.lines.append(f"{pad}else:")
                    self.statements(indent + 1, depth - 1, in_loop)
            elif what < 0.92 and depth:
                name = f"k{len(self.lines)}"
                self.lines.append(f"{pad}for {name} in range({r.choice(['3', 'a % 5', 'i % 4'])}):")
                self.ints.append(name)
                self.statements(indent + 1, depth - 1, True)
                self.ints.remove(name)
            elif in_loop:
                self.lines += [
                    f"{pad}if {self.condition()}:",
                    f"{pad}    {r.choice(['break', 'continue', 'continue', 'return a, b, x, y, l, m'])}",
                ]

    def source(self):
        self.lines = [
            "def f(n: int, a: int, b: int, x: float, y: float):",
            "    l = [1, 2, 3]",
            "    m = [0.5, -1.5]",
            "    for i in range(n):",
        ]
        self.statements(2, 3, True)
        self.lines.append("        a += 1\n    return a, b, x, y, l, m\n")
        return "\n".join(self.lines)


def random_program(seed):
    return Generator(seed).source()
