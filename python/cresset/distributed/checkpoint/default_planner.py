"""The planners of save and load: every tensor's parts, everything else as bytes; what several ranks have is written once."""

import dataclasses
import io
import operator
from functools import reduce

import cresset

from ._dedup_save_plans import dedup_save_plans
from ._nested_dict import flatten_state_dict
from ._traverse import set_element
from .metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .planner_helpers import _create_default_metadata_only_plan, _create_read_items, _create_write_items, _is_tensor, _size_of
from .resharding import _shares
from .utils import find_state_dict_object

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]

_VERSION = "1.0.0"  # of the metadata's form


def _volume(sizes):
    return reduce(operator.mul, sizes, 1)


class DefaultSavePlanner(SavePlanner):
    """Plans a save of nested dictionaries of tensors and other values.

    `flatten_state_dict` gives each value of nested dictionaries a name of its own; without it a nested dictionary is bytes.
    `dedup_save_to_lowest_rank` has the lowest rank write what several have, where otherwise the writing is spread. Classes that derive from
    it change `lookup_object` and `transform_object`. `dedup_replicated_tensors` is without effect; `enable_plan_caching` reuses nothing
    and plans afresh each time, with the same result.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None, dedup_save_to_lowest_rank=False,
                 enable_plan_caching=False):  # fmt: skip
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank, self._enable_plan_caching = dedup_save_to_lowest_rank, enable_plan_caching
        self.mappings = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self):
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans):
        """(plans, Metadata). ValueError where chunks of a tensor overlap, reach out of it or leave a part out."""
        plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            merged = {}
            for plan in reversed(all_plans):
                merged |= plan.planner_data
            metadata = dataclasses.replace(metadata, planner_data=merged)
        problems = _validate_global_plan(plans, metadata)
        if problems:
            raise ValueError("Failed to validate global plan\n" + "\n".join(problems))
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan):
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """The value, or the part of a tensor, that an index names."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item, object):
        """What is written of a value: bytes of one that is no tensor."""
        if write_item.type == WriteItemType.BYTE_IO:
            data = io.BytesIO()
            cresset.save(object, data)
            object = data
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Plans a load into a state_dict: its tensors are filled where they are, everything else becomes what was saved.

    With `allow_partial_load`, names that the checkpoint lacks keep their values; otherwise they are a RuntimeError. Values that are no
    tensors are read as load(weights_only=True) does: no code of the checkpoint runs; add_safe_globals names further classes.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        _without_meta_tensors(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self):
        assert self.metadata is not None
        if self.flatten_state_dict:
            self._follow_older_names()
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def _follow_older_names(self):
        """Names as PyTorch 2.3 made them, where the checkpoint has those and lacks today's."""
        saved = self.metadata.state_dict_metadata
        if all(name in saved for name in self.state_dict):
            return
        older, mappings = flatten_state_dict(self.original_state_dict, like_2_3=True)
        if all(name in saved for name in older):
            self.state_dict, self.mappings = older, mappings

    def create_global_plan(self, global_plan):
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan):
        return new_plan

    def load_bytes(self, read_item, value):
        name = read_item.dest_index.fqn
        loaded = cresset.load(value, weights_only=True)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)
        self.state_dict[name] = loaded

    def resolve_tensor(self, read_item):
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item, tensor):
        pass

    def lookup_tensor(self, index):
        """The tensor, or the part of one, that an index names."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item, tensor):
        """The part of it that an item fills."""
        for dim, (begin, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            tensor = tensor.narrow(dim, begin, length)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills an empty state_dict with what the checkpoint has: all, or what lies at or below one of `keys`."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = {keys} if isinstance(keys, str) else keys

    def _wanted(self, name, metadata):
        if self.keys is None or name in self.keys:
            return True
        path = (metadata.planner_data or {}).get(name, (name,))
        return any(".".join(map(str, path[: n + 1])) in self.keys for n in range(len(path)))

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        assert not state_dict
        assert metadata is not None
        for name, md in metadata.state_dict_metadata.items():
            if not self._wanted(name, metadata):
                continue
            value = cresset.empty(md.size, dtype=md.properties.dtype) if isinstance(md, TensorStorageMetadata) else md
            if name in (metadata.planner_data or {}):
                set_element(state_dict, metadata.planner_data[name], value)
            else:
                state_dict[name] = value
        super().set_up_planner(state_dict, metadata, is_coordinator)


def _without_meta_tensors(container):
    """Tensors without memory get some."""
    for key, value in container.items() if isinstance(container, dict) else enumerate(container):
        if isinstance(value, (dict, list)):
            _without_meta_tensors(value)
        elif type(value) in (cresset.Tensor, cresset.nn.Parameter) and value.is_meta:
            container[key] = cresset.empty_like(value, device="cpu")


# Plans ------------------------------------------------------------------------------------------------------------------


def create_default_local_save_plan(state_dict, is_coordinator):
    """A SavePlan of all that this rank has; nothing of a tensor whose mesh it is not part of."""
    return SavePlan([item for name, value in state_dict.items() for item in _create_write_items(name, value)])


def create_default_global_save_plan(all_plans, rewrite_index_hints=True):
    """(plans, Metadata) of plans in which each chunk is written once; with `rewrite_index_hints` indices say the chunk's place in the Metadata."""
    found, plans = {}, []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.type == WriteItemType.BYTE_IO:
                found[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            md = found.setdefault(name, TensorStorageMetadata(properties=data.properties, size=data.size, chunks=[]))
            if rewrite_index_hints:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(md.chunks)))
            items.append(item)
            assert data.chunk is not None, f"{name}: the item of a tensor has no chunk"
            md.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(found, version=_VERSION)


