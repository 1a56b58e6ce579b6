"""Sizes as expressions of the sizes that vary, and how to find the expression of a number that was seen at several sizes."""

import dataclasses
import fractions
import itertools
import math

__all__ = ["FloatExpr", "RoundedExpr", "SizeExpr", "Symbol", "ValueRanges", "fit", "fit_float", "fit_rounded", "int_oo", "remainders"]


class _Infinity(float):
    def __repr__(self):
        return "int_oo" if self > 0 else "-int_oo"

    __str__ = __repr__

    def __neg__(self):
        return _Infinity("-inf" if self > 0 else "inf")


int_oo = _Infinity("inf")


class Symbol(str):
    """The name of a size that varies."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


@dataclasses.dataclass(frozen=True)
class ValueRanges:
    """The least and the greatest value of a symbol; int_oo where there is no limit."""

    lower: object
    upper: object

    is_int = property(lambda self: True)

    def __repr__(self):
        return f"VR[{self.lower}, {self.upper}]"


@dataclasses.dataclass(frozen=True)
class SizeExpr:
    """factor * ((sum of coefficient * product of symbols + inner) // divisor) + outer, of whole numbers.

    terms: ((coefficient, (symbol, …)), …), not empty.
    """

    terms: tuple
    inner: int = 0
    divisor: int = 1
    factor: int = 1
    outer: int = 0

    @classmethod
    def of(cls, symbol):
        """The symbol itself."""
        return cls(((1, (symbol,)),))

    @property
    def symbol(self):
        """The symbol that this is, or None."""
        (coefficient, symbols), *others = self.terms
        plain = not others and coefficient == 1 and len(symbols) == 1 and (self.inner, self.divisor, self.factor, self.outer) == (0, 1, 1, 0)
        return symbols[0] if plain else None

    def value(self, known):
        """The number for {symbol: number}."""
        total = sum(c * math.prod(known[s] for s in symbols) for c, symbols in self.terms) + self.inner
        return self.factor * (total // self.divisor) + self.outer

    def symbols(self):
        """All symbols in it."""
        return {s for _, symbols in self.terms for s in symbols}

    def __str__(self):
        parts = [("" if abs(c) == 1 else f"{abs(c)}*") + "*".join(symbols) for c, symbols in self.terms]
        text = "".join(f" {'-' if c < 0 else '+'} {p}" for (c, _), p in zip(self.terms, parts))
        text = text.removeprefix(" + ") if text.startswith(" + ") else "-" + text.removeprefix(" - ")
        if self.inner:
            text += f" {'+' if self.inner > 0 else '-'} {abs(self.inner)}"
        if self.divisor != 1:
            text = f"({text})//{self.divisor}" if " " in text or "*" in text else f"{text}//{self.divisor}"
            text = f"({text})" if self.factor != 1 or self.outer else text
        if self.factor != 1:
            text = f"{self.factor}*{text}"
        if self.outer:
            text += f" {'+' if self.outer > 0 else '-'} {abs(self.outer)}"
        return text

    __repr__ = __str__


@dataclasses.dataclass(frozen=True)
class FloatExpr:
    """(size / divisor) ** power, with a power of 1, 1/2, -1 or -1/2."""

    size: SizeExpr
    divisor: int = 1
    power: float = 1

    symbol = None

    def value(self, known):
        """The number for {symbol: number}."""
        number = self.size.value(known) / self.divisor
        number = math.sqrt(number) if abs(self.power) == 0.5 else number
        return 1 / number if self.power < 0 else number

    def symbols(self):
        """All symbols in it."""
        return self.size.symbols()

    def __str__(self):
        text = str(self.size) if self.divisor == 1 else f"FloatTrueDiv({self.size}, {self.divisor})"
        text = f"OpaqueUnaryFn_sqrt({text})" if abs(self.power) == 0.5 else f"ToFloat({text})" if self.power == self.divisor == 1 else text
        return f"1/({text})" if self.power < 0 else text

    __repr__ = __str__


@dataclasses.dataclass(frozen=True)
class RoundedExpr:
    """A quotient, rounded as Python's `round` does."""

    number: FloatExpr

    symbol = None

    def value(self, known):
        """The number for {symbol: number}."""
        return round(self.number.value(known))

    def symbols(self):
        """All symbols in it."""
        return self.number.symbols()

    def __str__(self):
        return f"RoundToInt({self.number})"

    __repr__ = __str__


def fit_rounded(samples, values):
    """The RoundedExpr that gives values[i] for samples[i], None where no rule does."""
    for symbol, divisor in itertools.product(samples[0], (2, 3, 4, 5, 6, 7, 8, 10, 16, 32)):
        found = RoundedExpr(FloatExpr(SizeExpr.of(symbol), divisor))
        if all(found.value(s) == v for s, v in zip(samples, values)):
            return found
    return None


def fit_float(samples, values, precision=1e-15):
    """The number, or the SizeExpr or FloatExpr, that gives values[i] for samples[i] up to a relative error; None where no rule does."""
    if all(v == values[0] for v in values):
        return values[0]
    for symbol in samples[0]:  # a value of a tensor
        if all(v == sample[symbol] for v, sample in zip(values, samples)) and isinstance(samples[0][symbol], float):
            return SizeExpr.of(symbol)
    samples = [{s: n for s, n in sample.items() if not isinstance(n, float)} for sample in samples]
    if not samples[0] or not all(0 < v < math.inf for v in values):
        return None
    for power, divisor in itertools.product((1, 0.5, -1, -0.5), (1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 32, 64, 100)):
        sizes = [v ** (1 / power) * divisor for v in values]
        numbers = list(map(round, sizes))
        if all(math.isclose(a, b, rel_tol=max(1e-12, 4 * precision)) for a, b in zip(sizes, numbers)):
            size = fit(samples, numbers)
            found = FloatExpr(size, divisor, power) if isinstance(size, SizeExpr) else None
            if found is not None and all(math.isclose(found.value(s), v, rel_tol=precision) for s, v in zip(samples, values)):
                return found
    return None


def _linear(bases, values):
    """(a, b) with value == a * base + b at all of them, a whole numbers and not 0; None where there is none."""
    first = next((i for i, x in enumerate(bases) if x != bases[0]), None)
    if first is None:
        return None
    a, rest = divmod(values[first] - values[0], bases[first] - bases[0])
    if rest or a == 0:
        return None
    b = values[0] - a * bases[0]
    return (a, b) if all(v == a * x + b for x, v in zip(bases, values)) else None


def _of_products(samples, values, symbols):
    for count in (1, 2, 3, 4):
        for product in itertools.combinations_with_replacement(symbols, count):
            found = _linear([math.prod(s[x] for x in product) for s in samples], values)
            if found is not None:
                return SizeExpr(((found[0], product),), found[1])
    return None


def _of_sum(samples, values, symbols):
    """An expression with a term for each symbol; samples 1, 2, … differ from the first in one symbol each."""
    terms = []
    for symbol in symbols:
        other = next((i for i, s in enumerate(samples) if all((s[x] != samples[0][x]) == (x == symbol) for x in symbols)), None)
        if other is None:
            return None
        a, rest = divmod(values[other] - values[0], samples[other][symbol] - samples[0][symbol])
        if rest:
            return None
        if a:
            terms.append((a, (symbol,)))
    if len(terms) < 2:
        return None
    found = SizeExpr(tuple(terms))
    found = dataclasses.replace(found, inner=values[0] - found.value(samples[0]))
    return found if all(found.value(s) == v for s, v in zip(samples, values)) else None


def _of_polynomial(samples, values, symbols):
    """A sum of multiples of products, each symbol at most once in one: what the samples are enough to tell, and one more of them agrees with."""
    products = [p for count in range(len(symbols) + 1) for p in itertools.combinations(symbols, count)]
    rows = list(dict.fromkeys((*(math.prod(s[x] for x in p) for p in products), v) for s, v in zip(samples, values)))
    if len(symbols) > 4 or len(rows) <= len(products):
        return None
    rows = [list(map(fractions.Fraction, row)) for row in rows]
    for column in range(len(products)):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[column])]
    found = [row[-1] for row in rows]
    if any(found[len(products) :]) or any(x.denominator != 1 for x in found):
        return None
    terms = tuple((int(c), p) for c, p in reversed(list(zip(found, products))) if c and p)
    return SizeExpr(terms, int(found[0])) if terms else None


