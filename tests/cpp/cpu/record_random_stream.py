"""Prints random_stream_expected.inc: what PyTorch's CPU generator gives for a seed.

Run by hand with a Python that has PyTorch (recorded with 2.13.0, CPU) and redirect the output; tests only read the result.
One row: distribution, dtype, n, parameters, FNV-1a of all bytes, the 31 bits drawn next, first three and last three values.
Processors with Intel's MKL kernels draw bernoulli_(p) and exponential_ differently; record on another one.
"""

import torch

SEED = 42
SIZES = (1, 15, 16, 17, 100)
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
REAL = FLOATING + (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def fnv(tensor):
    value = 0xCBF29CE484222325
    for byte in tensor.contiguous().view(torch.uint8).flatten().tolist():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def row(name, dtype, n, a, b, tensor):
    following = torch.empty(1, dtype=torch.int32).random_().item()
    values = tensor.flatten().tolist()
    shown = values[:3] + values[-3:]
    if dtype.is_floating_point:
        literals = ", ".join(float(v).hex() for v in shown)
    else:
        literals = ", ".join(f"{int(v)}." for v in shown)
    kind = str(dtype).removeprefix("torch.")
    print(f'{{"{name}", "{kind}", {n}, {a!r}, {b!r}, 0x{fnv(tensor):016x}u, {following}, {{{literals}}}}},')


def fill(name, dtype, n, a, b, method, *args, strided=False):
    torch.manual_seed(SEED)
    tensor = torch.empty(2 * n, dtype=dtype)[::2] if strided else torch.empty(n, dtype=dtype)
    getattr(tensor, method)(*args)
    row(name, dtype, n, a, b, tensor.clone(memory_format=torch.contiguous_format))


def main():
    print("// Made by record_random_stream.py.")
    for dtype in FLOATING:
        for n in SIZES:
            for a, b in ((0.0, 1.0), (-1.3, 2.9)):
                fill("uniform", dtype, n, a, b, "uniform_", a, b)
            for a, b in ((0.0, 1.0), (0.3, 1.37)):
                fill("normal", dtype, n, a, b, "normal_", a, b)
            fill("serial_normal", dtype, n, 0.3, 1.37, "normal_", 0.3, 1.37, strided=True)
            fill("log_normal", dtype, n, 0.3, 0.7, "log_normal_", 0.3, 0.7)
            fill("cauchy", dtype, n, 0.5, 2.5, "cauchy_", 0.5, 2.5)
            fill("exponential", dtype, n, 1.7, 0.0, "exponential_", 1.7)
    for dtype in REAL:
        for n in SIZES:
            fill("geometric", dtype, n, 0.3, 0.0, "geometric_", 0.3)
            torch.manual_seed(SEED)
            row("randperm", dtype, n, 0.0, 0.0, torch.randperm(n, dtype=dtype))
    for dtype in REAL + (torch.bool,):
        for n in SIZES:
            fill("bernoulli", dtype, n, 0.3, 0.0, "bernoulli_", 0.3)
            fill("random", dtype, n, 0.0, 0.0, "random_")
            probabilities = torch.arange(n, dtype=torch.float64) / n
            fill("bernoulli_float_tensor", dtype, n, 0.0, 0.0, "bernoulli_", probabilities.float())
            fill("bernoulli_double_tensor", dtype, n, 0.0, 0.0, "bernoulli_", probabilities)
    ranges = [
        (torch.int64, 0, 10), (torch.int64, 0, 2**28 - 1), (torch.int64, 0, 2**28), (torch.int64, -(2**40), 2**41 + 12345),
        (torch.int64, -(2**62), 2**62 + 7), (torch.int32, -7, 2**31 - 1), (torch.int8, -100, 27), (torch.uint8, 3, 250),
        (torch.bool, 0, 2), (torch.float32, 0, 1000), (torch.float32, 0, 2**25), (torch.float64, -(2**54) - 1, 2**54 + 3),
        (torch.float16, -300, 2051), (torch.bfloat16, 0, 260), (torch.bfloat16, -519, 519), (torch.bfloat16, 259, 1000),
    ]
    for dtype, low, high in ranges:
        for n in (1, 100):
            fill("random_range", dtype, n, low, high, "random_", low, high)
    for dtype in FLOATING:
        weights = ((torch.arange(100) * 37) % 11).to(dtype).reshape(2, 50)
        for samples in (1, 5, 40):
            for replacement in (True, False):
                torch.manual_seed(SEED)
                drawn = torch.multinomial(weights, samples, replacement=replacement)
                name = "multinomial_with_replacement" if replacement else "multinomial_without_replacement"
                kind = str(dtype).removeprefix("torch.")
                following = torch.empty(1, dtype=torch.int32).random_().item()
                values = drawn.flatten().tolist()
                shown = ", ".join(f"{v}." for v in (values[:3] + values[-3:]))
                print(f'{{"{name}", "{kind}", {samples}, 0, 0, 0x{fnv(drawn):016x}u, {following}, {{{shown}}}}},')


if __name__ == "__main__":
    main()
