"""Sobol sequences: points that fill the unit cube more evenly than random ones, plain or scrambled.

The direction numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput.
30, 2635-2654 (2008), criterion D(6), for up to 21201 dimensions; `_sobol_directions.bin` has them packed (see `_initial_numbers`).
"""

import functools
import pathlib

import cresset

__all__ = ["SobolEngine"]

_BITS = 30
_MOST = 18  # the highest degree of a polynomial, hence the most initial numbers of a dimension
_DATA = pathlib.Path(__file__).with_name("_sobol_directions.bin")


@functools.cache
def _data():
    return _DATA.read_bytes()


def _initial_numbers(dimension):
    """(polynomial, [m_1, m_2, …]) of dimensions 2, 3, …; the first dimension has none.

    A dimension takes five bits for its polynomial's degree d, d - 1 bits for the coefficients between the first and the last, and for each
    m_k, which is odd and less than 2**k, the k - 1 bits above the lowest; bits are counted from the lowest of each byte.
    """
    data, at = _data(), 0

    def take(bits):
        nonlocal at
        first = at >> 3
        value = int.from_bytes(data[first : first + 8], "little") >> (at & 7) & ((1 << bits) - 1)
        at += bits
        return value

    for _ in range(dimension - 1):
        degree = take(5)
        polynomial = 1 << degree | take(degree - 1) << 1 | 1
        yield polynomial, [take(k) << 1 | 1 for k in range(degree)]


def _direction_numbers(dimension):
    """The matrix [dimension, 30] of direction numbers, column k scaled by 2**(29 - k)."""
    rows = [[1] * _BITS]
    for polynomial, m in _initial_numbers(dimension):
        degree = len(m)
        taps = [k for k in range(1, degree) if polynomial >> (degree - k) & 1]
        row = m[:_BITS]
        for j in range(degree, _BITS):
            value = row[j - degree] ^ row[j - degree] << degree
            for k in taps:
                value ^= row[j - k] << k
            row.append(value)
        rows.append(row)
    scale = 2 ** cresset.arange(_BITS - 1, -1, -1)
    return cresset.tensor(rows, dtype=cresset.long) * scale


def _odd_parity(values):
    """Is the number of ones in each 30-bit number odd? 0 or 1."""
    for shift in (16, 8, 4, 2, 1):
        values = values ^ values >> shift
    return values & 1


class SobolEngine:
    """Draws from the Sobol sequence of `dimension` (1 to 21201, ValueError otherwise) numbers a point, each in [0, 1).

    `scramble`: by a random linear transformation and a random shift (A. B. Owen 1998), chosen by `seed` where one is given.
    """

    MAXBIT = _BITS
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        cpu = cresset.device("cpu")
        with cpu:
            self.sobolstate = _direction_numbers(dimension)
            if scramble:
                self._scramble()
            else:
                self.shift = cresset.zeros(dimension, dtype=cresset.long)
        self.quasi = self.shift.clone(memory_format=cresset.contiguous_format)
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self):
        generator = None
        if self.seed is not None:
            generator = cresset.Generator()
            generator.manual_seed(self.seed)
        shifts = cresset.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (shifts * 2 ** cresset.arange(_BITS)).sum(1)
        lower = cresset.randint(2, (self.dimension, _BITS, _BITS), generator=generator).tril()
        lower.diagonal(dim1=1, dim2=2).fill_(1)
        masks = (lower * 2 ** cresset.arange(_BITS - 1, -1, -1)).sum(2)  # row p of each matrix as a number, its first column the highest bit
        mixed = cresset.zeros_like(self.sobolstate)
        for p in range(_BITS):
            mixed += _odd_parity(self.sobolstate & masks[:, p : p + 1]) << (_BITS - 1 - p)
        self.sobolstate = mixed

    def _states(self, first, n):
        """The integers of points first, …, first + n - 1, a row each: bit j of a point's Gray code adds column j."""
        number = cresset.arange(first, first + n, device="cpu")
        code = number ^ number >> 1
        points = self.shift.expand(n, self.dimension).clone()
        for j in range(max(first + n - 1, 0).bit_length()):
            points ^= (code >> j & 1).unsqueeze(1) * self.sobolstate[:, j]
        return points

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points, a tensor [n, dimension] of `dtype` (the default type), written to `out` where that is given."""
        dtype = dtype or cresset.get_default_dtype()
        states = self._states(self.num_generated, n)
        points = states.to(dtype) * 2.0**-_BITS if dtype.is_floating_point else (states / 2**_BITS).to(dtype)
        if n > 0:
            self.quasi.copy_(states[-1])
        self.num_generated += n
        if out is None:
            return points if cresset.get_default_device().type == "cpu" else points.to(cresset.get_default_device())
        return out.resize_(points.shape).copy_(points)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; ValueError unless the number of points drawn then is a power of two, which keeps the sequence balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been "
                f"previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Begin again at the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leave out the next `n` points."""
        if n > 0:
            self.quasi.copy_(self._states(self.num_generated + n - 1, 1)[0])
        self.num_generated += n
        return self

    def __repr__(self):
        facts = [f"dimension={self.dimension}"]
        if self.scramble:
            facts.append("scramble=True")
        if self.seed is not None:
            facts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(facts)})"
