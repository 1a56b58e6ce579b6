"""Programs for what makes execution fast: registers that are taken, swapped and shared, functions inlined into others. Run as script_programs."""

PROGRAMS = {
    "values that change places": (
        """
def f(n: int, s: str, t: str):
    a, b, c = 1, 2, 3
    x, y = 0.5, 1.5
    l, m = [1], [2]
    for i in range(n):
        a, b, c = c, a, b
        x, y = y, x + y
        s, t = t, s + t
        l, m = m, l
        l.append(i)
    return a, b, c, x, y, s, t, l, m
""",
        [(0, "p", "q"), (1, "p", "q"), (4, "p", "q"), (5, "", "q")],
    ),
    "strings that grow": (
        """
def f(n: int, s: str):
    kept: List[str] = []
    first = s
    other = s
    for i in range(n):
        s = s + "ab"
        other = other + other
        if i % 3 == 0:
            kept.append(s)
        if len(s) > 9:
            s = s[2:5]
        if len(other) > 20:
            other = "x"
    s += s
    return s, kept, first, other
""",
        [(0, "p"), (1, "p"), (20, "start"), (7, "")],
    ),
    "constants stay what they are": (
        """
def g():
    s = "constant"
    s = s + "!"
    return s

def f(n: int):
    out: List[str] = []
    for i in range(n):
        s = "a"
        s = s + "b"
        out.append(s + g())
    return out
""",
        [(3,)],
    ),
    "arms that give and keep": (
        """
def f(n: int, s: str):
    out: List[str] = []
    for i in range(n):
        t = s + str(i)
        if i % 2 == 0:
            u = t
        else:
            u = "odd"
        if i % 3 == 0:
            v = u
        else:
            v = u + t
        out.append(u)
        out.append(v)
        s = v if len(v) < 6 else u
    return out, s
""",
        [(0, "a"), (1, "a"), (9, "b")],
    ),
    "small functions": (
        """
def square(x: int) -> int:
    return x * x

def clip(x: int, low: int, high: int) -> int:
    if x < low:
        return low
    if x > high:
        return high
    return x

def both(x: int):
    return square(x), clip(square(x), 3, 20)

def optional(x: Optional[int]) -> int:
    if x is None:
        return -1
    return x + 1

def mixed(x: float, l: List[int]) -> float:
    l.append(len(l))
    return x + len(l)

def f(n: int):
    s = 0
    t = 0.0
    l: List[int] = []
    for i in range(n):
        a, b = both(i)
        s += a - b + optional(i) + optional(None)
        t += mixed(float(i), l)
    return s, t, l, square(square(n))
""",
        [(0,), (1,), (8,)],
    ),
    "functions in functions": (
        """
def a(x: int) -> int:
    return x + 1

def b(x: int) -> int:
    s = 0
    for i in range(x):
        s += a(i)
        if s > 20:
            break
    return s

def c(x: int) -> int:
    return a(b(a(x))) - b(x)

def f(n: int):
    return [c(i) for i in range(n)], c(c(n))
""",
        [(0,), (3,), (9,)],
    ),
    "lists of one value": (
        """
def f(n: int):
    a = [False] * n
    b = [1.5] * (n - 3)
    c = n * ["s"]
    d = [[0]] * n
    if n > 0:
        a[0] = True
        d[0].append(1)
    return a, b, c, d, list(range(n)), sum([1] * n)
""",
        [(0,), (1,), (6,)],
    ),
    "truth values as numbers": (
        """
def f(a: bool, b: bool, n: int):
    return a + b, a - b, a * b, a * n, n - b, a / 2, a + 0.5, a == b, a < n
""",
        [(True, False, 3), (True, True, 0), (False, False, -2)],
    ),
}
