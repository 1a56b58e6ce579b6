"""Counting the collectives of a program."""

from collections import defaultdict, namedtuple

import cresset
from cresset.utils._python_dispatch import TorchDispatchMode

from .._collective_operators import ops as _native
from ._state import LIMIT, dispatcher

__all__ = ["CommDebugMode", "visualize_sharding"]

_CacheInfo = namedtuple("_CacheInfo", ["hits", "misses", "maxsize", "currsize"])
_COLLECTIVES = (
    "all_reduce", "all_reduce_coalesced", "all_gather_into_tensor", "all_gather_into_tensor_coalesced", "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced", "all_to_all_single", "broadcast",
)  # fmt: skip
_OF_C10D = (
    "_allgather_base_", "_reduce_scatter_base_", "allgather_", "allgather_coalesced_", "allgather_into_tensor_coalesced_", "allreduce_",
    "allreduce_coalesced_", "alltoall_", "alltoall_base_", "broadcast_", "gather_", "reduce_", "reduce_scatter_", "reduce_scatter_tensor_coalesced_",
    "scatter_",
)  # fmt: skip


def _counted():
    """{operator: what it is counted as}: functional collectives by their older namespace, c10d's own by theirs."""
    native, older = _native, cresset.ops.c10d_functional
    found = {}
    for name in _COLLECTIVES:
        found[getattr(native, name).default] = getattr(older, name)
        for form in (name + "_", name + "_out"):
            if form in ("all_reduce_", "all_reduce_coalesced_", "broadcast_", "all_gather_into_tensor_out", "reduce_scatter_tensor_out"):
                found[getattr(native, form).default] = getattr(older, name)
    c10d = cresset.ops.c10d
    return {**found, **{getattr(c10d, name).default: getattr(c10d, name) for name in _OF_C10D}}


class CommDebugMode(TorchDispatchMode):
    """A block that counts collectives: `get_comm_counts()` by operator, `get_total_counts()`, and by module in `comm_module_counts`.

    Modules have the name of the root's class and their path below it; "Global" is everything. Collectives of c10d
    (`distributed.all_reduce`) are counted by their own operators, messages and barriers are not.
    """

    def __init__(self):
        super().__init__()
        self._names = _counted()
        self._reset()

    def _reset(self):
        self.comm_counts = defaultdict(int)
        self.comm_module_counts = {"Global": {"forward": defaultdict(int), "backward": defaultdict(int)}}
        self.comm_module_operation_counts, self._modules, self._paths = {}, [], {}
        self.parameter_info, self.sharding_info = {}, {}

    def __enter__(self):
        from cresset.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._reset()
        self._hooks = [register_module_forward_pre_hook(self._begin), register_module_forward_hook(self._end, always_call=True)]
        super().__enter__()
        return self

    def __exit__(self, *exc_info):
        for hook in self._hooks:
            hook.remove()
        return super().__exit__(*exc_info)

    def _begin(self, module, inputs):
        if id(module) not in self._paths:  # a root, by its class; what is below it by its path
            root = type(module).__name__
            self._paths.update({id(m): f"{root}.{path}" if path else root for path, m in module.named_modules()})
        path = self._paths[id(module)]
        self._modules.append(path)
        parameters = {name: parameter.data for name, parameter in module.named_parameters(recurse=False)}
        if parameters:
            self.parameter_info[path] = parameters

    def _end(self, module, inputs, outputs):
        if self._modules:
            self._modules.pop()

    def get_comm_counts(self):
        """{operator: how often}."""
        return self.comm_counts

    def get_total_counts(self):
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_parameter_info(self):
        """{module: its parameters}."""
        return self.parameter_info

    def get_sharding_info(self):
        """{module.parameter: placements} of parameters that are DTensors."""
        from ._api import DTensor

        return {f"{m}.{n}": p.placements for m, ps in self.parameter_info.items() for n, p in ps.items() if isinstance(p, DTensor)}

    def generate_comm_debug_tracing_table(self, noise_level=3):
        """A text of what each module did."""
        lines = []
        for module, parts in self.comm_module_counts.items():
            lines.append(module)
            for part, counts in parts.items():
                lines += [f"  *{part}: {op} {count}" for op, count in counts.items()]
        return "\n".join(lines)

    def log_comm_debug_tracing_table_to_file(self, file_name="comm_mode_log.txt", noise_level=3):
        """Append that text to a file."""
        with open(file_name, "a") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level) + "\n")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        from ._api import DTensor

        # DTensors come first: what they do on parts is counted.
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        out = func(*args, **(kwargs or {}))
        if func in self._names:
            self._count(self._names[func])
        return out

    def _count(self, name):
        part = "backward" if cresset._C._current_graph_task_id() != -1 else "forward"
        self.comm_counts[name] += 1
        for module in ["Global", *dict.fromkeys(self._modules)]:
            counts = self.comm_module_counts.setdefault(module, {"forward": defaultdict(int), "backward": defaultdict(int)})
            counts[part][name] += 1


def _get_sharding_prop_cache_info():
    """(hits, misses, limit, present number) of the decisions that are kept."""
    return _CacheInfo(dispatcher.hits, dispatcher.misses, LIMIT, len(dispatcher.decisions))


def visualize_sharding(dtensor, header="", use_rich=False):
    """Print which rows and columns of a DTensor of one or two dimensions each rank has."""
    from ._utils import compute_local_shape_and_global_offset

    if dtensor.numel() == 0:
        return
    if dtensor.dim() > 2:
        raise RuntimeError("visualize sharding is only supported for 1D or 2D DTensor")
    sizes, offsets = compute_local_shape_and_global_offset(dtensor.shape, dtensor.device_mesh, dtensor.placements)
    ranges = ", ".join(f"{o}-{o + s - 1}" for s, o in zip(sizes, offsets))
    print(f"{header}\n" if header else "", f"rank {dtensor.device_mesh.get_rank()}: {ranges}", sep="")
