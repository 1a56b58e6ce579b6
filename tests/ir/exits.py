"""Random programs full of early exits. They end: loops are counted."""

import random


def program(seed):
    rng = random.Random(seed)
    lines = ["def f(n: int, m: int):", "    s = 0", "    t = 1"]
    count = [0]

    def block(indent, depth, in_loop):
        pad = "    " * indent
        for _ in range(rng.randint(1, 3)):
            choice = rng.random()
            if depth > 0 and choice < 0.25:
                count[0] += 1
                lines.append(f"{pad}for i{count[0]} in range({rng.choice(['n', 'm', '3'])}):")
                lines.append(f"{pad}    s += i{count[0]}")
                block(indent + 1, depth - 1, True)
            elif depth > 0 and choice < 0.4:
                count[0] += 1
                k = f"k{count[0]}"
                lines.append(f"{pad}{k} = 0")
                lines.append(f"{pad}while {k} < {rng.choice(['n', 'm'])}:")
                lines.append(f"{pad}    {k} += 1")
                block(indent + 1, depth - 1, True)
            elif depth > 0 and choice < 0.75:
                lines.append(f"{pad}if {condition()}:")
                block(indent + 1, depth - 1, in_loop)
                if rng.random() < 0.5:
                    lines.append(f"{pad}else:")
                    block(indent + 1, depth - 1, in_loop)
            elif choice < 0.85:
                exits = ["return s", "return s * 1000 + t"] + (["break", "continue"] * 2 if in_loop else [])
                lines.append(f"{pad}if {condition()}:")
                lines.append(f"{pad}    {rng.choice(exits)}")
            else:
                lines.append(pad + rng.choice(["s += 1", "t = t * 3 % 101", "s, t = t, s", "s += t"]))

    def condition():
        return f"({rng.choice(['s', 't', 's + t', 'n', 'm'])} + {rng.randint(0, 5)}) % {rng.randint(2, 5)} == {rng.randint(0, 1)}"

    block(1, 4, False)
    lines.append("    return s + 100000 * t")
    return "\n".join(lines) + "\n"
