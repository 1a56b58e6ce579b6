"""Other calls of the same operator: what a kernel that is right for its samples gets wrong.

Each kind of variant is a column of the card. A variant is a Trial with other arguments, or with the same ones laid out otherwise in memory;
what the CPU refuses is none.
"""

import itertools
import re

import cresset
from cresset.testing.samples import Call, Maker

from .checks import CHECKS, REFUSALS

__all__ = ["KINDS", "variants"]


# --- sizes ----------------------------------------------------------------------------------------------------------------------------

# Sizes of a sample, by how many of them its largest tensor has, become the next of these: past the blocks and vectors of kernels, with odd
# tails. "long" and "tall" have one size beyond 1,000, the largest or the smallest.
_PRIMES = {1: (1031, 1033, 1039, 1049, 1051, 1061), 2: (37, 41, 43, 47, 53, 59, 61), 3: (11, 13, 17, 19, 23, 29, 31)}
_FEW = (5, 7, 9, 11, 13, 17, 19)
_MOST_ELEMENTS = 300_000
# Past the largest grid of blocks that a kernel may take for all there is.
_HUGE = 70_003


def _words(text):
    """Names with a word that begins so: `qr` is not in `sqrt`."""
    return re.compile(f"(?:^|[_.:])(?:{text})")


# Their results, or what they make on the way, grow with a power of the sizes.
_STEEP = _words("combinations|cartesian_prod|meshgrid|block_diag|kron|pdist|histogramdd|tensorinv|tensorsolve|linalg|matrix_|svd|eig|lstsq|cholesky|qr$|s?logdet|det$|"
                "lu_|inverse|triangular|householder|ormqr|orgqr|geqrf|unfold|im2col|col2im|fold|conv|lstm|gru|rnn|stft|istft|bilinear|interpol|upsample|attention|"
                "einsum|solve|pinv")


class _Sizes(Maker):
    """A Maker whose tensors have other sizes. `seen` collects the sizes it was asked for."""

    def __init__(self, seed, sizes=None):
        super().__init__(seed)
        self.sizes, self.seen = sizes, set()
        self.draws = cresset.Generator().manual_seed(self.rng.randrange(2**31))

    def _spread(self, shape, scale, shift):
        if self.sizes is None:
            return super()._spread(shape, scale, shift)
        return self._spread_over(self._grown(shape), scale, shift)

    def _spread_over(self, shape, scale, shift):
        n = _count(shape)
        places = cresset.randperm(n, generator=self.draws).double()
        return (shift + scale * (places + 0.25 + cresset.rand(n, dtype=cresset.float64, generator=self.draws) / 2) / max(n, 1)).reshape(shape)

    def _grown(self, shape):
        if self.sizes is None:
            self.seen.add(tuple(shape))
            return tuple(shape)
        return tuple(self.sizes(tuple(shape)))

    def _tensor(self, values, shape, dtype, grad=True):
        if isinstance(values, cresset.Tensor):
            return values.to(dtype).requires_grad_(grad)
        self.seen.add(tuple(shape))
        return super()._tensor(values, shape, dtype, grad)

    def C(self, *shape):
        if self.sizes is None:
            return super().C(*shape)
        shape = self._grown(shape)
        return cresset.complex(self._spread_over(shape, 3, -1.5), self._spread_over(shape, 3, -1.4)).requires_grad_()

    def I(self, *shape, high=5):  # noqa: E743
        if self.sizes is None:
            return super().I(*shape, high=high)
        return cresset.randint(high, self._grown(shape), generator=self.draws)

    def B(self, *shape):
        if self.sizes is None:
            return super().B(*shape)
        return cresset.rand(self._grown(shape), generator=self.draws) < 0.5

    def _square(self, shape):
        if self.sizes is None:
            return super()._square(shape)
        shape = self._grown(shape)
        n = shape[-1]
        return self._spread_over((*shape, n), 1.6, -0.8) + cresset.diag(2.0 * cresset.arange(1, n + 1).double()), (*shape, n)

    def TRI(self, *shape):
        if self.sizes is None:
            return super().TRI(*shape)
        return self._square(shape)[0].tril()

    def SPD(self, *shape):
        if self.sizes is None:
            return super().SPD(*shape)
        values = self._square(shape)[0]
        return values @ values.transpose(-1, -2)


