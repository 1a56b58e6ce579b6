"""DistributedDataParallel: one copy of a module in each rank, gradients averaged over ranks while backward goes on."""

import contextlib
import inspect
import warnings
from dataclasses import dataclass, fields, is_dataclass
from typing import Optional

import cresset
from cresset._hints import with_hint
from cresset.nn.modules.module import Module
from cresset.nn.parallel._joinable import Joinable, JoinHook
from cresset.nn.parallel.scatter_gather import scatter_kwargs

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET = 2**20
_NOT_THERE = ("delay_all_reduce_named_params", "param_to_hook_all_reduce", "device_mesh", "skip_all_reduce_unused_params")


def _tensors_in(value):
    """The tensors in nested lists, tuples, dictionaries and dataclasses."""
    if isinstance(value, cresset.Tensor):
        return [value]
    if is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, f.name) for f in fields(value)]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for item in value for t in _tensors_in(item)]


@dataclass
class _MixedPrecision:
    """Dtypes of DistributedDataParallel's `mixed_precision`; None leaves what there is.

    Forward and backward run with parameters and inputs of `param_dtype` and buffers of `buffer_dtype`; gradients travel in `reduce_dtype`
    (without one, in `param_dtype`). Parameters, their gradients and the optimizer's state keep their dtype.
    """

    param_dtype: Optional["cresset.dtype"] = None
    reduce_dtype: Optional["cresset.dtype"] = None
    buffer_dtype: Optional["cresset.dtype"] = None


def _cast(value, dtype):
    """Floating point tensors in nested lists, tuples and dictionaries as `dtype`."""
    if isinstance(value, cresset.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: _cast(item, dtype) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_cast(item, dtype) for item in value)
    return value


class _DDPJoinHook(JoinHook):
    """The collectives of an iteration of DistributedDataParallel, by a rank that is out of inputs."""

    def __init__(self, ddp, divide_by_initial_world_size):
        super().__init__()
        ddp._divide_by_initial_world_size = divide_by_initial_world_size
        self.ddp = ddp

    def main_hook(self):
        ddp = self.ddp
        reduces = ddp._anyone_reduces(False)
        ddp._sync_buffers(joined=True)
        ddp.require_forward_param_sync = reduces
        if reduces:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner):
        """The model of the last rank for all."""
        ddp = self.ddp
        source = ddp._highest_rank(is_last_joiner)
        ddp._send_state([*ddp._all_parameters, *ddp._buffers_to_sync()], source)