def create_default_local_load_plan(state_dict, metadata, strict=True):
    """A LoadPlan that fills this rank's values. RuntimeError for names that the checkpoint lacks (`strict`), ValueError for other sizes."""
    items = []
    for name, value in state_dict.items():
        md = metadata.state_dict_metadata.get(name)
        if md is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(md, TensorStorageMetadata) and _is_tensor(value) and tuple(_size_of(value)) != tuple(md.size):
            raise ValueError(f"Size mismatch between saved {md.size} and current: {_size_of(value)} for {name}")
        items += _create_read_items(name, md, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans):
    """The plans as they are: ranks read what they need."""
    return all_plans


def _create_default_local_metadata(state_dict):
    """The Metadata that a save of this state_dict would have, as far as one rank knows."""
    return create_default_global_save_plan([_create_default_metadata_only_plan(state_dict)])[1]


# Checks -----------------------------------------------------------------------------------------------------------------


def _check_box_overlap(box0, box1):
    return _shares(box0, box1)


def _check_box_bounds(outer_box_size, inner_box):
    return all(o >= 0 and n >= 0 and o + n <= whole for whole, o, n in zip(outer_box_size, inner_box.offsets, inner_box.sizes))


def _overlaps(chunks):
    """A pair of chunks that share an element, or None. They are compared in the order of their begin along the first cut dimension."""
    chunks = [c for c in chunks if _volume(c.sizes)]
    if len(chunks) < 2:
        return None
    dims = range(len(chunks[0].offsets))
    cut = next((d for d in dims if len({c.offsets[d] for c in chunks}) > 1), None)
    if cut is None:
        return (chunks[0], chunks[1])
    active = []
    for chunk in sorted(chunks, key=lambda c: c.offsets[cut]):
        active = [c for c in active if c.offsets[cut] + c.sizes[cut] > chunk.offsets[cut]]
        for other in active:
            if _shares(chunk, other):
                return (other, chunk)
        active.append(chunk)
    return None


def _validate_global_plan(global_plan, metadata):
    """What is wrong with chunks of tensors, as texts."""
    problems = []
    for name, md in metadata.state_dict_metadata.items():
        if isinstance(md, BytesStorageMetadata):
            continue
        for chunk in md.chunks:
            if not _check_box_bounds(md.size, chunk):
                problems.append(f"key:{name} has out of bounds chunk: tensor-size:{md.size} chunk: {chunk}")
        pair = _overlaps(md.chunks)
        if pair is not None:
            problems.append(f"key:{name} has overlapping chunks: {pair[0]} {pair[1]}")
        volume = sum(_volume(chunk.sizes) for chunk in md.chunks)
        if md.chunks and volume != _volume(md.size):
            problems.append(f"key:{name} invalid fill tensor-volume: {_volume(md.size)} chunks-volume: {volume}")
    return problems