def _count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def _evaluated(row, index, sizes=None):
    """(the sample's call with tensors of other sizes, the sizes it asked for). Without arguments where it cannot be made with those sizes."""
    text = row["samples"][index]
    maker = _Sizes(f"{row.id} {text}", sizes)
    try:
        args, kwargs = eval(f"_({text})", {"_": lambda *a, **k: (a, k)} | maker.names())
    except REFUSALS:
        args, kwargs = (), {}
    return Call(args, kwargs).map(lambda t: t.detach().requires_grad_(t.requires_grad)), maker.seen


def _integers(value, sizes, lists_only):
    """The value with integers that are sizes of the sample replaced: those in lists, or all that are no bool."""
    if isinstance(value, (list, tuple)):
        return type(value)(_integers(v, sizes, False) for v in value)
    return sizes.get(value, value) if isinstance(value, int) and not isinstance(value, bool) and not lists_only else value


def _mappings(row, seen):
    """[(label, size -> size)] of the sizes that a sample has."""
    found = sorted({size for shape in seen for size in shape if size > 1})
    if not found:
        return []
    most = max(sum(size > 1 for size in shape) for shape in seen)
    steep = _STEEP.search(row.id)
    primes = _FEW if most > 3 or steep else _PRIMES[most]
    if len(found) > len(_FEW):
        return []
    mappings = [("larger", dict(zip(found, primes)))]
    if most > 1 and len(found) > 1 and not steep:
        mappings.append(("long", dict(zip(found, (*_FEW[: len(found) - 1], 1031)))))
        mappings.append(("tall", dict(zip(found, (1031, *_FEW)))))
    return mappings


def _resized(row, index, mapping, seen):
    """Calls to try in order: tensors alone, lists of sizes too, every integer too."""
    for sizes in (mapping, {size: size * (5 if max(mapping) > 2 else 35) for size in mapping}):
        if sum(_count([sizes.get(s, s) for s in shape]) for shape in seen) > _MOST_ELEMENTS:
            continue
        call, _ = _evaluated(row, index, lambda shape: tuple(sizes.get(s, s) for s in shape))
        yield call
        for lists_only in (True, False):
            yield Call(tuple(_integers(v, sizes, lists_only) for v in call.args), {k: _integers(v, sizes, lists_only) for k, v in call.kwargs.items()})


def _sizes(trial):
    """Past 1,000 and 65,536 elements with odd tails, empty, of many dimensions."""
    row, index = trial.row, trial.index
    if not trial.call.tensors() or "PIV(" in row["samples"][index]:
        return
    _, seen = _evaluated(row, index)
    for label, mapping in _mappings(row, seen):
        if label != "larger" and trial.dtype not in ((cresset.float32,) if row["kind"] == "pointwise" else (cresset.float32, cresset.float16, cresset.bool)):
            continue
        for call in _resized(row, index, mapping, seen):
            made = trial.with_call(call, slack=1)
            if _small_on_meta(made) and made.defined():
                yield f"{label}: {_shapes(made)}", made
                break
    largest = max((size for shape in seen for size in shape), default=0)
    for label, size in (("empty", 0), ("of one", 1)) if largest > 1 and not _STEEP.search(row.id) else ():
        call, _ = _evaluated(row, index, lambda shape: tuple(size if s == largest else s for s in shape))
        made = trial.with_call(call)
        if made.defined():
            yield f"{label}: {_shapes(made)}", made
    for label, made in _huge(trial):
        if _small_on_meta(made) and made.defined():
            yield f"{label}: {_shapes(made)}", made


def _huge(trial):
    """One call beyond 65,536 elements, in all or along a dimension, and one of six dimensions."""
    row = trial.row
    if trial.index > 0 or trial.dtype != cresset.float32:
        return
    if row["kind"] == "pointwise":
        for label, sizes in (("huge", (_HUGE,)), ("of six dimensions", (2, 3, 1, 2, 2, 3))):
            call, _ = _evaluated(row, trial.index, lambda shape: sizes if shape else ())
            yield label, trial.with_call(call, slack=1)
    elif row["kind"] == "structured" and any(a["name"] == "dim" for a in row["arguments"]) and not _STEEP.search(row.id):
        _, seen = _evaluated(row, trial.index)
        largest = max((size for shape in seen for size in shape), default=0)
        if largest > 1 and max(len(shape) for shape in seen) < 3:
            call, _ = _evaluated(row, trial.index, lambda shape: tuple(_HUGE if s == largest else min(s, 2) for s in shape))
            # Sums of that many terms lose digits in any order.
            yield "a huge row", trial.with_call(call, slack=64)


