"""The recorded calls of recorded.tar.xz as objects of the package: tensors with their strides, numbers, types."""

from __future__ import annotations

import functools
import io
import json
import math
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cresset
import numpy as np

FILE = Path(__file__).resolve().parent / "recorded.tar.xz"


@dataclass(frozen=True)
class Call:
    """One recorded call, its arguments and results still encoded.

    `raises` is the class of the expected error. `from_double` says for each result how far the recording itself, in single
    precision, lies from double precision.
    """

    function: str
    args: Any
    kwargs: Any
    out: Any
    grads: Any
    raises: str | None
    from_double: list[float]

    @property
    def has_gradients(self) -> bool:
        return self.grads is not None


# (operator, dtype) or (operator, "errors")
Verdict = tuple[str, str]


@functools.cache
def _archive() -> dict[str, bytes]:
    with tarfile.open(FILE) as tar:
        files = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


@functools.cache
def _pool(kind: str) -> np.ndarray:
    """All recorded numbers of one NumPy type, which the archive keeps as planes of bytes."""
    planes = np.load(io.BytesIO(_archive()[f"{kind}.npy"]))
    return np.ascontiguousarray(planes.T).reshape(-1).view(kind)


@functools.cache
def calls() -> dict[Verdict, list[Call]]:
    """The calls that each verdict is about, in the order of the recording."""
    found: dict[Verdict, list[Call]] = {}
    for line in _archive()["calls.jsonl"].splitlines():
        document = json.loads(line)
        for kind in ("calls", "errors"):
            for c in document[kind]:
                call = Call(c["fn"], c["args"], c["kwargs"], c.get("out"), c.get("grads"), c.get("exc"), c.get("err64", []))
                found.setdefault((document["op"], c["dtype"] if kind == "calls" else "errors"), []).append(call)
    return found


@functools.cache
def quarantine() -> frozenset[Verdict]:
    """Verdicts that the recording PyTorch does not reproduce itself."""
    lines = [line.split("\t") for line in _archive()["quarantine.txt"].decode().splitlines() if line and not line.startswith("#")]
    return frozenset((op, dtype) for op, dtypes in lines for dtype in dtypes.split(","))


def function(name: str) -> Callable[..., Any]:
    """The package's function for a recorded name such as torch.nn.functional.relu; the first part is the namespace."""
    found: Any = cresset
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def numbers(meta: dict[str, Any]) -> tuple[np.ndarray, int]:
    """The recorded numbers of a tensor in row-major order, and the step between them: 1 when all were kept."""
    kind, start, *rest = meta["k"]
    step = rest[0] if rest else 1
    count = math.ceil(math.prod(meta["shape"]) / step)
    return _pool(kind)[start : start + count], step


def _with_strides(t: cresset.Tensor, shape: list[int], strides: list[int]) -> cresset.Tensor:
    """The values of t under the given strides."""
    if 0 in strides:
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
        return t[once].clone().expand(shape)
    span = sum((n - 1) * stride for n, stride in zip(shape, strides)) + 1
    view = cresset.zeros(span, dtype=t.dtype).as_strided(shape, strides)
    view.copy_(t)
    return view


def tensor(meta: dict[str, Any]) -> cresset.Tensor:
    values, _ = numbers(meta)
    shape, strides = meta["shape"], meta["stride"]
    t = cresset.from_numpy(values.copy()).reshape(shape)
    if meta["dtype"] == "bfloat16":  # recorded as int16
        t = t.view(cresset.bfloat16)
    if shape and 0 not in shape and list(t.stride()) != strides:
        t = _with_strides(t, shape, strides)
    if meta["conj"]:
        t = t.conj().resolve_conj().conj()
    return t.detach().requires_grad_(True) if meta["rg"] else t


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "T": tensor,
    "f": float.fromhex,
    "c": lambda parts: complex(*map(float.fromhex, parts)),
    "size": lambda sizes: cresset.Size(sizes),
    "tuple": lambda items: tuple(map(decode, items)),
    "list": lambda items: [decode(item) for item in items],
    "dict": lambda items: {key: decode(item) for key, item in items},
    "slice": lambda parts: slice(*map(decode, parts)),
    "ellipsis": lambda _: Ellipsis,
    "device": lambda name: cresset.device(name),
}


def decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    # Everything else is a constant by its name: a dtype, a layout, a memory format.
    return _DECODERS[kind](content) if kind in _DECODERS else getattr(cresset, content)


def leaves(value: Any) -> list[Any]:
    """The encoded values of an encoded result, lists and dictionaries opened."""
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind in ("tuple", "list"):
            return [leaf for item in content for leaf in leaves(item)]
        if kind == "dict":
            return [leaf for _, item in content for leaf in leaves(item)]
    return [value]
