"""Folders of safetensors files as checkpoints: whole tensors, parts as PyTorch's writer notes them, and what is refused."""

import json
import os
import struct
import subprocess

import pytest

import cresset as torch
import cresset.distributed as dist
import cresset.distributed.checkpoint as dcp
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.tensor import Shard, distribute_tensor

from ranks import Ranks

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def whole():
    return torch.arange(12.0).reshape(3, 4)


def write(path, values, offsets=None):
    """A file by the format's definition; the header notes offsets of parts."""
    header, data = {}, b""
    if offsets:
        header["__metadata__"] = {
            "DCP_SHARDING_INFO": json.dumps({k: {"saved_offsets": o} for k, o in offsets.items()}),
            "format": "pt",
        }
    for name, value in values.items():
        raw = b"".join(struct.pack("<f", v) for v in value.reshape(-1).tolist())
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path, shape=(3, 4)):
    found = {"w": torch.zeros(shape)}
    dcp.load(found, storage_reader=dcp.HuggingFaceStorageReader(path))
    return found["w"]


def sharded(rank, path):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    found = {"w": distribute_tensor(torch.zeros(3, 4), mesh, [Shard(1)]), "b": torch.zeros(2)}
    dcp.load(found, storage_reader=dcp.HuggingFaceStorageReader(path))
    return torch.equal(found["w"].full_tensor(), whole()) and found["b"].tolist() == [1.0, 2.0]


def test_ranks_read_their_parts(tmp_path):
    write(tmp_path / "model-00001-of-00002.safetensors", {"w": whole()})
    write(tmp_path / "model-00002-of-00002.safetensors", {"b": torch.tensor([1.0, 2.0])})
    pool = Ranks(2, globals())
    try:
        assert pool.run(sharded, tmp_path) == [True, True]
    finally:
        pool.close()
    assert torch.equal(read(tmp_path), whole())


def test_files_of_parts(tmp_path):
    write(tmp_path / "a.safetensors", {"w": whole()[:2]}, {"w": [0, 0]})
    write(tmp_path / "b.safetensors", {"w": whole()[2:]}, {"w": [2, 0]})
    assert torch.equal(read(tmp_path), whole())


@pytest.mark.parametrize("files, words", [
    ({}, r"FileNotFoundError: .*files that end in .safetensors were required; there are none."),
    ({"a": None, "b": None}, "ValueError: w: one file was required to have it; a.safetensors and b.safetensors do."),
    ({"a": {"w": [0]}}, r"ValueError: w: offsets of 2 dimensions were required; \(0,\) was given."),
    ({"a": {"w": [-1, 0]}}, "ValueError: a.safetensors: saved_offsets are no lists of whole numbers."),
    ({"a": {"w": [3, 0]}}, "ValueError: Size mismatch"),
])  # fmt: skip
def test_errors(tmp_path, files, words):
    for name, offsets in files.items():
        write(tmp_path / f"{name}.safetensors", {"w": whole()}, offsets)
    with pytest.raises(dcp.CheckpointException, match=words):
        read(tmp_path)


def test_damaged_files_are_errors(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(dcp.CheckpointException):
        read(tmp_path)


def writes(rank, path, distributed):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    value = {
        "b": torch.tensor([1.0, 2.0]),
        "w": distribute_tensor(whole(), mesh, [Shard(1)]) if distributed else whole(),
    }
    writer = dcp.HuggingFaceStorageWriter(path, {"b": 1, "w": 2}, save_distributed=distributed)
    dcp.save(value, storage_writer=writer, planner=dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True))


THEIRS = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed.checkpoint as dcp
found = {"w": torch.zeros(3, 4), "b": torch.zeros(2)}
dcp.load(found, storage_reader=dcp.HuggingFaceStorageReader(sys.argv[1]))
assert torch.equal(found["w"], torch.arange(12.0).reshape(3, 4)) and found["b"].tolist() == [1.0, 2.0]
"""


@pytest.mark.parametrize("distributed", [False, True])
def test_writer(tmp_path, distributed):
    pool = Ranks(2, globals())
    try:
        pool.run(writes, tmp_path, distributed)
        assert pool.run(sharded, tmp_path) == [True, True]
    finally:
        pool.close()
    files = sorted(p.name for p in tmp_path.iterdir())
    if distributed:
        assert files == [
            "shard-00001-model-00001-of-00002.safetensors",
            "shard-00001-model-00002-of-00002.safetensors",
            "shard-00002-model-00002-of-00002.safetensors",
        ]
    else:
        assert files == [
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
        ]
        assert json.loads((tmp_path / files[2]).read_text())["weight_map"] == {"b": files[0], "w": files[1]}
        assert torch.equal(torch.load(tmp_path / files[1])["w"], whole())
    if "CRESSET_ORACLE_PYTHON" in os.environ:
        subprocess.run([os.environ["CRESSET_ORACLE_PYTHON"], "-c", THEIRS, str(tmp_path)], check=True)


@pytest.mark.parametrize("value, options, words", [
    ({"n": 3}, {}, "ValueError: n: a tensor was required; safetensors files hold nothing else."),
    ({"w": torch.ones(2)}, {"fqn_to_index_mapping": {"v": 1}}, "ValueError: w: a number of a file was required in fqn_to_index_mapping."),
])  # fmt: skip
def test_errors_of_the_writer(tmp_path, value, options, words):
    with pytest.raises(dcp.CheckpointException, match=words):
        dcp.save(value, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path, **options))
    with pytest.raises(
        NotImplementedError, match="HuggingFaceStorageWriter: enable_consolidation is not part of Cresset."
    ):
        dcp.HuggingFaceStorageWriter(tmp_path, enable_consolidation=True)
