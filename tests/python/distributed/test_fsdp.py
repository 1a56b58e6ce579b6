"""FullyShardedDataParallel beside one process that sees the whole batch, its states across wrappings, and what it refuses."""

import copy
import functools
import math
import re
import warnings

import pytest

import cresset
from cresset import distributed as dist
from cresset import nn
from cresset.distributed import checkpoint
from cresset.distributed._state_dict_utils import _gather_state_dict
from cresset.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, apply_activation_checkpointing, checkpoint_wrapper
from cresset.distributed.algorithms._comm_hooks import default_hooks
from cresset.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from cresset.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.fsdp import (
    CPUOffload, FlatParameter, FullOptimStateDictConfig, FullStateDictConfig, FullyShardedDataParallel as FSDP, LocalStateDictConfig, MixedPrecision,
    OptimStateKeyType, ShardingStrategy, StateDictType,
)  # fmt: skip
from cresset.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, lambda_auto_wrap_policy, size_based_auto_wrap_policy
from cresset.distributed.tensor import DTensor

FULL, SHARDED, LOCAL = StateDictType.FULL_STATE_DICT, StateDictType.SHARDED_STATE_DICT, StateDictType.LOCAL_STATE_DICT


class Net(nn.Module):
    """No size divides by the ranks."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(5, 7)
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(7, 7), nn.Tanh(), nn.LayerNorm(7)) for _ in range(2)])
        self.out = nn.Linear(7, 3)
        self.register_buffer("scale", cresset.full((3,), 1.0 / 3, dtype=cresset.float64))

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x) + x
        return self.out(x) * self.scale


def pair_of_models():
    cresset.manual_seed(0)
    model = Net().double()
    return model, copy.deepcopy(model)


POLICIES = {
    "none": None,
    "class": ModuleWrapPolicy({nn.Sequential}),
    "custom": CustomPolicy(lambda m: {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP} if isinstance(m, nn.Linear) else False),
    "lambda": functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.LayerNorm)),
    "size": functools.partial(size_based_auto_wrap_policy, min_num_params=50),
}
OPTIMIZERS = {
    "sgd": lambda p: cresset.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: cresset.optim.AdamW(p, lr=0.01),
}


def largest(states, others):
    assert list(states) == list(others)
    return max((states[name] - others[name]).abs().max().item() for name in others)


def train(rank, strategy, optimizer, policy, recompute=None):
    model, plain = pair_of_models()
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (2, ranks // 2)) if strategy.name.endswith(("HYBRID_SHARD", "ZERO2")) else None
    model = FSDP(model, sharding_strategy=strategy, auto_wrap_policy=POLICIES[policy], device_mesh=mesh, use_orig_params=True)
    if recompute is not None:
        wrapper = functools.partial(checkpoint_wrapper, checkpoint_impl=recompute)
        apply_activation_checkpointing(model, wrapper, check_fn=lambda m: isinstance(m, nn.Sequential))
    ours, theirs = (OPTIMIZERS[optimizer](m.parameters()) for m in (model, plain))
    for batch in cresset.randn(3, 2 * ranks, 5, dtype=cresset.float64):
        mine = batch[2 * rank : 2 * rank + 2]
        with model.no_sync():
            model(mine).square().mean().backward()
        model(mine).exp().mean().backward()
        (plain(batch).square().mean() + plain(batch).exp().mean()).backward()
        norms = model.clip_grad_norm_(0.05), nn.utils.clip_grad_norm_(plain.parameters(), 0.05)
        assert not isinstance(norms[0], DTensor) and cresset.allclose(*norms)
        for each in (ours, theirs):
            each.step()
            each.zero_grad()
        with cresset.no_grad():
            assert cresset.allclose(model(batch), plain(batch))
    states = FSDP.optim_state_dict(model, ours)["state"]
    for (name, _), values in zip(plain.named_parameters(), theirs.state_dict()["state"].values(), strict=True):
        assert all(cresset.allclose(states[name][key], value) for key, value in values.items())
    return largest(model.state_dict(), plain.state_dict())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("strategy", [ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD])
def test_training(pair, strategy, policy):
    assert max(pair.run(train, strategy, "adamw" if policy in ("none", "class") else "sgd", policy)) < 1e-9


@pytest.mark.parametrize("strategy", [ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2])
def test_training_in_groups(four, strategy):
    assert max(four.run(train, strategy, "sgd", "class")) < 1e-9


@pytest.mark.parametrize("recompute", CheckpointImpl)
def test_training_with_checkpoints(pair, recompute):
    assert max(pair.run(train, ShardingStrategy.FULL_SHARD, "adamw", "class", recompute)) < 1e-9


def mixed(rank):
    seen = []

    class Watched(nn.Linear):
        def forward(self, x):
            seen.append((x.dtype, self.weight.dtype))
            return super().forward(x)

    inner = nn.Sequential(Watched(4, 4), nn.BatchNorm1d(4))
    half = MixedPrecision(param_dtype=cresset.bfloat16, reduce_dtype=cresset.float32, buffer_dtype=cresset.bfloat16)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = FSDP(inner, mixed_precision=half, auto_wrap_policy=ModuleWrapPolicy({Watched}))
    assert any("These modules will be wrapped as separate FSDP instances with mixed precision disabled." in str(w.message) for w in said)
    out = model(cresset.randn(3, 4))
    out.float().sum().backward()
    assert seen == [(cresset.bfloat16,) * 2] and out.dtype == cresset.bfloat16
    assert all(p.dtype == p.grad.dtype == cresset.float32 for p in model.parameters())
    assert {v.dtype for v in model.state_dict().values()} == {cresset.float32, cresset.int64}
    # A buffer of a module with mixed precision.
    model = FSDP(Net(), mixed_precision=half)
    model(cresset.randn(3, 5))
    assert model.scale.dtype == cresset.bfloat16 and model.state_dict()["scale"].dtype == cresset.float64
    assert FSDP(Net(), mixed_precision=MixedPrecision(reduce_dtype=cresset.bfloat16))(cresset.randn(3, 5).float()).dtype == cresset.float64


def test_mixed_precision(pair):
    pair.run(mixed)


def states(rank, kind):
    model, plain = pair_of_models()
    model = FSDP(model, auto_wrap_policy=POLICIES["class"])
    FSDP.set_state_dict_type(model, kind)
    assert FSDP.get_state_dict_type(model).state_dict_type == kind
    state = model.state_dict()
    assert list(state) == list(plain.state_dict())
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    model(cresset.randn(2, 5, dtype=cresset.float64)).sum().backward()
    optimizer.step()
    moments = FSDP.optim_state_dict(model, optimizer)
    kinds = {type(v).__name__ for v in state.values()}, {type(v).__name__ for v in moments["state"]["inp.weight"].values()}
    # Another model and optimizer get both.
    other = FSDP(Net().double(), auto_wrap_policy=POLICIES["class"])
    FSDP.set_state_dict_type(other, kind)
    other.load_state_dict(state)
    second = cresset.optim.AdamW(other.parameters(), lr=1.0)
    second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, moments))
    FSDP.set_state_dict_type(model, FULL)
    FSDP.set_state_dict_type(other, FULL)
    a, b = FSDP.optim_state_dict(model, optimizer), FSDP.optim_state_dict(other, second)
    assert a["param_groups"] == b["param_groups"] and list(a["state"]) == list(b["state"])
    assert all(cresset.equal(a["state"][n][k], b["state"][n][k]) for n in a["state"] for k in a["state"][n])
    return kinds


@pytest.mark.parametrize(
    "kind, model, optimizer", [(FULL, {"Tensor"}, {"Tensor"}), (SHARDED, {"ShardedTensor", "Tensor"}, {"ShardedTensor", "Tensor"}), (LOCAL, {"ShardedTensor", "Tensor"}, {"ShardedTensor", "Tensor"})]
)  # fmt: skip
def test_state_dicts(pair, kind, model, optimizer):
    assert pair.run(states, kind) == [(model, optimizer)] * 2


def options_of_states(rank):
    model, plain = pair_of_models()
    model = FSDP(model, device_mesh=init_device_mesh("cpu", (2,)))
    with FSDP.state_dict_type(model, FULL, FullStateDictConfig(rank0_only=True, offload_to_cpu=True), FullOptimStateDictConfig(rank0_only=True)):
        assert bool(model.state_dict()) == (rank == 0)
        optimizer = OPTIMIZERS["sgd"](model.parameters())
        assert bool(FSDP.optim_state_dict(model, optimizer)) == (rank == 0)
    with FSDP.state_dict_type(model, SHARDED):
        assert isinstance(model.state_dict()["inp.weight"], DTensor)
    model.load_state_dict(plain.state_dict())
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert largest(whole, plain.state_dict()) == 0
    model(cresset.randn(2, 5, dtype=cresset.float64)).sum().backward()
    optimizer.step()
    parts, moments = get_state_dict(model, optimizer)
    assert isinstance(parts["inp.weight"], DTensor) and FSDP.get_state_dict_type(model).state_dict_type == FULL
    other = FSDP(Net().double(), auto_wrap_policy=POLICIES["class"])
    second = OPTIMIZERS["sgd"](other.parameters())
    set_state_dict(other, second, model_state_dict=parts, optim_state_dict=moments)
    assert largest(other.state_dict(), model.state_dict()) == 0
    assert cresset.equal(FSDP.optim_state_dict(other, second)["state"]["out.bias"]["momentum_buffer"], moments["state"]["out.bias"]["momentum_buffer"].full_tensor())


def test_options_of_state_dicts(pair):
    pair.run(options_of_states)


def older_states(rank):
    model, plain = pair_of_models()
    model = FSDP(model, auto_wrap_policy=POLICIES["class"])
    optimizer, one = OPTIMIZERS["adamw"](model.parameters()), OPTIMIZERS["adamw"](plain.parameters())
    x = cresset.randn(2, 5, dtype=cresset.float64)
    for m, o in ((model, optimizer), (plain, one)):
        m(x).sum().backward()
        o.step()
    with pytest.warns(FutureWarning, match="full_optim_state_dict``is being deprecated"):
        whole = FSDP.full_optim_state_dict(model, optimizer)
    assert bool(whole) == (rank == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spread = FSDP.scatter_full_optim_state_dict(whole if rank == 0 else None, model, optim=optimizer)
        parts = FSDP.flatten_sharded_optim_state_dict(FSDP.sharded_optim_state_dict(model, optimizer), model, optimizer)
        whole = FSDP.full_optim_state_dict(model, optimizer, rank0_only=False)
        halves = FSDP.shard_full_optim_state_dict(whole, model, optim=optimizer)
        listed = FSDP.shard_full_optim_state_dict(whole, model, optim_input=[{"params": [p]} for p in model.parameters()])
    assert [group["params"] for group in listed["param_groups"]] == [[i] for i in range(len(list(plain.parameters())))]
    more = {"state": whole["state"], "param_groups": [{**whole["param_groups"][0], "params": whole["param_groups"][0]["params"][1:]}]}
    assert FSDP.optim_state_dict_to_load(model, optimizer, more)["param_groups"][0]["params"] == list(range(1, len(listed["param_groups"])))
    for made in (spread, parts, halves):
        optimizer.load_state_dict(made)
    numbered = FSDP.rekey_optim_state_dict(whole, OptimStateKeyType.PARAM_ID, plain, optim=one)
    assert all(cresset.allclose(numbered["state"][i][k], v) for i, s in one.state_dict()["state"].items() for k, v in s.items())
    named = FSDP.rekey_optim_state_dict(one.state_dict(), OptimStateKeyType.PARAM_NAME, plain, optim_input=plain.parameters())
    assert set(named["state"]) == set(whole["state"])
    with pytest.raises(ValueError, match="rekey_optim_state_dict: keys of the optimizer .* were required; 'strange' was given"):
        FSDP.rekey_optim_state_dict({"state": {"strange": {}}, "param_groups": []}, OptimStateKeyType.PARAM_ID, plain, optim=one)


def test_older_forms(pair):
    pair.run(older_states)


def summon(rank):
    model, plain = pair_of_models()
    model = FSDP(model, auto_wrap_policy=POLICIES["class"], use_orig_params=True)
    x = cresset.randn(2, 5, dtype=cresset.float64)
    names = [name for name, _ in plain.named_parameters()]
    assert all("_fsdp_wrapped_module." in name for name, _ in model.named_parameters())
    (model(x).sum()).backward()
    plain(x).sum().backward()
    with FSDP.summon_full_params(model, with_grads=True):
        assert [name for name, _ in model.named_parameters()] == names
        for p in model.parameters():
            assert not isinstance(p, DTensor) and p.grad.shape == p.shape
            p.grad.fill_(2.0)
        assert cresset.allclose(model(x), plain(x))
        with cresset.no_grad():
            model.inp.weight.fill_(rank + 5.0)
    # Each rank's changes of its own part are kept: rows 0 to 3 are rank 0's.
    assert model.state_dict()["inp.weight"][:, 0].tolist() == [5.0] * 4 + [6.0] * 3
    assert all((p.grad.full_tensor() == 2).all() for p in model.parameters())
    with FSDP.summon_full_params(model, writeback=False), cresset.no_grad():
        model.inp.weight.zero_()
    with FSDP.summon_full_params(model, rank0_only=True, writeback=False, offload_to_cpu=True):
        assert isinstance(model.inp.weight, DTensor) == (rank == 1)
    assert model.state_dict()["inp.weight"].min() == 5
    model.apply(lambda m: m.weight.data.fill_(3.0) if isinstance(m, nn.Linear) else None)
    assert (model.state_dict()["layers.1.0.weight"] == 3).all()
    with FSDP.summon_full_params(model), pytest.raises(ValueError, match="expected to be in states"):
        model.apply(lambda m: None)
    for refused in ({"rank0_only": True}, {"with_grads": True, "offload_to_cpu": True}):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            FSDP.summon_full_params(model, **refused)


def test_summon_full_params(pair):
    pair.run(summon)


def begin(rank):
    cresset.manual_seed(rank)
    model = FSDP(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), sync_module_states=True)
    weight = model.state_dict()["0.weight"]
    cresset.manual_seed(0)
    assert cresset.equal(weight, nn.Linear(3, 3).weight)
    with cresset.device("meta"):
        lazy = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    cresset.manual_seed(1)
    model = FSDP(lazy, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), param_init_fn=lambda m: m.to_empty(device="cpu", recurse=False) if m is lazy else m.to_empty(device="cpu").weight.data.fill_(4.0))
    assert (model.state_dict()["1.weight"] == 4).all()
    with cresset.device("meta"):
        lazy = nn.Linear(3, 3)
    assert FSDP(lazy).state_dict()["weight"].isfinite().all()
    ignored = nn.Linear(3, 3)
    model = FSDP(nn.Sequential(nn.Linear(3, 3), ignored), ignored_modules=[ignored], cpu_offload=CPUOffload(offload_params=True))
    assert not isinstance(ignored.weight, DTensor) and isinstance(model[0].weight, DTensor)
    model = FSDP(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), ignored_states=[ignored.weight])
    assert cresset.isfinite(model(cresset.ones(2, 3))).all() and model.check_is_root() and len(FSDP.fsdp_modules(model)) == 1
    model(cresset.ones(2, 3)).sum().backward()
    largest_of_all = max(p.grad.full_tensor().abs().max().item() for p in model.parameters() if p.grad is not None)
    assert math.isclose(model.clip_grad_norm_(1.0, math.inf), largest_of_all, rel_tol=1e-6)


def test_beginning(pair):
    pair.run(begin)


def hooks(rank):
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD):
        model, plain = pair_of_models()
        model = FSDP(model, sharding_strategy=strategy)
        hook = default_hooks.allreduce_hook if strategy == ShardingStrategy.NO_SHARD else default_hooks.reduce_scatter_hook
        model.register_comm_hook(default_hooks.DefaultState(model.process_group), hook)
        batch = cresset.randn(4, 5, dtype=cresset.float64)
        model(batch[2 * rank : 2 * rank + 2]).square().mean().backward()
        plain(batch).square().mean().backward()
        for p, q in zip(model.parameters(), plain.parameters()):
            assert cresset.allclose(p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad, q.grad)
        with pytest.raises(AssertionError, match="^A communication hook is already registered$"):
            model.register_comm_hook(None, hook)
    model = FSDP(Net())
    model.register_comm_hook(default_hooks.LowPrecisionState(model.process_group), default_hooks.bf16_compress_hook)
    model(cresset.ones(2, 5).float()).sum().backward()
    bias = model.out.bias.grad.full_tensor()
    assert cresset.allclose(bias, cresset.full((3,), 2 / 3, dtype=bias.dtype), rtol=1e-2)


def test_communication_hooks(pair):
    pair.run(hooks)


def refused(rank):
    group, mesh = dist.group.WORLD, init_device_mesh("cpu", (2,))
    cases = [
        (TypeError, "FullyShardedDataParallel: a module was required; a int was given.", lambda: FSDP(3)),
        (ValueError, "Cannot pass both process_group and device_mesh at the same time.", lambda: FSDP(Net(), group, device_mesh=mesh)),
        (ValueError, "requires explicit specification of process group or device_mesh.", lambda: FSDP(Net(), sharding_strategy=ShardingStrategy.HYBRID_SHARD)),
        (ValueError, "Expected process_group to be passed in as either None or Tuple", lambda: FSDP(Net(), group, ShardingStrategy.HYBRID_SHARD)),
        (ValueError, "ignored_modules expects nn.Module list elements but got types [<class 'int'>]", lambda: FSDP(Net(), ignored_modules=[3])),
        (ValueError, "ignored_states expects all nn.Parameter or all nn.Module list elements", lambda: FSDP(Net(), ignored_states=[3])),
        (ValueError, "Expected 42 to be callable", lambda: FSDP(Net(), param_init_fn=42)),
        (ValueError, "FSDP auto wrapping requires modules to not already have FSDP applied but found 0 in", lambda: FSDP(nn.Sequential(FSDP(Net())), auto_wrap_policy=size_based_auto_wrap_policy)),
        (ValueError, "should return False/True or a kwarg dict, but it returned 3", lambda: FSDP(Net(), auto_wrap_policy=CustomPolicy(lambda m: 3))),
        (NotImplementedError, "keep_low_precision_grads=True) is not supported", lambda: FSDP(Net(), mixed_precision=MixedPrecision(keep_low_precision_grads=True))),
        (RuntimeError, "Expected state_dict_config of type", lambda: FSDP.set_state_dict_type(FSDP(Net()), FULL, LocalStateDictConfig())),
        (RuntimeError, "DeviceMesh is not compatible with LOCAL_STATE_DICT.", lambda: FSDP.set_state_dict_type(FSDP(Net(), device_mesh=mesh), LOCAL)),
        (AttributeError, "has no _flat_param: parameters are not flattened here.", lambda: FSDP(Net())._flat_param),
        (RuntimeError, "FlatParameter: parameters are not flattened in Cresset", lambda: FlatParameter(cresset.ones(2))),
        (RuntimeError, "size mismatch for _fsdp_wrapped_module.weight", lambda: FSDP(nn.Linear(4, 4)).load_state_dict({"weight": cresset.ones(3, 3), "bias": cresset.ones(4)})),
        (RuntimeError, "device_id=0: a number is that of an accelerator", lambda: FSDP(Net(), device_id=0)),
    ]  # fmt: skip
    for kind, words, call in cases:
        with pytest.raises(kind, match=re.escape(words)):
            call()
    model = FSDP(nn.Sequential(nn.Linear(3, 3), FSDP(nn.Linear(3, 3))))
    out = model(cresset.ones(2, 3))
    for name, call in (("no_sync", lambda: model[1].no_sync().__enter__()), ("clip_grad_norm_", lambda: model[1].clip_grad_norm_(1.0))):
        with pytest.raises(RuntimeError, match=re.escape(name)):
            call()
    out.sum().backward()

    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, whole):
            with FSDP.summon_full_params(whole):
                pass

    model = FSDP(Inside())
    with pytest.raises(AssertionError, match="Cannot manually unshard parameters during forward/backward"):
        model(model)


def test_refused(pair):
    pair.run(refused)


def alone(rank):
    with pytest.warns(UserWarning, match="FSDP is switching to use `NO_SHARD` instead of ShardingStrategy.FULL_SHARD since the world size is 1."):
        model = FSDP(nn.Linear(2, 2), process_group=dist.new_group([rank], use_local_synchronization=True))
    model(cresset.ones(2, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[2.0, 2.0]] * 2


def test_one_rank(pair):
    pair.run(alone)


def from_checkpoint(rank, folder, dtensors, kind=SHARDED):
    mesh = init_device_mesh("cpu", (2,)) if dtensors else None
    model, _ = pair_of_models()
    model = FSDP(model, device_mesh=mesh, auto_wrap_policy=POLICIES["class"])
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    model(cresset.randn(2, 5, dtype=cresset.float64)).sum().backward()
    optimizer.step()
    moments = FSDP.optim_state_dict(model, optimizer)
    with FSDP.state_dict_type(model, kind):
        state = {"model": model.state_dict(), "optim": FSDP.optim_state_dict(model, optimizer)}
        checkpoint.save(state, checkpoint_id=folder)
        other = FSDP(Net().double(), device_mesh=mesh)
        FSDP.set_state_dict_type(other, kind)
        parts = {"model": other.state_dict()}
        checkpoint.state_dict_loader._load_state_dict(parts, checkpoint.FileSystemReader(folder))
        other.load_state_dict(parts["model"])
        second = cresset.optim.AdamW(other.parameters(), lr=1.0)
        found = load_sharded_optimizer_state_dict(parts["model"], "optim", checkpoint.FileSystemReader(folder))
        assert isinstance(found["optim"]["state"]["out.weight"]["exp_avg"], DTensor) == dtensors
        second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, found["optim"]))
        FSDP.set_state_dict_type(other, FULL)
    assert largest(other.state_dict(), model.state_dict()) == 0
    again = FSDP.optim_state_dict(other, second)
    assert again["param_groups"] == moments["param_groups"]
    gathered = _gather_state_dict(found, ranks_only=(0,))
    assert bool(gathered) == (rank == 0)
    if rank == 0:
        assert cresset.equal(gathered["optim"]["state"]["out.weight"]["exp_avg"], moments["state"]["out.weight"]["exp_avg"])
    assert all(cresset.equal(again["state"][n][k], moments["state"][n][k]) for n in moments["state"] for k in moments["state"][n])


@pytest.mark.parametrize("dtensors, kind", [(False, SHARDED), (True, SHARDED), (False, LOCAL)])
def test_checkpoints(pair, tmp_path, dtensors, kind):
    pair.run(from_checkpoint, str(tmp_path / "saved"), dtensors, kind)


def names_beside(rank):
    from cresset.distributed import distributed_c10d
    from cresset.distributed.fsdp._common_utils import _get_module_fsdp_state, _is_fsdp_flattened, clean_tensor_name
    from cresset.distributed.fsdp._traversal_utils import _get_fsdp_states
    from cresset.distributed.utils import _sync_module_states

    assert distributed_c10d._pg_map[dist.group.WORLD][0] == "gloo"
    model = FSDP(nn.Sequential(FSDP(nn.Linear(2, 2)), nn.Linear(2, 2)))
    assert all(_is_fsdp_flattened(p) for p in model.parameters()) and _get_fsdp_states(model) == [model, model[0]]
    assert _get_module_fsdp_state(model) is model and _get_module_fsdp_state(model[1]) is None
    assert clean_tensor_name("_fsdp_wrapped_module.0._checkpoint_wrapped_module.weight") == "0.weight"
    plain = nn.BatchNorm1d(2)
    for tensor in (plain.weight, plain.bias, plain.running_mean):
        tensor.detach().fill_(rank + 1.0)
    _sync_module_states(plain, dist.group.WORLD, 2**20, 1, {"bias"})
    assert (plain.weight[0].item(), plain.bias[0].item(), plain.running_mean[0].item()) == (2.0, rank + 1.0, 2.0)


def test_names_beside(pair):
    pair.run(names_beside)