def _small_on_meta(trial):
    """Would the result be of a size that a check can afford? Operators without a shape rule are taken at their word."""
    try:
        result, _ = trial.run("meta")
    except REFUSALS:
        return True
    results = [result] if isinstance(result, cresset.Tensor) else [r for r in result if isinstance(r, cresset.Tensor)] if isinstance(result, (list, tuple)) else []
    return sum(r.numel() for r in results) < 4 * _MOST_ELEMENTS


def _shapes(trial):
    return ", ".join(str(list(t.shape)) for t in trial.call.tensors()[:4])


# --- layouts --------------------------------------------------------------------------------------------------------------------------


def _transposed(t, device):
    return t.transpose(0, -1).contiguous().to(device).transpose(0, -1) if t.dim() > 1 else _with_gaps(t, device)


def _behind_others(t, device):
    """Contiguous, and not at the start of its memory."""
    if t.dim() == 0:
        return cresset.stack([cresset.ones_like(t), t]).to(device)[1]
    rows = cresset.ones((1, *t.shape[1:]), dtype=t.dtype)
    return cresset.cat([rows, rows, t.contiguous()]).to(device)[2:]


def _with_gaps(t, device):
    """Every second element of memory, behind an offset; others lie between."""
    if t.dim() == 0:
        return _behind_others(t, device)
    base = cresset.ones((*t.shape[:-1], 2 * t.shape[-1] + 3), dtype=t.dtype)
    base[..., 3::2] = t
    return base.to(device)[..., 3::2]


def _channels_last(t, device):
    return t.contiguous(memory_format=cresset.channels_last).to(device) if t.dim() == 4 else t.clone().to(device)


def _repeated(t, device):
    """The first of the last dimension for all, by a stride of 0."""
    return t[..., :1].contiguous().to(device).expand(t.shape) if t.dim() > 0 and t.numel() > 0 else t.clone().to(device)


_LAYOUTS = {"transposed": _transposed, "with an offset": _behind_others, "with gaps": _with_gaps, "channels last": _channels_last, "with strides of 0": _repeated}


def _layouts(trial):
    tensors = trial.call.tensors()
    for label, arrange in _LAYOUTS.items():
        if label == "channels last" and all(t.dim() != 4 for t in tensors):
            continue
        made = trial.with_call(trial.given, arrange=arrange)
        if made.defined():
            yield label, made
    if trial.row["kind"] == "pointwise" and len(tensors) == 2 and tensors[0].dim() > 0 and tensors[0].shape == tensors[1].shape:
        # A large one of each kind in one call: rows of one against columns of the other.
        for label, chosen in (("one transposed", (0,)), ("the other transposed", (1,))):
            made = trial.with_call(_grown_pointwise(trial), arrange=_Alternating(chosen))
            if made.defined():
                yield label, made


def _grown_pointwise(trial):
    return _evaluated(trial.row, trial.index, lambda shape: (33, 35) if shape else ())[0]


class _Alternating:
    """Transposes only the chosen of the tensors, counted in the order of the call."""

    def __init__(self, chosen):
        self.chosen, self.count = chosen, 0

    def __call__(self, t, device):
        number, self.count = self.count % 2, self.count + 1
        return (_transposed if number in self.chosen else cresset.Tensor.to)(t.clone(), device)


# --- values ---------------------------------------------------------------------------------------------------------------------------

_TINY = {"float64": 3e-310, "float32": 3e-40, "bfloat16": 3e-40, "float16": 3e-7}
_NO_VALUES = _words("linalg|cholesky|lu_|lu$|qr$|svd|eig|lstsq|s?logdet|det$|inverse|matrix_|ormqr|orgqr|geqrf|triangular|pinverse|histogram|attention|lobpcg|stft|istft|"
                    "multinomial|polynomial_")


def _special_floats(dtype):
    tiny = _TINY[str(dtype).rpartition(".")[2]]
    return (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, tiny, -tiny, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 88.9, -104.5, 1e4, -1e4, 3.0, -1.0)


def _special_integers(dtype, zero):
    if dtype == cresset.bool:
        return (0, 1)
    most = cresset.iinfo(dtype).max
    values = [1, 2, 3, 7, 100, 127, 128, 255, 2**15 - 1, 2**15, 2**24 + 1, 2**31 - 1, 2**31 + 1, 2**53 + 1, most, -1, -7, -128, -(2**24) - 1, -(2**31) + 1, -(2**53) - 1]
    return tuple(v for v in values if v <= most and (v > 0 or cresset.iinfo(dtype).min < 0) and v >= -most) + ((0,) if zero else ())


