"""Scripts beside Python: the same functions, run by both, and the time of compiling.

    python benchmarks/ir/scripts.py
    CRESSET_NATIVE=0 python benchmarks/ir/scripts.py      # the interpreter alone
"""

from __future__ import annotations

import time
from typing import Dict, List

from cresset import _C

# name: (source, argument)
PROGRAMS = {
    "collatz": (
        """
def f(n: int):
    total = 0
    for i in range(1, n):
        k = i
        while k != 1:
            if k % 2 == 0:
                k = k // 2
            else:
                k = 3 * k + 1
            total += 1
    return total
""",
        3000,
    ),
    "float while": (
        """
def f(n: int):
    x = 1.0
    s = 0.0
    i = 0
    while i < n:
        x = x * 1.0000001 + 0.5
        s += x / (1.0 + x)
        i += 1
    return s
""",
        300000,
    ),
    "newton": (
        """
def f(n: int):
    s = 0.0
    for i in range(n):
        a = float(i) + 1.0
        x = a
        while abs(x * x - a) > 1e-9 * a:
            x = 0.5 * (x + a / x)
        s += x
    return s
""",
        20000,
    ),
    "sieve": (
        """
def f(n: int):
    flags = [True] * (n + 1)
    c = 0
    for i in range(2, n + 1):
        if not flags[i]:
            continue
        c += 1
        j = i * i
        while j <= n:
            flags[j] = False
            j += i
    return c
""",
        200000,
    ),
    "mandel": (
        """
def f(n: int):
    c = 0
    for i in range(n):
        for j in range(n):
            cr = 3.0 * float(i) / float(n) - 2.0
            ci = 2.0 * float(j) / float(n) - 1.0
            zr = 0.0
            zi = 0.0
            k = 0
            while k < 50 and zr * zr + zi * zi < 4.0:
                t = zr * zr - zi * zi + cr
                zi = 2.0 * zr * zi + ci
                zr = t
                k += 1
            c += k
    return c
""",
        80,
    ),
    "breaks": (
        """
def f(n: int):
    s = 0
    for i in range(n):
        for j in range(20):
            if j * j > i % 100:
                break
            if j % 3 == 1:
                continue
            s += j
    return s
""",
        20000,
    ),
    "listsum": (
        """
def f(n: int):
    x: List[float] = []
    for i in range(n):
        x.append(float(i) * 0.5)
    s = 0.0
    for v in x:
        s += v
    return s
""",
        200000,
    ),
    "dict": (
        """
def f(n: int):
    d: Dict[int, int] = {}
    for i in range(n):
        k = i % 100
        if k in d:
            d[k] += 1
        else:
            d[k] = 1
    return d[5]
""",
        20000,
    ),
    "calls": (
        """
def g(x: int) -> int:
    return x * 2 + 1
def f(n: int):
    s = 0
    for i in range(n):
        s += g(i)
    return s
""",
        100000,
    ),
    "strings": (
        """
def f(n: int):
    s = ""
    for i in range(n):
        s = s + "a"
        if len(s) > 50:
            s = s[10:20]
    return s
""",
        50000,
    ),
}


def best(functions, n, rounds=9):
    """The best CPU time of each, in turn with the others so that the machine's other load falls on all, and their results."""
    times, results = [float("inf")] * len(functions), [None] * len(functions)
    for _ in range(rounds):
        for i, f in enumerate(functions):
            start = time.process_time()
            results[i] = f(n)
            times[i] = min(times[i], time.process_time() - start)
    return times, results


def programs():
    for name, (source, n) in PROGRAMS.items():
        namespace = {"List": List, "Dict": Dict}
        exec(source, namespace)
        f = _C.CompilationUnit(source).f
        (ours, theirs), (got, expected) = best((f, namespace["f"]), n)
        assert got == expected, name
        print(f"{name:12} {ours * 1e3:8.2f} ms   Python {theirs * 1e3:8.2f} ms   {theirs / ours:5.1f}x")


def compiling():
    """Time grows with the program, not faster."""
    for count in (500, 1000, 2000):
        lines = ["def f(a: int):", "    s = 0"]
        for i in range(count):
            lines += [f"    x{i} = a + {i}", f"    if x{i} == -1:", f"        return {i}", f"    if a > {i}:", f"        s += x{i}"]
        source = "\n".join([*lines, "    return s"])
        (took,), _ = best((_C.CompilationUnit,), source, rounds=1)
        print(f"{len(lines):6} lines {took * 1e3:8.1f} ms   {took / len(lines) * 1e6:6.1f} us a line")


if __name__ == "__main__":
    programs()
    compiling()
