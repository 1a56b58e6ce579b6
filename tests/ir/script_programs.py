"""Small programs in the common subset of Python and scripts: each is run by Python itself and by the interpreter, with the same arguments."""

HEADER = """
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union
import math
import cresset as torch
"""

# name: (source of `def f`, argument lists)
PROGRAMS = {
    "arithmetic": (
        """
def f(a: int, b: int, x: float):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a, +a, a & b, a | b, a ^ b, a << 2, a >> 1, x * a, a - x, x / 2, abs(-x), -7
""",
        [(7, 3, 2.5), (-7, 3, 0.25), (7, -3, -1.5)],
    ),
    "compare": (
        """
def f(a: int, b: int, x: float, s: str):
    return a < b, a <= b, a > b, a >= b, a == b, a != b, a < x, s == "x", s < "b", not a < b
""",
        [(1, 2, 1.5, "x"), (2, 1, 3.0, "a"), (2, 2, 2.0, "c")],
    ),
    "chained comparison": (
        """
def f(a: int, b: int, c: int):
    return a < b < c, a < b <= c != 7, 1 < a < 2 < b
""",
        [(1, 2, 3), (3, 2, 1), (1, 3, 2), (2, 2, 7)],
    ),
    "and or not": (
        """
def f(a: int, b: int):
    x = a > 1 and b > 1
    y = a > 1 or b > 1 and a == b
    z = not (a > 1) or not b > 1
    return x, y, z, a > 0 and b > 0 and a + b > 5, a > 3 or b > 3 or a == b
""",
        [(0, 0), (2, 0), (0, 2), (2, 2), (5, 1)],
    ),
    "short circuit": (
        """
def f(x: List[int], i: int):
    return len(x) > i and x[i] > 2, i >= len(x) or x[i] == 1
""",
        [([], 0), ([1], 0), ([3, 5], 1)],
    ),
    "ternary": (
        """
def f(a: int):
    b = 1 if a > 2 else 2 if a > 1 else 3
    return b, (a if a > 0 else -a) + 1
""",
        [(0,), (2,), (3,), (-4,)],
    ),
    "if chains": (
        """
def f(a: int):
    if a < 0:
        s = "negative"
    elif a == 0:
        s = "zero"
    elif a < 10:
        s = "small"
        if a % 2 == 0:
            s = s + " even"
    else:
        s = "large"
    return s
""",
        [(-1,), (0,), (3,), (4,), (11,)],
    ),
    "while": (
        """
def f(n: int):
    a, b = 0, 1
    steps = 0
    while b < n and steps < 50:
        a, b = b, a + b
        steps += 1
    return a, b, steps
""",
        [(0,), (1,), (100,), (10**12,)],
    ),
    "for range": (
        """
def f(n: int):
    s = 0
    for i in range(n):
        s += i
    for i in range(1, n, 2):
        s = s * 2 + i
    for i in range(n, 0, -1):
        s -= i
    return s
""",
        [(0,), (1,), (5,), (12,)],
    ),
    "for list": (
        """
def f(x: List[float]):
    s = 0.0
    m = -1.0
    for v in x:
        s += v
        if v > m:
            m = v
    return s, m
""",
        [([],), ([1.0, 5.0, 2.0],)],
    ),
    "for string": (
        """
def f(x: str):
    n = 0
    out = ""
    for c in x:
        if c == "a":
            n += 1
        out = c + out
    return n, out
""",
        [("",), ("banana",)],
    ),
    "for dict": (
        """
def f(d: Dict[str, int]):
    s = 0
    names = ""
    for k in d:
        names += k
        s += d[k]
    for k, v in d.items():
        s += v * len(k)
    for v in d.values():
        s -= v
    return s, names, len(d)
""",
        [({},), ({"a": 1, "bcd": 5},)],
    ),
    "enumerate and zip": (
        """
def f(x: List[int], y: List[float]):
    s = 0.0
    for i, v in enumerate(x):
        s += i * v
    for a, b in zip(x, y):
        s += a * b
    for i, (a, b) in enumerate(zip(x, y)):
        s += i * (a - b)
    return s
""",
        [([], []), ([1, 2, 3], [0.5, 1.5, 2.5]), ([1, 2], [3.0])],
    ),
    "unrolled tuple": (
        """
def f(t: Tuple[int, int, int]):
    s = 0
    for v in t:
        s = s * 10 + v
    for i, v in enumerate(t):
        s += i * v
    return s
""",
        [((1, 2, 3),)],
    ),
    "unrolled with return": (
        """
def f(t: Tuple[int, int, int]):
    for v in t:
        if v > 1:
            return v
    return -1
""",
        [((1, 2, 3),), ((0, 1, 5),), ((0, 0, 0),)],
    ),
    "break and continue": (
        """
def f(n: int):
    s = 0
    for i in range(n):
        if i == 3:
            continue
        if i > 7:
            break
        s += i
    return s
""",
        [(0,), (3,), (5,), (100,)],
    ),
    "while true": (
        """
def f(x: float):
    n = 0
    while True:
        x = x * 2.0
        n += 1
        if x > 100.0:
            break
    return x, n
""",
        [(1.0,), (60.0,)],
    ),
    "condition runs after continue": (
        """
def f(n: int):
    seen = 0
    while n > 0:
        n -= 1
        if n % 3 == 0:
            continue
        seen += n
    return seen, n
""",
        [(0,), (1,), (10,)],
    ),
    "nested loops": (
        """
def f(n: int):
    found = -1
    for i in range(n):
        j = 0
        while j < i:
            if i * j == 12:
                found = i
                break
            j += 1
        if found >= 0:
            break
    return found
""",
        [(0,), (5,), (8,)],
    ),
    "return in loops": (
        """
def f(n: int, stop: int):
    for i in range(n):
        for j in range(i):
            if i + j == stop:
                return i * 100 + j
        if i == stop * 2:
            return -2
    return -1
""",
        [(0, 0), (5, 3), (5, 100), (10, 17)],
    ),
    "return in while with work behind": (
        """
def f(n: int):
    total = 0
    while n > 0:
        if n == 5:
            return total
        total += n
        n -= 1
    total = total * 2
    return total
""",
        [(0,), (4,), (7,)],
    ),
    "early returns": (
        """
def f(a: int, b: int):
    if a > 10:
        return "a"
    if b > 10:
        if a > 5:
            return "b5"
        b = b - 10
    elif b < 0:
        return "negative"
    a = a + b
    if a > 7:
        return "sum"
    return "none"
""",
        [(11, 0), (6, 11), (1, 11), (1, -1), (1, 7), (1, 1), (4, 15)],
    ),
    "variable of the other arm": (
        """
def f(a: int):
    if a > 2:
        y = 1
    elif a > 1:
        y = 2
    else:
        return 3
    return y + 10
""",
        [(3,), (2,), (1,)],
    ),
    "tuples": (
        """
def f(a: int, t: Tuple[int, float]):
    x, y = t
    z = (a, t, "s")
    b, (c, d), e = z
    first, *rest = (a, 2, 3)
    (p, q), r = (a, x), y
    return z[0], z[1][1], z[-1], b, c, d, e, first, rest[0] + rest[1], len(rest), p, q, r, (1, 2, 3)[1:], (1, 2, 3)[::-1], len(t)
""",
        [(1, (2, 2.5))],
    ),
    "tuple with an index that varies": (
        """
def f(t: Tuple[int, int, int], i: int):
    return t[i]
""",
        [((4, 5, 6), 0), ((4, 5, 6), 2), ((4, 5, 6), -1)],
    ),
    "swap": (
        """
def f(a: int, b: int):
    a, b = b, a
    c = d = a - b
    return a, b, c, d
""",
        [(1, 2)],
    ),
    "lists": (
        """
def f(x: List[int]):
    y = x + [7]
    y[0] = 5
    y[1] += 3
    y += [1, 2]
    y *= 2
    y.append(9)
    y.insert(1, 100)
    z = y.pop()
    del y[0]
    return y, z, len(y), y[1:3], y[:-1], y[::2], 9 in y, 7 not in y, [1] * 3, x == [1, 2]
""",
        [([1, 2],), ([4, 5, 6],)],
    ),
    "list of lists": (
        """
def f(n: int):
    rows: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(i):
            row.append(i * j)
        rows.append(row)
    return rows
""",
        [(0,), (4,)],
    ),
    "dicts": (
        """
def f(n: int):
    d: Dict[int, str] = {}
    for i in range(n):
        d[i * i] = str(i)
    e = {"a": 1, "b": n}
    e["c"] = 3
    e["a"] += 10
    del e["b"]
    return d, e, "a" in e, "b" in e, e.get("z", 5), len(d)
""",
        [(0,), (3,)],
    ),
    "comprehensions": (
        """
def f(x: List[int]):
    a = 5
    y = [a * a for a in x]
    z = [v + a for v in x if v > 1 if v < 9]
    d = {v: str(v) for v in x}
    e = [i * j for i in x for j in range(i)]
    n = [[j for j in range(i)] for i in x]
    return a, y, z, d, e, n, [float(v) for v in range(3)]
""",
        [([],), ([1, 2, 3, 10],)],
    ),
    "strings": (
        """
def f(s: str, n: int):
    t = s + "-" + str(n)
    return t, f"{s} has {n} {{braces}}", "a{}b{}".format(n, s), t[0], t[1:3], len(t), s.upper(), "x" in s, "a" "b", s * 2
""",
        [("xyz", 3), ("hello", -1)],
    ),
    "casts": (
        """
def f(x: float, n: int, s: str):
    return int(x), float(n), bool(n), bool(x), str(n), int(s), float(s)
""",
        [(2.75, 3, "12"), (0.0, 0, "0")],
    ),
    "truth": (
        """
def f(n: int, x: float, s: str, y: List[int]):
    a = 1 if n else 2
    b = 1 if x else 2
    c = 1 if s else 2
    d = 1 if y else 2
    while y:
        y.pop()
        a += 10
    return a, b, c, d, not n, not s, not y
""",
        [(0, 0.0, "", []), (1, 0.5, "a", [1, 2])],
    ),
    "optional": (
        """
def f(x: Optional[int], y: Optional[int]):
    if x is None:
        x = 7
    z = x + 1
    if y is not None and y > 2:
        z += y
    w = 5 if y is None else y
    if y is None or y > 100:
        return z, w
    return z + y, w
""",
        [(None, None), (1, None), (None, 3), (1, 200), (2, 1)],
    ),
    "optional in loop": (
        """
def f(x: List[int]):
    best: Optional[int] = None
    for v in x:
        if best is None:
            best = v
        elif v > best:
            best = v
    if best is None:
        return -1
    return best
""",
        [([],), ([3],), ([1, 9, 4],)],
    ),
    "optional until none": (
        """
def f(x: Optional[int]):
    n = 0
    while x is not None:
        n += x
        if x > 5:
            x = None
        else:
            x = x + 1
    return n
""",
        [(None,), (1,), (9,)],
    ),
    "assert refines": (
        """
def f(x: Optional[int]):
    assert x is not None
    return x + 1
""",
        [(3,)],
    ),
    "not none": (
        """
def f(x: Optional[int]):
    if not (x is None):
        return x * 2
    return 0
""",
        [(3,), (None,)],
    ),
    "isinstance": (
        """
def f(x: Union[int, str, float]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    if isinstance(x, (float, int)):
        return -1
    return -2
""",
        [(4,), ("abc",), (2.5,)],
    ),
    "any": (
        """
def f(x: Any):
    if isinstance(x, str):
        return x + "!"
    if isinstance(x, (int, float)):
        return "number"
    return "other"
""",
        [(1,), (2.5,), ("s",), ([1],)],
    ),
    "annotated": (
        """
def f(n: int):
    x: float = 2.0
    y: Optional[int] = None
    z: List[Optional[int]] = [None, n]
    t: Tuple[Optional[int], float] = (None, 1.5)
    w: int
    w = 3
    if n > 1:
        y = n
        w = 4
    return x, y, z, t, w
""",
        [(1,), (2,)],
    ),
    "declared in front of an if": (
        """
def f(n: int):
    w: Optional[int]
    if n > 1:
        w = 4
    else:
        w = None
    return w
""",
        [(1,), (2,)],
    ),
    "types change in a block": (
        """
def f(n: int):
    x = n + 1
    y = x * 2
    x = "text"
    return x + str(y)
""",
        [(1,)],
    ),
    "none results": (
        """
def f(n: int):
    if n > 1:
        return n
""",
        [(1,), (2,)],
    ),
    "pass": ("\ndef f(n: int):\n    pass\n", [(1,)]),
    "del": (
        """
def f(n: int):
    a = n + 1
    b = a
    del a
    a = 3
    return a + b
""",
        [(1,)],
    ),
    "defaults and keywords": (
        """
def g(a: int, b: int = 2, c: float = 1.5, s: str = "x"):
    return str(a) + str(b) + str(c) + s

def f(n: int):
    return g(n), g(n, 5), g(n, c=2.5), g(b=1, a=n, s="y"), g(*(n, 3))
""",
        [(1,)],
    ),
    "functions call functions": (
        """
def square(x: int) -> int:
    return x * x

def total(x: List[int]) -> int:
    s = 0
    for v in x:
        s += square(v)
    return s

def f(x: List[int]):
    return total(x) + square(len(x))
""",
        [([],), ([1, 2, 3],)],
    ),
    "assert holds": (
        """
def f(n: int):
    assert n > 0, "positive"
    assert n < 100
    return n
""",
        [(5,)],
    ),
    "raise in an arm": (
        """
def f(n: int):
    if n > 0:
        y = n * 2
    else:
        raise ValueError("n must be positive")
    return y
""",
        [(5,)],
    ),
    "collatz": (
        """
def f(n: int):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps
""",
        [(1,), (27,)],
    ),
    "sieve": (
        """
def f(n: int):
    flags = [True] * (n + 1)
    out: List[int] = []
    for i in range(2, n + 1):
        if not flags[i]:
            continue
        out.append(i)
        j = i * i
        while j <= n:
            flags[j] = False
            j += i
    return out
""",
        [(1,), (30,)],
    ),
    "binary search": (
        """
def f(x: List[int], v: int):
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] == v:
            return middle
        elif x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return -1
""",
        [([], 1), ([1, 3, 5, 7], 5), ([1, 3, 5, 7], 4), ([1, 3, 5, 7], 7)],
    ),
    "class": (
        """
class Point:
    def __init__(self, x: int, y: int):
        self.x = x
        self.y = y
    def norm(self) -> int:
        return self.x * self.x + self.y * self.y
    def __add__(self, o: "Point"):
        return Point(self.x + o.x, self.y + o.y)
    def __getitem__(self, i: int) -> int:
        return self.x if i == 0 else self.y
    def __setitem__(self, i: int, v: int):
        if i == 0:
            self.x = v
        else:
            self.y = v
    def __len__(self) -> int:
        return 2
    def __contains__(self, v: int) -> bool:
        return self.x == v or self.y == v
    def __lt__(self, o: "Point") -> bool:
        return self.norm() < o.norm()
    def __neg__(self):
        return Point(-self.x, -self.y)
    def __iadd__(self, o: "Point"):
        self.x += o.x
        return self

def f(a: int):
    p = Point(a, 2)
    q = p + Point(1, 1)
    q.x += 5
    q[1] = 9
    q[0] += 100
    p += q
    n = 0
    for i in range(len(q)):
        n += q[i]
    return p.norm(), q.x, q[1], len(q), 9 in q, p < q, (-q).x, n
""",
        [(3,), (5,)],
    ),
    "with": (
        """
class Context:
    def __init__(self, log: List[str]):
        self.log = log
    def __enter__(self):
        self.log.append("enter")
        return 7
    def __exit__(self, t: Any, v: Any, b: Any):
        self.log.append("exit")

def f(n: int):
    log: List[str] = []
    for i in range(3):
        with Context(log) as v:
            if i == n:
                continue
            if i == n + 1:
                break
            log.append(str(i + v))
            with Context(log), Context(log):
                if n == 5:
                    return log
        log.append("behind")
    return log
""",
        [(0,), (1,), (5,), (9,)],
    ),
    "named tuple": (
        """
class P(NamedTuple):
    x: int
    y: float

def f(n: int):
    p = P(n, 3.0)
    q = P(y=1.5, x=2)
    a, b = p
    return p.x + q.x, p.y, q[1], a, b
""",
        [(1,)],
    ),
    "enum": (
        """
class Color(Enum):
    RED = 1
    GREEN = 2

def f(n: int):
    c = Color.RED if n == 1 else Color.GREEN
    return c == Color.RED, c.value, c.name, c is Color.GREEN
""",
        [(1,), (2,)],
    ),
    "generators": (
        """
def f(x: List[int]):
    return sum([a for a in x]), list(a * 2 for a in x), max([a for a in x]), all([a > 0 for a in x]), sorted(x), any([a > 2 for a in x])
""",
        [([1, 2, 3],), ([-1],)],
    ),
    "loop variables behind the loop": (
        """
def f(x: int):
    y = -1
    for y in range(x):
        pass
    i = 100
    z = [[i * j for i in range(x)] for j in range(2)]
    return y, i, z
""",
        [(0,), (3,)],
    ),
    "empty displays as arguments": (
        """
def g(x: List[float], d: Dict[str, int]):
    return len(x) + len(d)

def f(n: int):
    y = [n]
    y.extend([])
    return g([], {}), g([1.0], {"a": 1}), y
""",
        [(1,)],
    ),
    "conditions of constants": (
        """
def f(x: Optional[int]):
    if False:
        y = "never"
    else:
        y = 1
    if isinstance(x, int) or x is None:
        y += 1
    if True and x is not None and x > 2 and y == 2:
        y = 5
    while False:
        y = 7
    return y
""",
        [(1,), (None,), (3,)],
    ),
}

