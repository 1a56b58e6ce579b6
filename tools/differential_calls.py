"""Random calls of operators, as data: both packages build the same arguments from one Call.

A call begins as a sample of the operator table and is changed at random: sizes, dtypes, values, layouts, optional arguments. Of the changes
that may be mistakes it gets one at the most: which of two mistakes an operator names, and by which class of error, is no promise. Some calls
are arguments made from the schema alone (`loose`), with any number of mistakes; of those, classes of errors are not compared. Tensors are
views of Memory that is larger than they are, so what is written around them shows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cresset
import numpy as np
from cresset.testing import samples

FLOATS = ("float32", "float64", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")
USUAL = ("float32", "float64", "bfloat16", "float16")  # another type may be a mistake
COMPLEX = ("complex64", "complex128", "complex32")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
# Types that NumPy has not: the integers of their bits.
BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "complex32": "int32"}
WEIGHTED_DTYPES = {
    "float32": 35, "float64": 22, "bfloat16": 7, "float16": 6, "complex64": 6, "complex128": 5, "int64": 7, "int32": 3, "int16": 1,
    "int8": 1, "uint8": 3, "bool": 4, "uint16": 1, "uint32": 1, "uint64": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "complex32": 1,
}  # fmt: skip
MODES = {
    "plain": 42, "function": 10, "grad": 16, "grad2": 5, "jvp": 8, "vmap": 9, "meta": 4, "script": 2, "trace": 2, "freeze": 1, "simulated": 4,
    "spelled": 5, "leaves": 2, "subclass": 2, "autocast": 2, "double": 1, "half": 1, "examples": 2, "hvp": 2, "fx": 2, "compile": 1,
}  # fmt: skip
MARGIN = 3  # elements around a tensor
LARGEST = 20_000  # elements of a tensor
# Generators are not compared, storages and functions have no common form.
UNSUPPORTED = {"Storage", "Stream", "Any"}
# Results that are uninitialised or change what memory is: nothing to compare.
SKIPPED = {"set_", "_print", "from_file", "resize_", "resize_as_", "record_stream", "_resize_output_", "resize", "resize_as", "_assert_async"}


@dataclass
class Memory:
    """Elements in a row; of types that NumPy has not the bits."""

    array: np.ndarray
    dtype: str


@dataclass
class View:
    """A tensor over a memory."""

    memory: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    conj: bool = False
    batch: int | None = None  # dimension of vmap


@dataclass
class Name:
    """A dtype, layout, device or memory format."""

    kind: str
    value: str


@dataclass
class Spelled:
    """A value that Python gives in another form: a list as a tuple, a number as one of NumPy's (see spelled())."""

    form: str
    value: Any


@dataclass
class Call:
    operator: str  # "aten::add.Tensor"
    args: list[Any]
    kwargs: dict[str, Any]
    memories: list[Memory] = field(default_factory=list)
    mode: str = "plain"
    written: tuple[str, ...] = ()  # names of out and in-place arguments
    random: bool = False
    loose: bool = False  # made from the schema alone
    mistakes: int = 0  # changes for the worse that are still allowed

    def leaves(self) -> list[Any]:
        found: list[Any] = []
        opened([self.args, self.kwargs], found.append)
        return found

    def views(self) -> list[View]:
        return [v for v in self.leaves() if isinstance(v, View)]


