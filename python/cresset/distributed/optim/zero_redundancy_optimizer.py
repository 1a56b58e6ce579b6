"""ZeroRedundancyOptimizer: each rank has the optimizer's state of its share of the parameters, steps those, and sends them to the others.

Method: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020), stage 1.
"""


import cresset
from cresset import distributed as dist
from cresset._logging import logger_of
from cresset.nn.parallel._joinable import Joinable, JoinHook
from cresset.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

_log = logger_of(__name__)


def _broadcast_object(obj, src_rank, group=None, device=None):
    """The object of rank `src_rank` (of the default group) on every rank."""
    values = [obj]
    dist.broadcast_object_list(values, src=src_rank, group=group)
    return values[0]


class _ZeROJoinHook(JoinHook):
    def __init__(self, zero):
        super().__init__()
        self.zero = zero

    def main_hook(self):
        """A step with the gradients there are."""
        self.zero.step()


def _checked(params):
    """A list of tensors, or of groups."""
    if isinstance(params, cresset.Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {params.type()}")
    try:
        found = list(params)
    except TypeError:
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {type(params).__name__}") from None
    if not found:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    tensors = [p for entry in found for p in (_of_group(entry) if isinstance(entry, dict) else [entry])]
    for p in tensors:
        if not isinstance(p, cresset.Tensor):
            raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got an iterable containing {type(p)}")
    if len({isinstance(entry, dict) for entry in found}) > 1:
        raise TypeError("`params` argument should be an iterable of Tensors or an iterable of dicts; both were given")
    if any(p.layout != cresset.strided for p in tensors):
        raise ValueError("ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got a sparse one")
    kinds = {p.dtype for p in tensors}
    if len(kinds) > 1:
        raise ValueError(f"ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both {' and '.join(sorted(map(str, kinds)))}")
    return found, tensors


def _of_group(group):
    if "params" not in group:
        raise KeyError("params")
    params = group["params"]
    return [params] if isinstance(params, cresset.Tensor) else list(params)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of `optimizer_class(params, **defaults)` whose state is divided among the ranks of `process_group`.

    `param_groups` are those of all parameters, `optim` is the optimizer of this rank's share: parameters go, from the largest to the smallest, to the
    rank that has the fewest elements. Gradients have to be there on every rank (DistributedDataParallel averages them).
    With `parameters_as_bucket_view` parameters of a rank are views of one tensor, which is sent as a whole; then `p.data` must not be
    assigned. `consolidate_state_dict(to)` brings the state together for state_dict(). With `overlap_with_ddp` the steps are made by a hook of
    DistributedDataParallel (algorithms.ddp_comm_hooks.ddp_zero_hook), bucket by bucket, and step() does nothing.
    """

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults):
        if not dist.is_available() or not dist.is_initialized():
            raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
        if overlap_with_ddp and parameters_as_bucket_view:
            _log.warning("`parameters_as_bucket_view=True` will be ignored since `overlap_with_ddp=True`; instead, a different bucketing strategy will be used")
        groups, tensors = _checked(params)
        self.initialized = False
        Optimizer.__init__(self, groups, defaults)
        Joinable.__init__(self)
        self._all_params, self.process_group = tensors, process_group if process_group is not None else dist.group.WORLD
        self.rank, self.world_size = dist.get_rank(self.process_group), dist.get_world_size(self.process_group)
        self.parameters_as_bucket_view, self._overlap_with_ddp = parameters_as_bucket_view and not overlap_with_ddp, overlap_with_ddp
        self._optim_defaults, self._optim_constructor = defaults, optimizer_class
        self._default_device = tensors[0].device
        self._all_state_dicts, self._whole_buckets = [], []
        self._make_optim()
        self._copy_options(self.optim.param_groups, self.param_groups)
        self.initialized = True

    def _make_optim(self):
        self._divide()
        self.optim = self._optim_constructor(self._local_groups(), **self._optim_defaults)

    # --- shares

    def _divide(self):
        """`_shares[r][g]`: the parameters of group g that rank r has. Those of one of `_whole_buckets` have one rank."""
        sizes, self._param_to_rank = [0] * self.world_size, {}
        of_bucket = {p: bucket for bucket in self._whole_buckets for p in bucket}
        self._shares = [[[] for _ in self.param_groups] for _ in range(self.world_size)]
        for number, group in enumerate(self.param_groups):
            for p in sorted(group["params"], key=lambda p: -p.numel()):
                if p not in self._param_to_rank:
                    together = of_bucket.get(p, [p])
                    rank = min(range(self.world_size), key=sizes.__getitem__)
                    sizes[rank] += sum(q.numel() for q in together)
                    self._param_to_rank.update(dict.fromkeys(together, rank))
                self._shares[self._param_to_rank[p]][number].append(p)
        self._index_to_param = [p for group in self.param_groups for p in group["params"]]
        self._param_to_index = {p: i for i, p in enumerate(self._index_to_param)}
        self._flat = {}
        if self.parameters_as_bucket_view:
            self._flatten()

    def _flatten(self):
        with cresset.no_grad():
            for rank, share in enumerate(self._shares):
                by_device = {}
                for p in (p for some in share for p in some):
                    by_device.setdefault(p.device, []).append(p)
                self._flat[rank] = []
                for params in by_device.values():
                    flat = cresset.cat([p.detach().reshape(-1) for p in params])
                    for p, part in zip(params, flat.split([p.numel() for p in params])):
                        p.data = part.view(p.shape)
                    self._flat[rank].append(flat)

    def _local_groups(self):
        return [
            {key: value for key, value in group.items() if key not in ("params", "param_names")} | {"params": share}
            for group, share in zip(self.param_groups, self._shares[self.rank])
        ]

    def add_param_group(self, param_group):
        """Add a group; its parameters are shared out as the others were, whose ranks do not change."""
        before = len(self.param_groups)
        super().add_param_group(param_group)
        if not self.initialized:
            return
        _, tensors = _checked(self.param_groups)
        self._all_params = tensors
        self._divide()
        self.optim.add_param_group(self._local_groups()[before])

    @staticmethod
    def _copy_options(source, target):
        """All but parameters, from groups to groups."""
        for a, b in zip(source, target):
            b.update({key: value for key, value in a.items() if key not in ("params", "param_names")})

    # --- steps

    def step(self, closure=None, **kwargs):
        """A step of this rank's share, after which every rank has all parameters; what the optimizer's step gives."""
        if self._overlap_with_ddp:
            _log.warning("`step()` should not be included in the training loop when `overlap_with_ddp=True`")
            return None
        from cresset.distributed.algorithms.join import Join

        Join.notify_join_context(self)
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._send()
        self._copy_options(self.optim.param_groups, self.param_groups)
        return loss

    def _send(self):
        """Every rank's share to all."""
        works = []
        for rank, share in enumerate(self._shares):
            tensors = self._flat[rank] if self.parameters_as_bucket_view else [p.detach() for some in share for p in some]
            works += [dist.broadcast(t, group=self.process_group, group_src=rank, async_op=True) for t in tensors]
        for work in works:
            work.wait()

    # --- steps by bucket

    def _keep_buckets_whole(self, buckets):
        """Share anew, before the first step: the parameters of each of `buckets` go to one rank."""
        self._whole_buckets = buckets
        self._make_optim()

    def _step_bucket(self, parameters, gradients):
        """A step of what this rank has of a bucket, with these gradients; the broadcasts of the bucket, which have begun."""
        owners = {p: self._param_to_rank[p] for p in parameters if p in self._param_to_rank}
        given = {p: g for p, g in zip(parameters, gradients) if owners.get(p) == self.rank}
        if given:
            self._copy_options(self.param_groups, self.optim.param_groups)
            kept = [(p, p.grad) for p in given], [(group, group["params"]) for group in self.optim.param_groups]
            try:
                for p, gradient in given.items():
                    p.grad = gradient
                for group, params in kept[1]:
                    group["params"] = [p for p in params if p in given]
                self.optim.step()
            finally:
                for p, gradient in kept[0]:
                    p.grad = gradient
                for group, params in kept[1]:
                    group["params"] = params
        return [dist.broadcast(p.detach(), group=self.process_group, group_src=owner, async_op=True) for p, owner in owners.items()]

    # --- Join

    def join_hook(self, **kwargs):
        """Steps with the gradients there are."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self):
        """That of the first parameter."""
        return self._default_device

    @property
    def join_process_group(self):
        """The process group."""
        return self.process_group

    # --- state

    def consolidate_state_dict(self, to=0):
        """Bring the states of all ranks to rank `to`, whose state_dict() then has them; all ranks call it together."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        is_target = self.rank == to
        states = [None] * self.world_size if is_target else None
        dist.gather_object(self.optim.state_dict(), states, group=self.process_group, group_dst=to)
        self._all_state_dicts = states or []

    def state_dict(self):
        """The state of all parameters, as `optimizer_class` has it in one process. RuntimeError on a rank that consolidate_state_dict has not brought it to."""
        if not self._all_state_dicts:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if "
                "you meant to save the global state."
            )
        whole = super().state_dict()
        found = {}
        for share, local in zip(self._shares, self._all_state_dicts):
            params = [p for some in share for p in some]
            found.update({self._param_to_index[params[i]]: value for i, value in local["state"].items()})
        whole["state"] = dict(sorted(found.items()))
        return whole

    def load_state_dict(self, state_dict):
        """Load a state of all parameters; this rank keeps that of its share."""
        super().load_state_dict(state_dict | {"state": {}})
        mine = [self._param_to_index[p] for some in self._shares[self.rank] for p in some]
        local = self.optim.state_dict()
        local["state"] = {place: state_dict["state"][index] for place, index in enumerate(mine) if index in state_dict["state"]}
        self._copy_options(self.param_groups, local["param_groups"])
        self.optim.load_state_dict(local)