# The same with tensors: arguments are nested lists of floats (`[...]` → tensor).
TENSOR_PROGRAMS = {
    "tensor arithmetic": (
        """
def f(x, y):
    z = x + y * 2 - 1
    z = z / 2 + x.sum() + (x @ y) - (-x)
    return z, x > y, x == y, x[0] * 3, 2 - x, x ** 2
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.0], [3.0, 5.0]])],
    ),
    "in place": (
        """
def f(x, y):
    z = x
    x += y
    x *= 2
    x -= 1
    x /= 4
    x[0] += 5
    x[1, 0] *= 3
    return x, z
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.0], [3.0, 5.0]])],
    ),
    "indexing": (
        """
def f(x, y):
    a = x[1]
    b = x[1, 0]
    c = x[:, 1]
    d = x[..., 0]
    e = x[None, 0:1, :, None]
    g = x[x > y]
    h = x[::2, -1]
    i = x[..., None]
    j = x[None, ..., 0, None]
    k = x[[1, 0]]
    l = x[:, [0]]
    return a, b, c, d, e, g, h, i, j, k, l
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 5.0], [2.0, 5.0]])],
    ),
    "subscript assignment": (
        """
def f(x, y):
    z = x.clone()
    z[0] = 7
    z[1, 1] = y[0, 0]
    w = x.clone()
    w[:, 0] = y[:, 1]
    v = x.clone()
    v[x > y] = -1
    u = x.clone()
    u[x > 2] += 10
    t = x.clone()
    t[...] = 0.5
    return z, w, v, u, t
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 5.0], [2.0, 5.0]])],
    ),
    "tensor conditions": (
        """
def f(x, y):
    if x.sum() > y.sum():
        z = x
    else:
        z = y
    n = 0
    while z.sum() < 100:
        z = z * 2
        n += 1
        if z.max() > 60:
            break
    return z, n, 1 if x.sum() > 3 else 2, not bool(x.sum() > 3)
""",
        [([[1.0, 2.0]], [[0.5, 5.0]]), ([[10.0, 2.0]], [[0.5, 5.0]])],
    ),
    "over a tensor": (
        """
def f(x, y):
    s = 0.0
    rows: List[torch.Tensor] = []
    for row in x:
        rows.append(row * 2)
        s += float(row.sum())
    for i in range(x.size(0)):
        s += float(x[i, 0])
    return torch.stack(rows), s, len(x), x.shape[0], x.dim()
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5]])],
    ),
    "numbers of tensors": (
        """
def f(x, y):
    return int(x.sum()), float(y.sum()), bool(x.sum() > 1), x.sum().item()
""",
        [([[1.0, 2.0]], [[0.5]])],
    ),
    "functions and keywords": (
        """
def f(x, y):
    a = torch.add(x, y, alpha=2)
    b = torch.relu(x - 2).sum(dim=[0])
    c = x.view(-1).unsqueeze(0).transpose(0, 1)
    d = torch.zeros([2, 2], dtype=torch.float32) + torch.ones(2, 2)
    e, i = x.max(dim=1)
    g = torch.cat([x, y], dim=0)
    return a, b, c, d, e, i, g, x.mean(), torch.nn.functional.softmax(x, dim=1)
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 5.0], [2.0, 5.0]])],
    ),
    "early return": (
        """
def f(x, y):
    for i in range(5):
        if float(x.sum()) > 20:
            return x
        x = x + y
    return x * 0
""",
        [([[1.0, 2.0]], [[0.5, 5.0]]), ([[10.0, 2.0]], [[0.0, 0.0]])],
    ),
}