def _filled(t, number, specials):
    """Elements from a list; with one list for each tensor, all pairs are met."""
    places = cresset.arange(t.numel()) // len(specials) ** number % len(specials)
    return cresset.tensor(specials, dtype=t.dtype)[places].reshape(t.shape)


def _values(trial):
    """NaN, infinities, denormals, both zeros, halves, overflow; integers beyond what a floating type holds."""
    row = trial.row
    if _NO_VALUES.search(row.id) or row["view"]:
        return
    if row["kind"] == "pointwise":
        for zero in (True, False):
            made = _special_pairs(trial, zero)
            if made.defined():
                yield "special values" if zero else "special values without 0", made
                if all(t.is_floating_point() for t in made.call.tensors()):
                    return
        return
    floats = [n for n, t in enumerate(trial.call.tensors()) if t.is_floating_point() and t.numel() > 1]
    if not floats:
        return
    for label, change in (("a NaN", lambda t: _last(t, float("nan"))), ("an inf", lambda t: _last(t, float("inf"))), ("a -inf", lambda t: _last(t, -float("inf"))),
                          ("all -inf", lambda t: cresset.full_like(t, -float("inf"))), ("200 times larger", lambda t: t * 200), ("100 more", lambda t: t + 100),
                          ("zeros", cresset.zeros_like)):
        made = trial.with_call(_changed(trial.given, floats[0], change), slack=10 if label == "100 more" else 1)
        if made.defined():
            yield label, made


def _last(t, value):
    t = t.contiguous().clone()
    t.view(-1)[-1] = value
    return t


def _changed(call, number, change):
    counter = itertools.count()
    return call.map(lambda t: change(t.detach()).requires_grad_(t.requires_grad) if next(counter) == number else t)


def _special_pairs(trial, zero):
    counter = itertools.count()
    like = trial.with_call(_grown_pointwise(trial)).call

    def special(t):
        number = next(counter)
        if t.is_complex():
            return t
        return _filled(t, number, _special_floats(t.dtype) + borders if t.is_floating_point() else _special_integers(t.dtype, zero))

    # Where the operator changes its mind: thresholds, ends of ranges.
    borders = tuple(float(v) for v in (*like.args, *like.kwargs.values()) if isinstance(v, (int, float)) and not isinstance(v, bool))
    return trial.with_call(like.map(special), exact_tiny=True)


# --- arguments ------------------------------------------------------------------------------------------------------------------------

_WORDS = ("none", "tanh", "floor", "trunc", "mean", "sum", "reflect", "replicate", "circular", "constant", "left", "right", "linear", "lower", "higher", "midpoint", "nearest",
          "amax", "amin", "prod", "ij", "xy", "valid", "same", "L", "U", "fro", "nuc", "ortho", "forward", "backward")


def _alternatives(argument, value):
    """Other values of an argument that is no tensor."""
    kind = argument["type"].rstrip("?")
    if kind == "bool":
        return [not value]
    if kind in ("Scalar", "float") and not isinstance(value, (list, tuple)):
        return [0.3, 2.5, -1.25, 3, 0]
    if kind in ("int", "SymInt") and (value is None or isinstance(value, int)):
        return [0, 1, 2, 3, -1, -2] if value is None else [value + 1, value - 1, -1, 0, 2]
    if kind.startswith(("int[", "SymInt[")):
        if isinstance(value, (list, tuple)) and value:
            value = list(value)
            return [[v + 1 for v in value], [v - 1 for v in value], [*value[:-1], value[-1] + 1], [value[0] + 1, *value[1:]], [v + 2 for v in value], value[::-1], value[:1], [0], [-1]]
        return [0, -1, [0], [1], [-1], [0, 1], [0, -1], [1, 0]]
    if kind == "ScalarType":
        return [cresset.float64, cresset.float32, cresset.int64]
    if kind == "str":
        return list(_WORDS)
    if kind == "MemoryFormat":
        return [cresset.channels_last, cresset.contiguous_format]
    if argument["type"] == "Tensor?":
        return [None]
    if argument["name"] == "weights" or kind in ("float[]", "Scalar[]"):
        return [[0.5 * v for v in value]] if isinstance(value, (list, tuple)) and value and isinstance(value[0], float) else []
    return []


# Where the call goes, and what makes it random.
_FIXED = ("device", "layout", "pin_memory", "generator", "dropout", "dropout_p")
_PYTHON_DEFAULTS = {"None": None, "True": True, "False": False}