class DistributedDataParallel(Module, Joinable):
    """`module` in each rank of a process group, with gradients averaged over ranks in backward; `.module` is the module.

    Parameters and buffers become those of rank 0 (`init_sync`), buffers again before each forward (`forward_sync_buffers`, formerly
    `broadcast_buffers`). Gradients are reduced in buckets of `bucket_cap_mb` MiB (25; `bucket_cap_mb_list` gives each its own), the first of
    1 MiB, from the last parameter to the first. With `gradient_as_bucket_view` gradients are views of the buckets. `find_unused_parameters` is
    for modules whose forward leaves parameters out, `static_graph` for those that do the same each time. RuntimeError for a module without
    parameters that need gradients, or that differs between ranks; NotImplementedError for `device_mesh`,
    `delay_all_reduce_named_params`, `param_to_hook_all_reduce` and `skip_all_reduce_unused_params`. `mixed_precision` is a _MixedPrecision.
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=None, init_sync=True, process_group=None, bucket_cap_mb=None,
        find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None, skip_all_reduce_unused_params=False, bucket_cap_mb_list=None,
        batched_grad_copy=False, forward_sync_buffers=None,
    ):  # fmt: skip
        from cresset.distributed import _NOT_BUILT, is_available

        if not is_available():
            error = ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
            raise with_hint(error, f"DistributedDataParallel: {_NOT_BUILT}")
        from cresset.distributed import _groups

        Module.__init__(self)
        Joinable.__init__(self)
        given = (delay_all_reduce_named_params, param_to_hook_all_reduce, device_mesh, skip_all_reduce_unused_params or None)
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        for name, value in zip(_NOT_THERE, given):
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not part of Cresset.")
        if mixed_precision is not None and not isinstance(mixed_precision, _MixedPrecision):
            raise TypeError(f"DistributedDataParallel: mixed_precision: a _MixedPrecision was required; a {type(mixed_precision).__name__} was given.")
        self.process_group = _groups._group_or_default(process_group)
        self.module, self.dim = module, dim
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._collect_parameters()
        self._set_devices(device_ids, output_device)
        if broadcast_buffers is not None and forward_sync_buffers is not None:
            raise ValueError("DistributedDataParallel: broadcast_buffers or forward_sync_buffers was required; both were given.")
        self.broadcast_buffers = next((v for v in (forward_sync_buffers, broadcast_buffers) if v is not None), True)
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.static_graph, self.mixed_precision = static_graph, mixed_precision
        self._divide_by_initial_world_size = True
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 2**20)
        caps = [int(mb * 2**20) for mb in bucket_cap_mb_list] if bucket_cap_mb_list else [self.bucket_bytes_cap]
        self._caps = caps if bucket_cap_mb_list or bucket_cap_mb is not None else [_FIRST_BUCKET, *caps]
        if static_graph and find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused parameters automatically, "
                "so you do not need to set find_unused_parameters=true, just be sure these unused parameters will not change during training loop "
                "while calling `_set_static_graph`.",
                stacklevel=2,
            )
        if init_sync:
            self._verify()
            self._send_state([*self._all_parameters, *(self._buffers_to_sync() if broadcast_buffers is not False else [])])
        self._make_reducer()
        if mixed_precision is not None:
            self._set_precision(mixed_precision)

    # --- making

    def _set_precision(self, precision):
        if precision.buffer_dtype is not None:
            for buffer in self._buffers_to_sync():
                if buffer.is_floating_point():
                    buffer.data = buffer.data.to(precision.buffer_dtype)
        self.reducer.reduce_dtype = precision.reduce_dtype or precision.param_dtype

    def _collect_parameters(self):
        named = [(name, p) for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        self._all_parameters = [p for _, p in named]
        self._reduced = [(name, p) for name, p in named if p.requires_grad]
        if not self._reduced:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        if any(isinstance(p, cresset.nn.parameter.UninitializedParameter) for p in self._all_parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                "Run a dummy forward pass to correctly initialize the modules"
            )

    def _set_devices(self, device_ids, output_device):
        devices = {p.device for p in self._all_parameters}
        kinds = {d.type for d in devices}
        if len(kinds) > 1:
            raise ValueError(f"DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {kinds}.")
        self.device, self.device_type = next(iter(devices)), next(iter(kinds))
        if device_ids and (len(device_ids) > 1 or self.device_type == "cpu" or len(devices) > 1):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU "
                f"modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters {devices}."
            )
        self.device_ids, self.output_device = device_ids or None, output_device

    def _buffers_to_sync(self):
        return [b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _verify(self):
        """RuntimeError on all ranks when a rank's module is another one."""
        from cresset.distributed import _objects

        group = self.process_group
        if group.size() == 1:
            return
        shapes, rank = [None] * group.size(), group.rank()
        _objects.all_gather_object(shapes, [tuple(p.shape) for _, p in self._reduced], group=group)
        mine = shapes[rank]
        for other, theirs in enumerate(shapes):
            if len(theirs) != len(mine):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {rank} has {len(mine)} params, while rank {other} has inconsistent {len(theirs)} params."
                )
        for other in range(group.size()) if rank == 0 else [0]:
            for i, (a, b) in enumerate(zip(mine, shapes[other])):
                if a != b:
                    raise RuntimeError(f"[{rank}]: params[{i}] in this process with sizes {list(a)} appears not to match sizes of the same param in process {other}.")

    def _send_state(self, tensors, source=0):
        from cresset.distributed._reducer import broadcast_coalesced

        if self.process_group.size() > 1:
            broadcast_coalesced(tensors, self.process_group, source)

    def _with_sparse_gradients(self):
        """Places of parameters of embeddings with sparse=True."""
        kinds = (cresset.nn.Embedding, cresset.nn.EmbeddingBag)
        weights = {m.weight for m in self.module.modules() if isinstance(m, kinds) and m.sparse}
        return frozenset(i for i, (_, p) in enumerate(self._reduced) if p in weights)

    def _make_reducer(self):
        from cresset.distributed._reducer import _Averages, assign

        parameters, sparse = [p for _, p in self._reduced], self._with_sparse_gradients()
        self.reducer = _Averages(
            parameters, [name for name, _ in self._reduced], self.process_group, assign(parameters, self._caps, sparse),
            self.find_unused_parameters, self.gradient_as_bucket_view, self.static_graph, sparse,
        )  # fmt: skip

    def __getstate__(self):
        """Without what belongs to this process; only the default group can be pickled."""
        from cresset.distributed import _groups

        if self.process_group is not _groups._get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you have "
                "called init_process_group and have not passed process_group argument to DDP constructor"
            )
        state = dict(self.__dict__)
        for name in ("process_group", "reducer", "_reduced", "_all_parameters"):
            del state[name]
        return state

    def __setstate__(self, state):
        from cresset.distributed import _groups

        super().__setstate__(state)
        self.process_group = _groups._get_default_group()
        self._collect_parameters()
        self._make_reducer()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore):
        """Leave parameters and buffers of these names (of the module's state_dict) to each rank."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _set_static_graph(self):
        """Promise that every forward uses the same parameters; before the first one."""
        self.static_graph = self.reducer.static = True

    def _get_ddp_logging_data(self):
        """What this object was made with, and how it went: for logs."""
        from cresset.distributed import _groups

        parameters, buckets = [p for _, p in self._reduced], self.reducer.buckets
        known = self.process_group in _groups.current().pg_map
        return {
            "world_size": self.process_group.size(), "rank": self.process_group.rank(), "module_name": type(self.module).__name__,
            "backend_name": str(_groups.get_backend(self.process_group)) if known else self.process_group.name(),
            "is_multi_device_module": len({p.device for p in self._all_parameters}) > 1, "device_ids": self.device_ids,
            "broadcast_buffers": self.broadcast_buffers, "bucket_cap_bytes": self.bucket_bytes_cap, "static_graph": self.static_graph,
            "find_unused_parameters": self.find_unused_parameters, "gradient_as_bucket_view": self.gradient_as_bucket_view,
            "num_parameter_tensors": len(parameters), "total_parameter_size_bytes": sum(p.nbytes for p in parameters),
            "dtypes": ", ".join(sorted({str(p.dtype).partition(".")[2] for p in parameters})),
            "bucket_sizes": ", ".join(str(b.buffer.nbytes) for b in buckets), "num_buckets_reduced": len(buckets),
            "has_sync_bn": any(isinstance(m, cresset.nn.SyncBatchNorm) for m in self.module.modules()), "iteration": self.reducer.passes,
            "has_error": bool(self.reducer.error), "error": self.reducer.error,
        }  # fmt: skip

    # --- using

    def will_sync_module_buffers(self):
        """Does the next forward take the buffers of rank 0?"""
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self._buffers_to_sync())

    def _sync_buffers(self, joined=False):
        if self.will_sync_module_buffers():
            self._send_state(self._buffers_to_sync(), self._highest_rank(not joined) if self._join_config.enable else 0)

    def _call(self, inputs, kwargs):
        dtype = self.mixed_precision.param_dtype if self.mixed_precision is not None else None
        if dtype is None:
            return self.module(*inputs, **kwargs)
        # The casts are part of the graph: gradients arrive at the parameters in the dtype of these.
        parameters = {name: _cast(p, dtype) for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore}
        return cresset.func.functional_call(self.module, parameters, _cast(inputs, dtype), _cast(kwargs, dtype))

    def _before(self, inputs, kwargs):
        """What comes in front of the module's forward; its arguments."""
        gradients = cresset.is_grad_enabled()
        if gradients and self.require_backward_grad_sync:
            self.reducer.check_finished()
        if self._join_config.enable:
            self._begin_iteration(gradients and self.require_backward_grad_sync)
        self._sync_buffers()
        if self.device_ids:
            (inputs,), (kwargs,) = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        return inputs, kwargs

    def _behind(self, output):
        """What comes behind the module's forward: the backward from its result averages gradients."""
        gradients = cresset.is_grad_enabled()
        self.require_forward_param_sync = gradients and self.require_backward_grad_sync
        if gradients:
            self.reducer.prepare(_tensors_in(output), self.require_backward_grad_sync)
        return output

    def forward(self, *inputs, **kwargs):
        """The module's result. Buffers become rank 0's before; the backward from the result averages gradients, unless in no_sync()."""
        inputs, kwargs = self._before(inputs, kwargs)
        return self._behind(self._call(inputs, kwargs))

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients of forwards inside add up in this rank; the first backward of a forward outside averages their sums."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @staticmethod
    def _check_hook(hook):
        from cresset.distributed import GradBucket
        from cresset.futures import Future

        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        try:
            signature = inspect.signature(hook)
        except ValueError:
            signature = None
        if signature is not None:
            bucket = signature.parameters.get("bucket")
            if bucket is not None and bucket.annotation not in (inspect.Parameter.empty, GradBucket):
                raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
            if signature.return_annotation not in (inspect.Signature.empty, Future, Future[cresset.Tensor]):
                raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")

    def register_comm_hook(self, state, hook):
        """`hook(state, bucket)` reduces each bucket, a distributed.GradBucket: it gives a Future of the flat tensor of gradients.

        Nothing is divided by the number of ranks. RuntimeError for a second hook, TypeError for what cannot be called.
        """
        try:
            self._check_hook(hook)
        except (TypeError, ValueError) as error:
            self.reducer.error = str(error)
            raise
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (hook, state)

    # --- ranks with different numbers of inputs

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A context for ranks with different numbers of batches: those that are out of them take part in the others' collectives.

        Gradients are divided by the number of ranks, or with `divide_by_initial_world_size` false by the number of those that still have
        batches. At the end all have the model of a rank that was last. `throw_on_early_termination`: RuntimeError on all ranks instead.
        """
        from cresset.distributed.algorithms.join import Join

        return Join([self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs):
        """What Join does for this module; `divide_by_initial_world_size` is as for join()."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self):
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self):
        """The process group."""
        return self.process_group

    def _begin_iteration(self, reduces):
        """Says to ranks that are out of inputs what comes: whether there is another iteration, and whether its gradients are averaged."""
        from cresset.distributed.algorithms.join import Join

        work = Join.notify_join_context(self)
        if work is not None:
            count = work.get_future().wait()[0]
            self.reducer.divisor = None if self._divide_by_initial_world_size else int(count.item())
        self._anyone_reduces(reduces)

    def _anyone_reduces(self, reduces):
        from cresset.distributed import _collectives

        flag = cresset.tensor([float(reduces)], device=self.device)
        _collectives.all_reduce(flag, group=self.process_group)
        return bool(flag.item())

    def _highest_rank(self, candidate):
        """The highest rank that is a candidate."""
        from cresset.distributed import ReduceOp, _collectives

        rank = cresset.tensor([self.process_group.rank() if candidate else -1], device=self.device)
        _collectives.all_reduce(rank, ReduceOp.MAX, group=self.process_group)
        if int(rank) < 0:
            raise ValueError("BUG! Expected rank_cond to be true for at least one process.")
        return int(rank)