def _of_parts(samples, values, symbols, divisors):
    for symbol in symbols:
        for divisor in divisors:
            for shift in range(divisor):
                found = _linear([(s[symbol] + shift) // divisor for s in samples], values)
                if found is not None:
                    return SizeExpr(((1, (symbol,)),), shift, divisor, *found)
    return None


def fit(samples, values, divisors=(2, 3, 4, 5, 6, 7, 8, 16, 32)):
    """The number or SizeExpr that gives values[i] for samples[i] ({symbol: number}); None where no rule of these forms does.

    The forms: a constant; a times a product of symbols, plus b; a sum of multiples, of
    products too; a * ((s + b) // c) + d.
    """
    if all(v == values[0] for v in values):
        return values[0]
    symbols = list(samples[0])
    return _of_products(samples, values, symbols) or _of_sum(samples, values, symbols) or _of_polynomial(samples, values, symbols) or _of_parts(samples, values, symbols, divisors)


def remainders(divisors, samples, ranges):
    """Further samples, with which a rule of quotients has been seen at all remainders: sizes around the first sample's, within the ranges.

    divisors: {symbol: the greatest that a rule divides it by}.
    """
    found = []
    for symbol, divisor in divisors.items():
        size, limits = samples[0][symbol], ranges.get(symbol)
        last = size + 2 * divisor if limits is None or limits.upper == int_oo else min(size + 2 * divisor, limits.upper)
        least = 0 if limits is None else max(limits.lower, 2)
        found += [{**samples[0], symbol: n} for n in range(max(last - 2 * divisor, least), last + 1)]
    return [sample for sample in found if sample not in samples]
