"""Checkpoints: what is saved is what is loaded, on other numbers of ranks, beside PyTorch's files, after kills, and with damaged or hostile files."""

import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pytest

import cresset as torch
import cresset.distributed as dist
import cresset.distributed.checkpoint as dcp
from cresset import nn
from cresset.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from cresset.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType


pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing checkpoint")


class Shard:
    def __init__(self, dim):
        self.dim = dim

    def is_shard(self):
        return True

    def is_partial(self):
        return False


class Replicate:
    def is_shard(self):
        return False

    def is_partial(self):
        return False


class Mesh:
    """A mesh of ranks, as a DTensor's: a shape and this rank's place in it."""

    def __init__(self, *shape):
        self.shape = shape

    def get_coordinate(self):
        place, found = dist.get_rank() if dist.is_initialized() else 0, []
        for n in reversed(self.shape):
            found.append(place % n)
            place //= n
        return None if place else tuple(reversed(found))


class Placed:
    """What the planners ask of a DTensor: a whole shape, a mesh, placements, and the part that is here."""

    requires_grad = False

    def __init__(self, whole, mesh, *placements):
        from cresset.distributed.checkpoint._sharding import placed_box

        self.shape, self.device_mesh, self.placements = whole.shape, mesh, placements
        coordinate = mesh.get_coordinate()
        self.box = None if coordinate is None else placed_box(whole.shape, mesh.shape, coordinate, placements)
        self.local = None if coordinate is None else cut(whole, *self.box).clone()

    def to_local(self):
        return self.local


def cut(tensor, sizes, offsets):
    for dim, (n, begin) in enumerate(zip(sizes, offsets)):
        tensor = tensor.narrow(dim, begin, n)
    return tensor


class OwnItems(torch.Tensor):
    """A tensor that makes its items itself: rows of its rank of a tensor of 2 rows a rank."""

    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data)

    def _box(self):
        rank, size = dist.get_rank(), dist.get_world_size()
        return torch.Size([2 * size, 3]), ChunkStorageMetadata(torch.Size([2 * rank, 0]), torch.Size([2, 3]))

    def __create_write_items__(self, fqn, value):
        size, chunk = self._box()
        return [WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD, tensor_data=TensorWriteData(chunk, TensorProperties(dtype=self.dtype), size))]

    def __create_chunk_list__(self):
        return [self._box()[1]]

    def __get_tensor_shard__(self, index):
        return self.as_subclass(torch.Tensor)

    def size(self):
        return self._box()[0]


def whole(*shape):
    n = 1
    for s in shape:
        n *= s
    return torch.arange(float(n)).reshape(shape)


# One process ------------------------------------------------------------------------------------------------------------


def values():
    return {
        "weights": {"a": whole(2, 3), "b": torch.ones(3, dtype=torch.bfloat16), "scalar": torch.tensor(2.5), "none": torch.empty(0, 4)},
        "list": [1, {"x": whole(2)}, "text"], "step": 7, "transposed": whole(3, 4).t(), "part": whole(1000)[10:12], "complex": torch.tensor([1 + 2j]),
        "parameter": nn.Parameter(whole(2)),
    }  # fmt: skip


def blank(value):
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value)
    if isinstance(value, dict):
        return {k: blank(v) for k, v in value.items()}
    return [blank(v) for v in value] if isinstance(value, list) else type(value)()


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b) and a.dtype == b.dtype
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return len(a) == len(b) and all(map(same, a, b)) if isinstance(a, list) else a == b


@pytest.mark.parametrize("options", [{}, {"thread_count": 3}, {"single_file_per_rank": False}, {"sync_files": False}])
def test_round_trip(tmp_path, options):
    dcp.save(values(), storage_writer=dcp.FileSystemWriter(tmp_path, **options))
    found = blank(values())
    tensor = found["weights"]["a"]
    dcp.load(found, checkpoint_id=tmp_path)
    assert same(found, values()) and found["weights"]["a"] is tensor
    assert not [n for n in os.listdir(tmp_path) if n.endswith(".tmp")]


def test_a_view_does_not_take_its_storage_along(tmp_path):
    dcp.save({"part": torch.zeros(10**6)[:2]}, checkpoint_id=tmp_path)
    assert (tmp_path / "__0_0.distcp").stat().st_size < 5000


