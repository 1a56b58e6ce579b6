"""Meshes on four ranks: places, slices, flattened and split dimensions, groups, words of errors."""

import copy
import pickle
import re

import pytest

import cresset
import cresset.distributed as dist
from cresset.distributed.device_mesh import DeviceMesh, init_device_mesh


def places(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and mesh.shape == (2, 2) and mesh.ndim == 2 and mesh.size() == 4 and mesh.size(1) == 2
    assert list(mesh.get_coordinate()) == [rank // 2, rank % 2] and mesh.get_rank() == rank
    assert mesh.get_local_rank("dp") == rank // 2 and mesh.get_local_rank(1) == rank % 2
    assert dist.get_process_group_ranks(mesh.get_group("tp")) == ([0, 1] if rank < 2 else [2, 3])
    assert dist.get_process_group_ranks(mesh.get_group("dp")) == [rank % 2, rank % 2 + 2]
    assert [g.size() for g in mesh.get_all_groups()] == [2, 2]
    total = cresset.tensor(float(rank))
    dist.all_reduce(total, group=mesh.get_group("dp"))
    assert total.item() == 2 * (rank % 2) + 2
    assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"


def parts(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    count = dist.get_pg_count()
    assert mesh["tp"].mesh.tolist() == ([0, 1] if rank < 2 else [2, 3]) and mesh["dp"].get_local_rank() == rank // 2
    assert mesh["dp", "tp"] is mesh and mesh["tp"].get_group() is mesh.get_group("tp") and dist.get_pg_count() == count
    flat = mesh._flatten("all")
    assert flat.mesh.tolist() == [0, 1, 2, 3] and mesh["all"] is flat and mesh._flatten("all") is flat and mesh.get_group("all") is flat.get_group()
    line = init_device_mesh("cpu", (4,), mesh_dim_names=("world",))
    split = line._unflatten(0, (2, 2), ("a", "b"))
    assert split.mesh.tolist() == [[0, 1], [2, 3]] and split.mesh_dim_names == ("a", "b") and split["b"].get_local_rank() == rank % 2
    both = DeviceMesh._concatenate([mesh["dp"], mesh["tp"]])
    assert both == mesh and hash(both) == hash(mesh) and both != line
    assert line.get_group() is dist.group.WORLD
    assert copy.deepcopy(mesh) is mesh and pickle.loads(pickle.dumps(mesh)) == mesh and pickle.loads(pickle.dumps(mesh["tp"])) == mesh["tp"]


def of_groups(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    again = DeviceMesh.from_group(mesh.get_all_groups(), "cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
    assert again == mesh and again.get_group("tp") is mesh.get_group("tp")
    assert DeviceMesh.from_group(dist.group.WORLD, "cpu").mesh.tolist() == [0, 1, 2, 3]
    some = DeviceMesh("cpu", [0, 2])
    assert (some.get_coordinate() is None) == (rank % 2 == 1)
    with mesh:
        assert dist.device_mesh._mesh_resources.get_current_mesh() is mesh
    own = init_device_mesh("cpu", (4,), backend_override={0: "gloo"})
    assert own.get_group() is not dist.group.WORLD and own.get_group().size() == 4


ERRORS = [
    (lambda m: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)), RuntimeError, "mesh_shape and mesh_dim_names should have same length!"),
    (lambda m: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")), RuntimeError, "Each mesh_dim_name must be unique."),
    (lambda m: init_device_mesh("cpu", (8,)), RuntimeError, "Mesh should not be bigger than default world size 4, but found 8 ranks!"),
    (lambda m: init_device_mesh("cpu:0", (4,)), RuntimeError, "Device type with index is not supported but got cpu:0."),
    (lambda m: init_device_mesh("cpu", (4,), backend_override={"x": "gloo"}), RuntimeError, "Found invalid keys in backend_override: got ['x']"),
    (lambda m: init_device_mesh("cpu", (4,), mesh_dim_names=("a",), backend_override={0: "gloo", "a": "gloo"}), RuntimeError, "redundant dim index 0 and name a"),
    (lambda m: DeviceMesh("cpu", [0, 0]), RuntimeError, "each rank must be in a mesh once"),
    (lambda m: DeviceMesh("cpu"), TypeError, "The mesh argument is required"),
    (lambda m: m["x"], KeyError, "Invalid mesh_dim_names ('x',) specified. Valid mesh_dim_names are ['dp', 'tp']"),
    (lambda m: m["tp", "dp"], KeyError, "Mesh dim indices should be in ascending order"),
    (lambda m: DeviceMesh("cpu", [0, 1, 2, 3])["dp"], RuntimeError, "Cannot slice a DeviceMesh without mesh_dim_names!"),
    (lambda m: m.get_group(), RuntimeError, "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."),
    (lambda m: m.get_group("x"), KeyError, "Mesh dimension 'x' does not exist."),
    (lambda m: m.get_local_rank(), RuntimeError, "Found the DeviceMesh have 2 dimensions"),
    (lambda m: m._flatten("dp"), ValueError, "dp already exists for submesh"),
    (lambda m: m._unflatten("dp", (3, 1), ("a", "b")), ValueError, "the sizes (3, 1) do not make 2"),
    (lambda m: DeviceMesh("cpu", [0], _init_backend=False).get_group(), RuntimeError, "DeviceMesh process groups not initialized!"),
    (lambda m: DeviceMesh.from_group([], "cpu"), ValueError, "Expects at least one ProcessGroup to be passed"),
    (lambda m: DeviceMesh.from_group(dist.group.WORLD, "cpu", [[0, 1], [2, 3]]), ValueError, "Invalid mesh [[0, 1], [2, 3]] for ProcessGroup with ranks [0, 1, 2, 3]"),
    (lambda m: dist.device_mesh._mesh_resources.get_current_mesh(), RuntimeError, "No device mesh is currently active!"),
]  # fmt: skip


def errors(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for call, kind, words in ERRORS:
        with pytest.raises(kind, match=re.escape(words)):
            call(mesh)


@pytest.mark.parametrize("program", [places, parts, of_groups, errors])
def test_mesh(four, program):
    four.run(program)
