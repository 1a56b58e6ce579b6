"""Writes `checkpoints/` with a real PyTorch: `python record_checkpoints.py`. The files are read by tests/python/serialization/test_golden.py.

old.tar is put together by hand, since no PyTorch writes it any more; PyTorch reads it here.
"""

import collections
import io
import pickle
import struct
import tarfile
import warnings
from pathlib import Path

import torch

FOLDER = Path(__file__).with_name("checkpoints")


def objects():
    x = torch.arange(6.0).reshape(2, 3)
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    parameter.tag = "kept"
    return {
        "x": x, "t": x.t(), "row": x[1], "parameter": parameter, "half": torch.tensor([1.5, -2], dtype=torch.bfloat16),
        "conjugate": torch.tensor([1 + 2j]).conj(), "meta": torch.empty(2, device="meta"), "od": collections.OrderedDict(a=1), "set": {1},
        "facts": [torch.float16, torch.device("cpu"), torch.Size([2, 3]), torch.strided], "storage": torch.tensor([1, 2]).storage(), "bytes": b"ab",
    }  # fmt: skip


def tar_file(path):
    def part(*values):
        out = io.BytesIO()
        for value in values:
            out.write(value) if isinstance(value, bytes) else pickle.dump(value, out, protocol=2)
        return out.getvalue()

    data = struct.pack("<q6f", 6, *range(6))
    storages = part(1, (7, "cpu", torch.FloatStorage), data, [])
    matrix, row = ((8, 7, torch.FloatTensor), (9, 7, torch.FloatTensor))
    tensors = part(2, matrix, struct.pack("<ii4qq", 2, 0, 2, 3, 3, 1, 0), row, struct.pack("<ii2qq", 1, 0, 3, 1, 3))

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return value.key if isinstance(value, Key) else None

    class Key:
        def __init__(self, key):
            self.key = key

    out = io.BytesIO()
    Pickler(out, 2).dump({"x": Key("8"), "row": Key("9")})
    with tarfile.open(path, "w") as tar:
        for name, content in (("sys_info", part({"little_endian": True})), ("pickle", out.getvalue()), ("tensors", tensors), ("storages", storages)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    torch.save(objects(), FOLDER / "zip.pt")
    torch.save(objects(), FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.manual_seed(0)
    torch.save(torch.nn.LSTM(2, 1), FOLDER / "module.pt")
    tar_file(FOLDER / "old.tar")
    read = torch.load(FOLDER / "old.tar", weights_only=False)
    assert read["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and read["row"].tolist() == [3, 4, 5] and read["x"][1].data_ptr() == read["row"].data_ptr()