def _default(argument):
    text = argument["default"]
    if text in (None, "None"):
        return None
    if isinstance(text, str):
        if text in _PYTHON_DEFAULTS:
            return _PYTHON_DEFAULTS[text]
        try:
            return eval(text, {})
        except Exception:
            return text
    return text


def _arguments(trial):
    """Every argument that is no tensor varied one by one; then broadcasting, numbers as tensors of the CPU, and other dtypes."""
    row, call = trial.row, trial.given
    listed = row["arguments"]
    for place, argument in enumerate(listed):
        name = argument["name"]
        given = place < len(call.args) or name in call.kwargs
        value = call.args[place] if place < len(call.args) else call.kwargs.get(name, _default(argument))
        if argument["type"] == "Tensor?" and (not given or value is None) or name in _FIXED:
            continue
        found = 0
        for other in _alternatives(argument, value):
            if other == value and type(other) is type(value):
                continue
            args, kwargs = list(call.args), dict(call.kwargs)
            if place < len(args):
                args[place] = other
            else:
                kwargs[name] = other
            made = trial.with_call(Call(tuple(args), kwargs), slack=1)
            if _small_on_meta(made) and made.defined():
                yield f"{name}={other}", made
                found += 1
                if found == 4:
                    break
    if row["kind"] == "pointwise" and not row["view"]:
        yield from _broadcast(trial)


def _broadcast(trial):
    """Tensors that do not have the same sizes, places or types."""
    shapes = {"both ways": ((5, 1), (7,)), "a row": ((5, 7), (7,)), "a column": ((5, 7), (5, 1)), "more dimensions": ((7,), (3, 5, 7)), "without dimensions": ((), ())}
    count = len(trial.call.tensors())
    for label, pair in shapes.items():
        sizes = itertools.cycle(pair)
        call, _ = _evaluated(trial.row, trial.index, lambda shape: next(sizes))
        made = trial.with_call(call)
        if (count > 1 or label == "without dimensions") and made.defined():
            yield f"sizes: {label}", made
    if count < 2:
        return
    others = (cresset.float64, cresset.int64, cresset.float16, cresset.int32) if trial.dtype in (cresset.float32, cresset.int64) else ()
    for number, dtype in itertools.product((0, 1), others):
        made = trial.with_call(_changed(trial.call, number, lambda t: t.to(dtype)), keep_types=True)
        if made.defined():
            yield f"tensor {number} of {str(dtype).rpartition('.')[2]}", made
    for number in range(0 if trial.row.id.startswith("_") or cresset.device(trial.device).type == "meta" else 2):
        made = trial.with_call(_changed(trial.given, number, lambda t: t.reshape(-1)[0].clone()), arrange=_numbers_stay)
        if made.defined():
            yield f"tensor {number} a number of the CPU", made


def _numbers_stay(t, device):
    return t.clone() if t.dim() == 0 else t.clone().to(device)


# --- all ------------------------------------------------------------------------------------------------------------------------------

# column -> (variants of a trial, checks of each, dtypes beside the first of the card: pointwise rows, others)
_ALL = None
# Several elements of a short type may be the same: which of them an operator chooses is open.
_CHOOSES = _words("arg(?:max|min|sort)|m?sort|topk|(?:nan)?median|mode$|kthvalue|nonzero|unique|searchsorted|bucketize|max_pool|cummax|cummin|max[.]dim|min[.]dim|aminmax|histc|"
                  "(?:nan)?quantile")
KINDS = {
    "sizes": (_sizes, ("forward", "backward", "in-place"), _ALL, _ALL),
    "layouts": (_layouts, ("forward", "backward", "in-place", "out"), ("float32", "int64", "float16"), ("float32", "int64")),
    "values": (_values, ("forward", "out"), _ALL, ("float32", "float64", "float16")),
    "arguments": (_arguments, ("forward", "backward"), ("float32", "int64", "float64"), ("float32", "int64")),
}  # fmt: skip


def variants(column, trial):
    """(label, trial, checks) of every variant of a trial in a column; none for what is random or has no tensors on the device."""
    make, names, pointwise, others = KINDS[column]
    dtypes = pointwise if trial.row["kind"] == "pointwise" else others
    if trial.row.random or trial.factory or dtypes is not None and str(trial.dtype).rpartition(".")[2] not in dtypes and trial.floating:
        return
    main = trial.dtype in (cresset.float32, cresset.complex64) or not trial.floating
    if column == "sizes" and not main and (trial.index > 0 or _CHOOSES.search(trial.row.id)):
        return
    for label, made in make(trial):
        yield label, made, [CHECKS[n] for n in names if main or n != "backward"]
