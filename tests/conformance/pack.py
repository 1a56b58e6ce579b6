"""Packs recorded calls (one NumPy archive an operator, and quarantine.txt) into recorded.tar.xz.

usage: python tests/conformance/pack.py FOLDER, which holds opinfo/*.npz and quarantine.txt

Every distinct array is kept once. Arrays of one type stand behind each other in one file, split into planes of
equal bytes (all first bytes of the numbers, all second bytes, ...): exponents compress, mantissas hardly do. A tensor's
key `k` becomes [type, start] or, for a result of more than LARGE numbers, [type, start, step]: every step-th of its numbers
in row-major order. Inputs are always whole.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).resolve().parent / "recorded.tar.xz"
LARGE = 4096


class Pool:
    """Distinct one-dimensional arrays by type, in the order of their first use."""

    def __init__(self) -> None:
        self.parts: dict[str, list[np.ndarray]] = {}
        self.length: dict[str, int] = {}
        self.place: dict[tuple[str, bytes], int] = {}

    def add(self, values: np.ndarray) -> list[Any]:
        """[type, start] of the values."""
        kind, key = values.dtype.name, (values.dtype.name, values.tobytes())
        if key not in self.place:
            self.place[key] = self.length.get(kind, 0)
            self.parts.setdefault(kind, []).append(values)
            self.length[kind] = self.place[key] + values.size
        return [kind, self.place[key]]

    def planes(self) -> dict[str, np.ndarray]:
        """For each type an array of bytes [bytes of a real number, real numbers]."""
        found = {}
        for kind, parts in self.parts.items():
            values = np.concatenate(parts)
            if values.dtype.kind == "c":
                values = values.view(values.real.dtype)
            found[kind] = np.ascontiguousarray(values.view(np.uint8).reshape(values.size, values.itemsize).T)
        return found


def pack_value(value: Any, arrays: Any, pool: Pool, result: bool) -> Any:
    """The encoded value with the keys of its tensors replaced."""
    if isinstance(value, list):
        return [pack_value(v, arrays, pool, result) for v in value]
    if not isinstance(value, dict):
        return value
    if "T" not in value:
        return {k: pack_value(v, arrays, pool, result) for k, v in value.items()}
    meta = dict(value["T"])
    values = np.ascontiguousarray(arrays[meta["k"]]).reshape(-1)
    step = 1
    if result and values.size > LARGE:
        # Odd, so that it meets every residue of the usual powers of two.
        step = (values.size // LARGE) | 1
    meta["k"] = pool.add(np.ascontiguousarray(values[::step])) + ([step] if step > 1 else [])
    return {"T": meta}


def pack_operator(file: Path, pool: Pool) -> dict[str, Any]:
    arrays = np.load(file)
    document = json.loads(bytes(arrays["__json__"]))
    for call in [*document["calls"], *document["errors"]]:
        for key in ("args", "kwargs", "out", "grads"):
            if key in call:
                call[key] = pack_value(call[key], arrays, pool, key in ("out", "grads"))
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder

    pool = Pool()
    documents = [pack_operator(file, pool) for file in sorted((folder / "opinfo").glob("*.npz"))]
    members = {"calls.jsonl": "\n".join(json.dumps(d, separators=(",", ":")) for d in documents).encode(),
               "quarantine.txt": (folder / "quarantine.txt").read_bytes()}
    for kind, planes in sorted(pool.planes().items()):
        stream = io.BytesIO()
        np.save(stream, planes)
        members[f"{kind}.npy"] = stream.getvalue()

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    TARGET.write_bytes(lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(documents)} operators, {plain.tell()} bytes, packed {TARGET.stat().st_size}")


if __name__ == "__main__":
    main()