def opened(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """The value with leaf(x) for every leaf; lists and dictionaries are opened."""
    if isinstance(value, (list, tuple)):
        return [opened(v, leaf) for v in value]
    if isinstance(value, dict):
        return {k: opened(v, leaf) for k, v in value.items()}
    if isinstance(value, Spelled):
        return Spelled(value.form, opened(value.value, leaf))
    return leaf(value)


def map_leaves(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """The value of one argument with leaf(x) for every leaf."""
    if isinstance(value, Spelled):
        return Spelled(value.form, map_leaves(value.value, leaf))
    return [map_leaves(v, leaf) for v in value] if isinstance(value, list) else leaf(value)


def count(shape: Any) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def contiguous(shape: Any) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def kind_of(dtype: str) -> str:
    return "f" if dtype in FLOATS else "c" if dtype in COMPLEX else "b" if dtype == "bool" else "i"


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values as the elements of a memory."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
            rounded = np.where(np.isnan(values.astype(np.float32)), np.uint32(0x7FC00000), bits + 0x7FFF + ((bits >> 16) & 1))
            return (rounded >> 16).astype(np.uint16).view(np.int16)
        if dtype == "complex32":
            parts = np.ascontiguousarray(values, dtype=np.complex128).view(np.float64).astype(np.float16)
            return parts.view(np.int32)
        if dtype in BITS:
            wide = cresset.from_numpy(np.ascontiguousarray(values.real, dtype=np.float32))
            return wide.to(getattr(cresset, dtype)).view(cresset.uint8).numpy().copy()
        if kind_of(dtype) in "ib" and values.dtype.kind in "fc":
            values = np.nan_to_num(values.real, nan=0.0, posinf=7.0, neginf=-7.0)
            values = np.clip(values, -100, 100) if not dtype.startswith("uint") else np.clip(np.abs(values), 0, 100)
        if kind_of(dtype) != "c" and values.dtype.kind == "c":
            values = values.real
        return values.astype(dtype)


@dataclass
class Operator:
    """A row or one of its forms, and the functional row whose samples it has."""

    data: dict[str, Any]
    row: samples.Row | None

    @property
    def name(self) -> str:
        return samples.qualified(self.data)


@functools.cache
def operators() -> list[Operator]:
    """Every operator of the table whose arguments can be made, in table order."""
    table = samples.operators()
    forms = {samples.qualified(r): r for r in table}
    found = []
    for data in table:
        if data["name"].removeprefix("aten::") in SKIPPED or any(a["type"].rstrip("?") in UNSUPPORTED for a in data["arguments"]):
            continue
        row = samples.Row(forms[data["row"]], forms) if forms[data["row"]]["samples"] else None
        found.append(Operator(data, row))
    return found


@functools.cache
def words() -> dict[str, list[str]]:
    """The strings that samples give to each argument name."""
    found: dict[str, set[str]] = {}
    for row in samples.rows():
        for index in range(len(row["samples"])):
            for name, value in sample(row.id, index)[0].items():
                if isinstance(value, str):
                    found.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in found.items()}


@functools.cache
def sample(row: str, index: int) -> tuple[dict[str, Any], dict[int, np.ndarray]]:
    """Arguments of a sample by name, tensors as (number, shape, dtype), and the tensors' values."""
    call = samples.row_of(row).call(index)
    arrays: dict[int, np.ndarray] = {}

    def leaf(value: Any) -> Any:
        if isinstance(value, cresset.Tensor):
            t = value.detach()
            arrays[len(arrays)] = t.resolve_conj().numpy().reshape(-1).copy()
            return ("T", len(arrays) - 1, tuple(t.shape), str(t.dtype).split(".")[-1])
        if isinstance(value, cresset.dtype):
            return Name("dtype", str(value).split(".")[-1])
        return value

    def walk(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [walk(v) for v in value]
        return leaf(value)

    names = [a["name"] for a in samples.row_of(row)["arguments"]]
    given = dict(zip(names, (walk(v) for v in call.args))) | {k: walk(v) for k, v in call.kwargs.items()}
    return given, arrays


class Generator:
    """Makes the call with a number: the same one for the same seed and number."""

    def __init__(self, seed: int, chosen: list[Operator], modes: dict[str, int]) -> None:
        self.seed, self.chosen, self.modes = seed, chosen, modes

    def call(self, number: int) -> Call:
        rng = np.random.default_rng([self.seed, number])
        operator = self.chosen[rng.integers(len(self.chosen))]
        return Maker(rng, operator).make(pick(rng, self.modes))


def pick(rng: np.random.Generator, weights: dict[str, int]) -> str:
    at = rng.integers(sum(weights.values()))
    for name, weight in weights.items():
        at -= weight
        if at < 0:
            return name
    raise AssertionError("weights")


class Maker:
    """One call in the making."""

    def __init__(self, rng: np.random.Generator, operator: Operator) -> None:
        self.rng, self.operator = rng, operator
        self.memories: list[Memory] = []
        self.sizes: dict[int, int] = {}
        self.mistakes = 1
        self.dtype = pick(rng, WEIGHTED_DTYPES)
        self.common = self.shape_of_call()

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def mistake(self, p: float) -> bool:
        """Whether to make a change that may be a mistake: with that probability, while one is allowed."""
        made = self.mistakes > 0 and self.chance(p)
        self.mistakes -= made
        return made

    def one(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def make(self, mode: str) -> Call:
        data, row = self.operator.data, self.operator.row
        if data["form"] == "out" and mode not in ("plain", "function", "meta", "script", "simulated"):
            mode = "plain"
        given: dict[str, Any] = {}
        if row is not None and self.chance(0.92):
            index = int(self.rng.integers(len(row["samples"])))
            self.mistakes -= self.dtype not in USUAL
            given = self.from_sample(row, index)
        loose = not given and len(data["arguments"]) > len(written_only(data))
        if loose:
            self.mistakes = len(data["arguments"])
        args, kwargs = [], {}
        positional = True
        written = tuple(a["name"] for a in data["arguments"] if a["write"])
        outs = written_only(data)
        for a in data["arguments"]:
            if a["name"] in outs:
                continue  # made when the result is known: see with_outs
            keyword = a["kwarg_only"]
            if a["name"] in given:
                value = given[a["name"]]
            elif a["default"] is not None and not (self.chance(0.3) if loose else self.mistake(0.12)):
                positional = False
                continue
            else:
                value = self.value(a["type"], a["name"])
            if keyword or not positional:
                kwargs[a["name"]] = value
            else:
                args.append(value)
        for name, value in [*zip([a["name"] for a in data["arguments"]], args), *kwargs.items()]:
            if name in written:
                opened(value, resolved)
        call = Call(self.operator.name, args, kwargs, self.memories, mode, written, draws(data, args, kwargs), loose, self.mistakes)
        if mode in ("vmap", "examples"):
            return batched(call, self.rng)
        return spelled(call, [a["name"] for a in data["arguments"]], self.rng) if mode == "spelled" else call

    # ---- from samples

    def from_sample(self, row: samples.Row, index: int) -> dict[str, Any]:
        given, arrays = sample(row.id, index)
        resize = self.chance(0.55)
        keep_values, mixed = self.chance(0.5), self.mistake(0.12)
        types = {a["name"]: a["type"] for a in row["arguments"]}
        if resize:
            sizes = sorted({s for v in given.values() for t in flat_tensors(v) for s in t[2]})
            self.sizes = {s: self.size(s) for s in sizes if self.chance(0.4)}

        def leaf(value: Any, name: str) -> Any:
            if isinstance(value, tuple) and value and value[0] == "T":
                _, at, shape, dtype = value
                return self.tensor_like(name, shape, dtype, arrays[at], keep_values, mixed)
            if isinstance(value, Name):
                return Name("dtype", pick(self.rng, WEIGHTED_DTYPES)) if self.mistake(0.3) else value
            return self.changed(value, types[name], name)

        def walk(value: Any, name: str) -> Any:
            if isinstance(value, list):
                if types[name].startswith(("int", "SymInt")) and self.mistake(0.12):
                    return self.value(types[name], name)
                items = [walk(v, name) for v in value]
                if len(items) > 1 and "Tensor" in types[name] and self.mistake(0.05):
                    items.pop()
                return items
            return leaf(value, name)

        out = {}
        for name, value in given.items():
            if types[name].endswith("?") and self.mistake(0.1):
                out[name] = None
            else:
                out[name] = walk(value, name)
        return out

    def size(self, old: int) -> int:
        weights = {"0": 8, "1": 22, str(old + 1): 22, str(max(old - 1, 0)): 15, str(old * 2): 12, "7": 8, "17": 5, "40": 3}
        return int(pick(self.rng, weights))

    def tensor_like(self, name: str, shape: tuple[int, ...], dtype: str, values: np.ndarray, keep: bool, mixed: bool) -> View:
        new = tuple(self.sizes.get(s, s) for s in shape)
        if self.mistake(0.03):
            new = self.one([new[1:], (1, *new), (*new, 1), new[:-1], ()])
        if count(new) > LARGEST:
            new = shape
        n = count(new)
        kind = kind_of(dtype)
        target = dtype
        if kind in "fc":
            target = pick(self.rng, WEIGHTED_DTYPES) if mixed and self.chance(0.5) else self.dtype
            if kind == "c" and target not in COMPLEX and not self.mistake(0.2):
                target = "complex128" if target == "float64" else "complex64"
        elif self.mistake(0.08):
            target = self.one([*INTEGERS, "bool", "float32"])
        if kind in "ib":
            filled = np.resize(values, n) if len(values) else np.zeros(n, dtype=values.dtype)
            if kind == "i" and n and self.mistake(0.06):
                filled = filled.copy()
                filled[int(self.rng.integers(n))] = np.array(self.one([-1, 1000, -1000, 5])).astype(filled.dtype)
        elif keep and n == len(values):
            filled = values
        elif keep and len(values) and self.chance(0.7):
            filled = np.resize(values, n)
        else:
            filled = self.values(n, kind_of(target))
        return self.view(new, filled, target)

    def changed(self, value: Any, type_name: str, name: str) -> Any:
        """A plain argument of a sample, sometimes another one."""
        if isinstance(value, int) and not isinstance(value, bool) and value in self.sizes and self.chance(0.7):
            return self.sizes[value]
        return self.value(type_name.split("[")[0], name) if value is not None and self.mistake(0.12) else value

    # ---- from schemas

    def shape_of_call(self) -> tuple[int, ...]:
        return self.one([(), (3,), (2, 3), (2, 3, 4), (1,), (0,), (2, 0), (4, 4), (2, 2, 3, 3), (5, 1), (1, 2, 5, 5)])

    def value(self, type_name: str, name: str) -> Any:
        """Any value of a schema's type."""
        if type_name.endswith("?") and not type_name.endswith("[]?"):
            return None if self.chance(0.4) or type_name == "Generator?" else self.value(type_name[:-1], name)
        if type_name.endswith("[]?"):
            return None if self.chance(0.4) else self.value(type_name[:-1], name)
        base, bracket, length = type_name.partition("[")
        if bracket:
            n = int(length.rstrip("]?") or self.rng.integers(4))
            if n > 1 and base in ("int", "SymInt") and self.chance(0.15):
                n = self.one([1, n - 1, n + 1])
            return [self.value(base, name) for _ in range(n)]
        if base == "Tensor":
            return self.any_tensor()
        if base in ("int", "SymInt"):
            return self.one([0, 1, 2, 3, -1, 1, 2, -2, 4, 5, -5, 10] if not name.startswith("dim") else [0, 1, -1, 2, -2, 0, 1, -1, 3, -4])
        if base == "float":
            return self.one([0.0, 1.0, -1.0, 0.5, 1e-5, 2.0, 3.0, float("inf"), float("nan"), -0.25])
        if base == "Scalar":
            return self.one([0, 1, -1, 2, 3, 2.5, -0.5, True, 0.0, 1e10, float("inf"), float("nan"), 1 + 2j, -3, 1e-3])
        if base in ("bool", "SymBool"):
            return self.chance(0.5)
        if base == "str":
            return self.one([*words().get(name, []), "mean"]) if self.chance(0.95) else "no such"
        if base == "ScalarType":
            return Name("dtype", pick(self.rng, WEIGHTED_DTYPES))
        if base == "Layout":
            return Name("layout", "strided")
        if base == "Device":
            return Name("device", "cpu")
        if base == "MemoryFormat":
            return Name("memory_format", self.one(["contiguous_format", "preserve_format", "channels_last"]))
        return None

    def any_tensor(self) -> View:
        shape = self.common
        if self.chance(0.3):
            shape = tuple(1 if self.chance(0.4) else s for s in shape)[int(self.rng.integers(2)) :]
        if self.chance(0.08):
            shape = self.shape_of_call()
        dtype = pick(self.rng, WEIGHTED_DTYPES) if self.chance(0.2) else self.dtype
        return self.view(shape, self.values(count(shape), kind_of(dtype)), dtype)

    # ---- values and layouts

    def values(self, n: int, kind: str) -> np.ndarray:
        rng = self.rng
        if kind == "b":
            return rng.random(n) < 0.5
        if kind == "i":
            found = rng.integers(-4, 6, n)
            return np.abs(found) if self.chance(0.4) else found
        if kind == "c":
            found = np.empty(n, dtype=np.complex128)
            found.real, found.imag = self.values(n, "f"), self.values(n, "f")
            return found
        how = pick(rng, {"normal": 40, "ties": 20, "unit": 15, "large": 5, "special": 12, "positive": 8})
        if how == "normal":
            return rng.standard_normal(n)
        if how == "ties":
            return rng.integers(-3, 4, n).astype(np.float64)
        if how == "unit":
            return rng.random(n)
        if how == "positive":
            return rng.random(n) * 3 + 0.1
        if how == "large":
            return rng.standard_normal(n) * 1e4
        found = rng.standard_normal(n)
        places = rng.random(n) < 0.3
        found[places] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, 1e30], int(places.sum()))
        return found

    def view(self, shape: tuple[int, ...], values: np.ndarray, dtype: str) -> View:
        """A tensor of these values over new memory, in some layout."""
        layouts = {"dense": 52, "permuted": 16, "gaps": 16, "expanded": 6, "offset": 7}
        if len(shape) == 4:
            layouts["channels_last"] = 10
        how = pick(self.rng, layouts) if len(shape) and count(shape) else "dense"
        conj = dtype in COMPLEX and self.chance(0.08)
        order = list(range(len(shape)))
        gap, shared = 1, None
        if how == "permuted":
            self.rng.shuffle(order)
        elif how == "channels_last":
            order = [0, 2, 3, 1]
        elif how == "gaps":
            gap = int(self.rng.integers(2, 4))
        elif how == "expanded":
            shared = int(self.rng.integers(len(shape)))
        strides, step = [0] * len(shape), gap
        for d in reversed(order):
            if d == shared:
                continue
            strides[d] = step
            step *= max(shape[d], 1)
        margin = 0 if how == "dense" and self.chance(0.5) else MARGIN
        return self.placed(shape, tuple(strides), margin, values, dtype, conj)

    def placed(self, shape: Any, strides: Any, margin: int, values: np.ndarray, dtype: str, conj: bool = False) -> View:
        span = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if count(shape) else 0
        memory = np.resize(stored(self.values(17, kind_of(dtype)), dtype), span + 2 * margin)
        memory = memory.copy()
        if count(shape):
            items = np.lib.stride_tricks.as_strided(
                memory[margin:], shape=shape, strides=[s * memory.itemsize for s in strides]
            )
            items[...] = stored(np.asarray(values), dtype).reshape(shape)
        self.memories.append(Memory(memory, dtype))
        return View(len(self.memories) - 1, tuple(shape), tuple(strides), margin, conj)


def draws(data: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call of an operator draws random numbers; one whose part that drops has no weight does not."""
    given = {**dict(zip((a["name"] for a in data["arguments"]), args)), **kwargs}
    parts = [a["name"] for a in data["arguments"] if a["name"] in ("dropout", "dropout_p")]
    return "nondeterministic_seeded" in data["tags"] and (not parts or any(given.get(name) for name in parts))


def written_only(data: dict[str, Any]) -> set[str]:
    """The arguments that take the results of an out form."""
    return {a["name"] for a in data["arguments"] if a["write"] and a["kwarg_only"]} if data["form"] == "out" else set()


def resolved(value: Any) -> None:
    """Written arguments are no conjugate views: what lies below those is not promised."""
    if isinstance(value, View):
        value.conj = False


def flat_tensors(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [t for v in value for t in flat_tensors(v)]
    return [value] if isinstance(value, tuple) and value and value[0] == "T" else []


def batched(call: Call, rng: np.random.Generator) -> Call:
    """The call with a batch dimension of size 2 in some of its tensors."""
    views = call.views()
    if not views:
        return replace(call, mode="plain")
    chosen = [rng.random() < 0.7 for _ in views]
    if not any(chosen):
        chosen[int(rng.integers(len(views)))] = True
    which = {id(v) for v, c in zip(views, chosen) if c}

    def leaf(value: Any) -> Any:
        if not isinstance(value, View) or id(value) not in which:
            return value
        memory = call.memories[value.memory]
        second = memory.array.copy()
        if kind_of(memory.dtype) in "fc" and memory.dtype not in BITS:
            with np.errstate(all="ignore"):
                second = (second * second.dtype.type(0.75)).astype(second.dtype)
        size = len(memory.array)
        call.memories.append(Memory(np.concatenate([memory.array, second]), memory.dtype))
        at = int(rng.integers(len(value.shape) + 1))
        shape, strides = list(value.shape), list(value.strides)
        shape.insert(at, 2)
        strides.insert(at, size)
        return View(len(call.memories) - 1, tuple(shape), tuple(strides), value.offset, value.conj, at)

    return replace(call, args=opened(call.args, leaf), kwargs=opened(call.kwargs, leaf))


def spelled(call: Call, names: list[str], rng: np.random.Generator) -> Call:
    """The call with some arguments by name, and values in other forms of Python's."""
    forms = {list: ["tuple", "tuple", "size", "array"], bool: ["int", "numpy"], int: ["numpy", "numpy", "tensor", "float"], float: ["numpy", "tensor", "int"],
             View: ["number", "array", "list"]}

    def other(value: Any, p: float) -> Any:
        value = [other(v, 0.15) for v in value] if isinstance(value, list) and rng.random() < 0.4 else value
        if type(value) not in forms or rng.random() >= p or isinstance(value, View) and rng.random() < 0.8:
            return value
        return Spelled(forms[type(value)][int(rng.integers(len(forms[type(value)])))], value)

    written = [n for n in names if n in call.written]
    args = [v if n in written else other(v, 0.35) for n, v in zip(names, call.args)]
    kwargs = {n: v if n in written else other(v, 0.35) for n, v in call.kwargs.items()}
    first = int(rng.integers(len(args) + 1)) if rng.random() < 0.5 else len(args)
    return replace(call, args=args[:first], kwargs=dict(zip(names[first:], args[first:])) | kwargs)


def with_outs(call: Call, names: list[str], results: list[tuple[tuple[int, ...], str]], rng: np.random.Generator) -> Call:
    """The call of an out form with tensors for its results: fitting, strided, of another shape or dtype, empty, or over an input."""
    maker = Maker(rng, Operator({}, None))
    maker.memories = call.memories
    kwargs = dict(call.kwargs)
    for name, (shape, dtype) in zip(names, results):
        wrong = {"shape": 10, "flat": 6, "dtype": 8, "input": 7, "overlapping": 2} if call.mistakes > 0 else {}
        how = pick(rng, {"fitting": 25, "strided": 30, "empty": 12} | wrong)
        views = call.views()
        if how == "input" and views:
            source = views[int(rng.integers(len(views)))]
            if source.batch is None and source.conj is False:
                kwargs[name] = replace(source)
                continue
        if how == "shape":
            shape = maker.one([(1, *shape), shape[1:], (*shape, 2), tuple(reversed(shape))])
        if how == "flat":
            shape = (count(shape),) if len(shape) != 1 else (2, count(shape) // 2)
        if how == "dtype":
            dtype = pick(rng, WEIGHTED_DTYPES)
        if how == "empty":
            shape = (0,)
        values = maker.values(count(shape), kind_of(dtype))
        if how == "overlapping" and count(shape) > 1:
            kwargs[name] = expanded(maker, shape, dtype)
        elif how in ("strided", "shape", "flat", "dtype"):
            view = maker.view(shape, values, dtype)
            kwargs[name] = replace(view, conj=False)
        else:
            kwargs[name] = maker.placed(shape, contiguous(shape), MARGIN, values, dtype)
    return replace(call, kwargs=kwargs)


def expanded(maker: Maker, shape: tuple[int, ...], dtype: str) -> View:
    view = maker.placed((1,) * len(shape), contiguous((1,) * len(shape)), MARGIN, maker.values(1, kind_of(dtype)), dtype)
    return replace(view, shape=shape, strides=(0,) * len(shape))
