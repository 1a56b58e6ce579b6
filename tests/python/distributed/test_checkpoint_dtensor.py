"""Checkpoints and states of DTensors: other meshes and placements on load, saves in the background, whole states and those of rank 0."""


import pytest

import cresset as torch
import cresset.distributed as dist
import cresset.distributed.checkpoint as dcp
from cresset import nn
from cresset.distributed.checkpoint import state_dict as sd
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.tensor import Replicate, Shard, distribute_tensor


def whole():
    return torch.arange(35.0).reshape(7, 5)


def tensors(start):
    """One and, on four ranks, two dimensions of ranks."""
    size = dist.get_world_size()
    if size == 4:
        mesh, layouts = init_device_mesh("cpu", (2, 2)), [[Shard(0), Shard(0)], [Shard(1), Shard(0)], [Replicate(), Shard(1)]]
    else:
        mesh, layouts = init_device_mesh("cpu", (size,)), [[Shard(0)], [Shard(1)], [Replicate()]]
    return {str(n): distribute_tensor(start.clone(), mesh, placements) for n, placements in enumerate(layouts)}


def saves(rank, path):
    values, group = tensors(whole()), dist.new_group()
    saving = dcp.async_save(values, checkpoint_id=path, process_group=group)
    for value in values.values():
        value.to_local().zero_()
    saving.result()
    dist.destroy_process_group(group)


def loads(rank, path):
    values = tensors(torch.zeros(7, 5))
    dcp.load(values, checkpoint_id=path)
    return all(torch.equal(v.full_tensor(), whole()) for v in values.values())


def test_meshes(pair, four, tmp_path):
    pair.run(saves, tmp_path / "2")
    four.run(saves, tmp_path / "4")
    for pool in (pair, four):
        assert all(pool.run(loads, tmp_path / "2")) and all(pool.run(loads, tmp_path / "4"))
    alone = {str(n): torch.zeros(7, 5) for n in range(3)}
    with pytest.warns(UserWarning, match="assuming the intent is to load in a single process"):
        dcp.load(alone, checkpoint_id=tmp_path / "4")
    assert all(torch.equal(v, whole()) for v in alone.values())


def states(rank):
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    model = nn.Linear(6, 4)
    for name, p in list(model.named_parameters()):
        setattr(model, name, nn.Parameter(distribute_tensor(p.data, mesh, [Shard(0)])))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(distribute_tensor(torch.ones(3, 6), mesh, [Replicate()])).sum().backward()
    optimizer.step()
    weights, moments = sd.get_state_dict(model, optimizer, options=sd.StateDictOptions(full_state_dict=True))
    assert type(weights["weight"]) is torch.Tensor and weights["weight"].shape == moments["state"]["weight"]["exp_avg"].shape == (4, 6)
    with torch.no_grad():
        model.weight.to_local().zero_()
    optimizer.state[model.weight]["exp_avg"].to_local().zero_()
    options = sd.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    given = (weights, moments) if rank == 0 else ({}, {})
    sd.set_state_dict(model, optimizer, model_state_dict=given[0], optim_state_dict=given[1], options=options)
    assert torch.equal(optimizer.state[model.weight]["exp_avg"].full_tensor(), moments["state"]["weight"]["exp_avg"])
    return torch.equal(model.weight.full_tensor(), weights["weight"]) and bool(weights["weight"].ne(0).any())


def test_states(pair):
    assert pair.run(states) == [True, True]
