"""Items of plans, made of values."""

import cresset

from . import _sharding
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType, ReadItem, SavePlan, TensorWriteData, WriteItem, WriteItemType
from .resharding import _shards_get_overlap_region_wrt_saved_tensor, _shares

__all__ = ["create_read_items_for_chunk_list"]


def _is_tensor(value):
    return isinstance(value, cresset.Tensor) or _sharding.is_sharded(value) or _sharding.has_own_items(value)


def _size_of(value):
    return cresset.Size(value.size() if callable(getattr(value, "size", None)) else value.shape)


def _chunk_of(offsets, tensor):
    return ChunkStorageMetadata(offsets=cresset.Size(offsets), sizes=tensor.size())


def _create_chunk_from_tensor(tensor):
    return _chunk_of([0] * tensor.dim(), tensor)


def _properties_of(value, tensor):
    """Those of the whole; of a ShardedTensor what it says of itself."""
    if hasattr(value, "local_shards"):
        told = value.metadata().tensor_properties
        return TensorProperties(told.dtype, told.layout, told.requires_grad, told.memory_format, told.pin_memory)
    properties = TensorProperties.create_from_tensor(tensor)
    properties.requires_grad = value.requires_grad
    return properties


def _create_write_item_for_tensor(fqn, tensor):
    """A plain tensor as a whole."""
    data = TensorWriteData(_create_chunk_from_tensor(tensor), TensorProperties.create_from_tensor(tensor), tensor.size())
    return WriteItem(MetadataIndex(fqn, [0] * tensor.dim()), WriteItemType.TENSOR, tensor_data=data)


def _create_write_item_for_bytesio(fqn, value):
    return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)


def _create_write_items(fqn, value):
    """The items that this rank writes of a value."""
    if _sharding.has_own_items(value):
        return value.__create_write_items__(fqn, value)
    if _sharding.is_sharded(value):
        items = []
        for part in _sharding.local_parts(value):
            data = TensorWriteData(_chunk_of(part.offsets, part.tensor), _properties_of(value, part.tensor), _size_of(value))
            items.append(WriteItem(MetadataIndex(fqn, part.offsets), WriteItemType.SHARD, tensor_data=data))
        return items
    if isinstance(value, cresset.Tensor):
        return [_create_write_item_for_tensor(fqn, value)]
    return [_create_write_item_for_bytesio(fqn, value)]


def _create_default_metadata_only_plan(state_dict):
    """The items of all ranks, as far as one rank knows them: for Metadata without a save."""
    items = []
    for fqn, value in state_dict.items():
        if hasattr(value, "local_shards") and not _sharding.has_own_items(value):
            for shard in value.metadata().shards_metadata:
                chunk = ChunkStorageMetadata(cresset.Size(shard.shard_offsets), cresset.Size(shard.shard_sizes))
                data = TensorWriteData(chunk, _properties_of(value, None), _size_of(value))
                items.append(WriteItem(MetadataIndex(fqn, shard.shard_offsets), WriteItemType.SHARD, tensor_data=data))
        else:
            items += _create_write_items(fqn, value)
    return SavePlan(items)


def _create_chunk_list(value):
    """The chunks that this rank has of a value."""
    if _sharding.has_own_items(value):
        return value.__create_chunk_list__()
    return [_chunk_of(part.offsets, part.tensor) for part in _sharding.local_parts(value)]


def create_read_items_for_chunk_list(fqn, checkpoint_md, local_chunks):
    """ReadItems that fill `local_chunks` of a tensor from the chunks that were stored."""
    items = []
    for place, chunk in enumerate(local_chunks):
        for stored_place, stored in enumerate(checkpoint_md.chunks):
            if not _shares(chunk, stored):
                continue
            region = _shards_get_overlap_region_wrt_saved_tensor(stored, chunk)
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    dest_index=MetadataIndex(fqn, chunk.offsets, place), dest_offsets=cresset.Size([dest for _, _, dest, _ in region]),
                    storage_index=MetadataIndex(fqn, stored.offsets, stored_place), storage_offsets=cresset.Size([source for _, source, _, _ in region]),
                    lengths=cresset.Size([length for _, _, _, length in region]),
                )  # fmt: skip
            )
    return items


def _create_read_items(fqn, md, value):
    """The items that fill a value of the state_dict. ValueError when the checkpoint has a tensor and the state_dict has none."""
    if isinstance(md, BytesStorageMetadata):
        index, nothing = MetadataIndex(fqn), cresset.Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing)]
    if not isinstance(md, TensorStorageMetadata) or not _is_tensor(value):
        raise ValueError(f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(md)}")
    return create_read_items_for_chunk_list(fqn, md, _create_chunk_list(value))