def test_stateful_objects_get_their_state(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=tmp_path)
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    again = torch.optim.Adam(other.parameters())
    other(torch.randn(5, 3)).sum().backward()
    again.step()
    dcp.load({"model": other, "optimizer": again}, checkpoint_id=tmp_path)
    assert same(dict(other.state_dict()), dict(model.state_dict()))
    assert same(again.state_dict()["state"], optimizer.state_dict()["state"])


ERRORS = [
    (lambda: {"missing": 1}, "RuntimeError: Missing key in checkpoint state_dict: missing."),
    (lambda: {"a": torch.zeros(3)}, "ValueError: Size mismatch between saved cresset.Size([2, 3]) and current: cresset.Size([3]) for a"),
    (lambda: {"a": 1}, "ValueError: Invalid checkpoint metadata for a, expected BytesStorageMetadata but found"),
]


@pytest.mark.parametrize("make, words", ERRORS)
def test_errors(tmp_path, make, words):
    dcp.save({"a": whole(2, 3)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException) as caught:
        dcp.load(make(), checkpoint_id=tmp_path)
    assert words in str(caught.value) and list(caught.value.failures) == [0]


def test_a_partial_load_leaves_the_rest(tmp_path):
    dcp.save({"a": whole(2)}, checkpoint_id=tmp_path)
    found = {"a": torch.zeros(2), "other": 5}
    dcp.load(found, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert found["a"].tolist() == [0, 1] and found["other"] == 5


def test_a_folder_without_a_checkpoint_says_so(tmp_path):
    with pytest.raises(dcp.CheckpointException, match="FileNotFoundError"):
        dcp.load({"a": 1}, checkpoint_id=tmp_path)
    with pytest.raises(RuntimeError, match="Cannot detect which StorageReader or StorageWriter to use"):
        dcp.load({"a": 1}, checkpoint_id="abc://abc")
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({"a": 1})


def test_overwriting_replaces_the_whole_checkpoint(tmp_path):
    for value in (1.0, 2.0, 3.0):
        dcp.save({"a": torch.full((3,), value)}, checkpoint_id=tmp_path)
        found = {"a": torch.zeros(3)}
        dcp.load(found, checkpoint_id=tmp_path)
        assert found["a"].tolist() == [value] * 3 and len(os.listdir(tmp_path)) == 2
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists and self.overwrite=False."):
        dcp.save({"a": torch.zeros(3)}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))


KILLED = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import cresset, cresset.distributed.checkpoint as dcp
from cresset.distributed.checkpoint import filesystem
calls, at = [0], int(sys.argv[2])
def counted(name, function):
    def wrapper(*args, **kwargs):
        calls[0] += 1
        if calls[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return wrapper
os.fsync, os.replace = counted("fsync", os.fsync), counted("replace", os.replace)
filesystem.FileSystem.rm_file = counted("rm", filesystem.FileSystem.rm_file)
cresset.save = counted("save", cresset.save)
dcp.save({"a": cresset.full((4,), 2.0), "b": 2}, checkpoint_id=sys.argv[1])
print(calls[0])
"""


def test_a_killed_save_leaves_the_old_checkpoint_or_the_new_one(tmp_path):
    """Kills at every write, fsync, rename and removal of a save over another one."""
    folder = tmp_path / "checkpoint"
    dcp.save({"a": torch.ones(4), "b": 1}, checkpoint_id=folder)
    seen, at = set(), 1
    while True:
        done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(at)], capture_output=True, text=True)
        found = {"a": torch.zeros(4), "b": 0}
        dcp.load(found, checkpoint_id=folder)
        assert found["a"].tolist() == [float(found["b"])] * 4
        seen.add(found["b"])
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            break
        at += 1
        if found["b"] == 2:
            dcp.save({"a": torch.ones(4), "b": 1}, checkpoint_id=folder)
    assert seen == {1, 2} and at > 8
    assert sorted(n.endswith(".distcp") for n in os.listdir(folder)) == [False, True]


# Files ------------------------------------------------------------------------------------------------------------------


class Runs:
    def __reduce__(self):
        return (os.system, ("touch /tmp/cresset_was_run",))


@pytest.mark.parametrize("value", [Runs(), os.system, dist.HashStore])
def test_metadata_names_nothing_but_metadata(tmp_path, value):
    dcp.save({"a": whole(2)}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(value))
    with pytest.raises(dcp.CheckpointException, match=r"UnpicklingError: \.metadata: the file names .*, which is not part of a checkpoint's metadata"):
        dcp.load({"a": whole(2)}, checkpoint_id=tmp_path)
    assert not os.path.exists("/tmp/cresset_was_run")


def test_values_that_would_run_code_are_refused(tmp_path):
    dcp.save({"a": Runs()}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Weights only load failed"):
        dcp.load({"a": 1}, checkpoint_id=tmp_path)


def test_a_file_outside_of_the_folder_is_refused(tmp_path):
    from cresset.distributed.checkpoint._metadata_file import read_metadata, write_metadata

    dcp.save({"a": whole(2)}, checkpoint_id=tmp_path)
    path = tmp_path / ".metadata"
    metadata = read_metadata(path.read_bytes())
    for place in metadata.storage_data.values():
        place.relative_path = "../secret"
    data = io.BytesIO()
    write_metadata(metadata, data)
    path.write_bytes(data.getvalue())
    with pytest.raises(dcp.CheckpointException, match="a file of the checkpoint's folder was required; '../secret' was given."):
        dcp.load({"a": whole(2)}, checkpoint_id=tmp_path)


def test_damaged_files_are_errors(tmp_path):
    """Every cut, and bytes changed: an error that says so, or the values there were; never a crash."""
    dcp.save({"a": whole(2), "b": 3}, checkpoint_id=tmp_path)
    for name in (".metadata", "__0_0.distcp"):
        data = (tmp_path / name).read_bytes()
        changed = [data[:n] for n in range(0, len(data), 97)]
        changed += [data[:n] + bytes([data[n] ^ 255]) + data[n + 1 :] for n in range(0, len(data), 53)]
        for bad in changed:
            (tmp_path / name).write_bytes(bad)
            try:
                dcp.load({"a": torch.zeros(2), "b": 0}, checkpoint_id=tmp_path)
            except dcp.CheckpointException as error:
                assert "CheckpointException ranks" in str(error)
        (tmp_path / name).write_bytes(data)


PYTORCH = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed.checkpoint as dcp
value = {"m": {"w": torch.arange(6.0).reshape(2, 3), "h": torch.ones(3, dtype=torch.bfloat16)}, "step": 3, "list": [1, {"x": torch.zeros(2)}],
         "p": torch.nn.Parameter(torch.ones(2)), "text": "abc", "deep": {"k": (1, 2), "n": None, "f": 0.5}}
if sys.argv[1] == "save":
    dcp.save(value, checkpoint_id=sys.argv[2])
else:
    found = {"m": {"w": torch.zeros(2, 3), "h": torch.zeros(3, dtype=torch.bfloat16)}, "step": 0, "list": [0, {"x": torch.ones(2)}],
             "p": torch.nn.Parameter(torch.zeros(2)), "text": "", "deep": {"k": (), "n": 1, "f": 0.0}}
    dcp.load(found, checkpoint_id=sys.argv[2])
    assert str(found) == str(value), found
"""


@pytest.mark.skipif("CRESSET_ORACLE_PYTHON" not in os.environ, reason="CRESSET_ORACLE_PYTHON names an interpreter with PyTorch")
def test_files_cross_with_pytorch(tmp_path):
    oracle = os.environ["CRESSET_ORACLE_PYTHON"]
    subprocess.run([oracle, "-c", PYTORCH, "save", str(tmp_path / "theirs")], check=True)
    ours = PYTORCH.replace("import torch,", "import cresset as torch, cresset.distributed; import cresset.distributed.checkpoint as dcp #")
    subprocess.run([sys.executable, "-c", ours, "load", str(tmp_path / "theirs")], check=True)
    subprocess.run([sys.executable, "-c", ours, "save", str(tmp_path / "ours")], check=True)
    subprocess.run([oracle, "-c", PYTORCH, "load", str(tmp_path / "ours")], check=True)


SHARDED = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
import multiprocessing
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

def work(rank, what, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}-store", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    whole = torch.arange(35.0).reshape(7, 5)
    start = whole if what == "save" else torch.zeros(7, 5)
    value = {str(n): distribute_tensor(start.clone(), mesh, [p]) for n, p in enumerate((Shard(0), Shard(1), Replicate()))}
    if what == "save":
        dcp.save(value, checkpoint_id=folder)
    else:
        dcp.load(value, checkpoint_id=folder)
        assert all(torch.equal(v.full_tensor(), whole) for v in value.values())
    dist.destroy_process_group()

if __name__ == "__main__":
    ranks = [multiprocessing.get_context("fork").Process(target=work, args=(r, *sys.argv[1:])) for r in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(any(process.exitcode for process in ranks))
"""


def crosses(rank, what, path):
    mesh, layouts = Mesh(dist.get_world_size()), (Shard(1), Replicate(), Shard(0))
    start = whole(7, 5) if what == "save" else torch.zeros(7, 5)
    value = {str(n): Placed(start, mesh, p) for n, p in enumerate(layouts)}
    (dcp.save if what == "save" else dcp.load)(value, checkpoint_id=path)
    return all(torch.equal(v.local, cut(whole(7, 5), *v.box)) for v in value.values())


@pytest.mark.skipif("CRESSET_ORACLE_PYTHON" not in os.environ, reason="CRESSET_ORACLE_PYTHON names an interpreter with PyTorch")
def test_sharded_files_cross_with_pytorch(pool, tmp_path):
    oracle = os.environ["CRESSET_ORACLE_PYTHON"]
    subprocess.run([oracle, "-c", SHARDED, "save", str(tmp_path / "theirs")], check=True)
    assert all(pool.run(crosses, "load", tmp_path / "theirs"))
    assert all(pool.run(crosses, "save", tmp_path / "ours"))
    subprocess.run([oracle, "-c", SHARDED, "load", str(tmp_path / "ours")], check=True)


def test_format_utils(tmp_path):
    from cresset.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

    value = {"m": {"w": whole(2, 3)}, "step": 3, "list": [1, {"x": whole(2)}]}
    dcp.save(value, checkpoint_id=tmp_path / "a")
    dcp_to_torch_save(tmp_path / "a", tmp_path / "file.pt")
    assert same(torch.load(tmp_path / "file.pt"), value)
    torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "b")
    found = blank(value)
    dcp.load(found, checkpoint_id=tmp_path / "b")
    assert same(found, value)


# Several ranks ----------------------------------------------------------------------------------------------------------


def saves(rank, path, shape, *placements):
    dcp.save({"x": Placed(whole(*shape), Mesh(dist.get_world_size()), *placements), "same": whole(5), "step": 4}, checkpoint_id=path)


def loads(rank, path, shape, *placements):
    target = Placed(torch.zeros(shape), Mesh(dist.get_world_size()), *placements)
    found = {"x": target, "same": torch.zeros(5), "step": 0}
    dcp.load(found, checkpoint_id=path)
    assert torch.equal(target.local, cut(whole(*shape), *target.box)), (target.local, target.box)
    assert torch.equal(found["same"], whole(5)) and found["step"] == 4
    return os.listdir(path)


SHAPES = [(7, 4), (2, 5), (12,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_resharding(pool, tmp_path, shape):
    layouts = [Shard(d) for d in range(len(shape))] + [Replicate()]
    for n, first in enumerate(layouts):
        pool.run(saves, tmp_path / str(n), shape, first)
        for second in layouts:
            pool.run(loads, tmp_path / str(n), shape, second)
        alone = {"x": torch.zeros(shape), "same": torch.zeros(5), "step": 0}
        dcp.load(alone, checkpoint_id=tmp_path / str(n))
        assert torch.equal(alone["x"], whole(*shape))


def test_a_checkpoint_of_one_process_is_loaded_by_several(pool, tmp_path):
    dcp.save({"x": whole(7, 4), "same": whole(5), "step": 4}, checkpoint_id=tmp_path)
    pool.run(loads, tmp_path, (7, 4), Shard(0))


def own_items(rank, path):
    mine = OwnItems(torch.full((2, 3), float(rank)))
    dcp.save({"x": mine}, checkpoint_id=path)
    mine.as_subclass(torch.Tensor).zero_()
    dcp.load({"x": mine}, checkpoint_id=path)
    return mine.as_subclass(torch.Tensor)[0, 0].item()


def test_tensors_that_make_their_items(pool, tmp_path):
    assert pool.run(own_items, tmp_path) == [float(r) for r in range(len(pool.pipes))]
    found = {"x": torch.zeros(2 * len(pool.pipes), 3)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["x"][::2, 0].tolist() == [float(r) for r in range(len(pool.pipes))]


def replicated(rank, path, lowest):
    planner = dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=lowest)
    dcp.save({str(n): torch.ones(1000) for n in range(6)}, checkpoint_id=path, planner=planner)
    return len(planner.plan.items)


def test_what_all_ranks_have_is_written_once(pool, tmp_path):
    counts = pool.run(replicated, tmp_path / "a", False)
    assert sum(counts) == 6 and min(counts) == max(counts)
    assert pool.run(replicated, tmp_path / "b", True) == [6] + [0] * (len(counts) - 1)


def fails(rank, path, where):
    class Writer(dcp.FileSystemWriter):
        def write_data(self, plan, planner):
            if where == "write" and rank == 1:
                raise OSError("no space")
            return super().write_data(plan, planner)

        def prepare_local_plan(self, plan):
            if where == "plan" and rank == 1:
                raise OSError("no space")
            return super().prepare_local_plan(plan)

        def finish(self, metadata, results):
            if where == "finish":
                raise OSError("no space")
            super().finish(metadata, results)

    try:
        dcp.save({"x": torch.ones(2) * rank}, storage_writer=Writer(path))
    except dcp.CheckpointException as error:
        return {r: f"{type(e).__name__}: {e}" for r, (e, _) in error.failures.items()}


@pytest.mark.parametrize("where, who", [("plan", 1), ("write", 1), ("finish", 0)])
def test_an_error_on_one_rank_is_raised_on_all_and_leaves_the_old_checkpoint(pool, tmp_path, where, who):
    pool.run(saves, tmp_path, (4, 4), Shard(0))
    assert pool.run(fails, tmp_path, where) == [{who: "OSError: no space"}] * len(pool.pipes)
    pool.run(loads, tmp_path, (4, 4), Shard(1))


def dies(rank, path, store, results):
    """Rank 1 is killed while it writes."""

    class Writer(dcp.FileSystemWriter):
        def write_data(self, plan, planner):
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().write_data(plan, planner)

    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    try:
        dcp.save({"x": Placed(torch.zeros(4, 4), Mesh(2), Shard(0)), "same": torch.zeros(5), "step": 0}, storage_writer=Writer(path))
        results.put("saved")
    except dist.DistBackendError as error:
        results.put(str(error))


def test_a_rank_that_is_killed_leaves_the_old_checkpoint(pool, tmp_path):
    pool.run(saves, tmp_path / "checkpoint", (4, 4), Shard(0))
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    ranks = [context.Process(target=dies, args=(r, tmp_path / "checkpoint", tmp_path / "store", results)) for r in range(2)]
    for process in ranks:
        process.start()
    assert "rank 1 is gone" in results.get(timeout=60)
    for process in ranks:
        process.join()
    pool.run(loads, tmp_path / "checkpoint", (4, 4), Shard(1))


def in_background(rank, path):
    group = dist.new_group()
    value = {"x": Placed(whole(6, 2), Mesh(dist.get_world_size()), Shard(0)), "y": torch.ones(3), "n": [1, 2]}
    future = dcp.async_save({"y": value["y"], "n": value["n"]}, checkpoint_id=path, process_group=group)
    value["y"].zero_()
    value["n"].append(3)
    dist.all_reduce(torch.ones(1))  # the default group is free
    future.result()
    found = {"y": torch.zeros(3), "n": None}
    dcp.load(found, checkpoint_id=path)
    dist.destroy_process_group(group)
    return found["y"].tolist(), found["n"]


def test_async_save_saves_what_there_was(pool, tmp_path):
    assert pool.run(in_background, tmp_path) == [([1.0] * 3, [1, 2])] * len(pool.pipes)


def test_async_save_with_a_stager(tmp_path):
    from cresset.distributed.checkpoint.staging import DefaultStager

    value = {"x": torch.ones(3)}
    stager = DefaultStager()
    response = dcp.async_save(value, checkpoint_id=tmp_path, async_stager=stager)
    response.staging_completion.result()
    value["x"].zero_()
    response.upload_completion.result()
    found = {"x": torch.zeros(3)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["x"].tolist() == [1.0] * 3
    with pytest.raises(NotImplementedError, match="async_save: AsyncCheckpointerType.THREAD was required"):
        dcp.async_save(value, checkpoint_id=tmp_path, async_checkpointer_type=dcp.state_dict_saver.AsyncCheckpointerType.PROCESS)
    failing = dcp.async_save(value, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(dcp.CheckpointException, match="already exists"):
        failing.result()

