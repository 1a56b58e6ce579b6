"""Names of PyTorch's collectives as operators, which tensor classes of libraries list as what they answer to. Collectives are functions here
(`cresset.distributed`), so nothing calls these operators, and they have no kernels."""

import cresset

__all__ = []

_GROUP, _REDUCED, _LATER = "Any process_group", "Any process_group, Any reduce_op", "bool async_op=True, int timeout=-1"
_SCHEMAS = f"""
broadcast_(Tensor[] tensors, {_GROUP}, int root_rank, int root_tensor, {_LATER}) -> (Tensor[], Any)
allreduce_(Tensor[] tensors, {_REDUCED}, Tensor? sparse_indices, {_LATER}) -> (Tensor[], Any)
allreduce_coalesced_(Tensor[] tensors, {_REDUCED}, {_LATER}) -> Any
allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, {_LATER}) -> (Tensor[][], Any)
_allgather_base_(Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_LATER}) -> (Tensor, Any)
allgather_coalesced_(Tensor[][] output_lists, Tensor[] input_list, {_GROUP}, bool async_op=True) -> Any
allgather_into_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, {_GROUP}, bool async_op=True) -> Any
reduce_scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, {_REDUCED}, {_LATER}) -> (Tensor[], Any)
_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, {_REDUCED}, {_LATER}) -> (Tensor, Any)
reduce_scatter_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, {_REDUCED}, {_LATER}) -> Any
reduce_(Tensor[] tensors, {_REDUCED}, int root_rank, int root_tensor, {_LATER}) -> Any
gather_(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, int root_rank, {_LATER}) -> Any
scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP}, int root_rank, {_LATER}) -> (Tensor[], Any)
alltoall_(Tensor[] output_tensors, Tensor[] input_tensors, {_GROUP}, {_LATER}) -> (Tensor[], Any)
alltoall_base_(Tensor output, Tensor input, {_GROUP}, int[] output_split_sizes, int[] input_split_sizes, {_LATER}) -> Any
barrier(Tensor tensor, {_GROUP}, int[] device_ids, {_LATER}) -> Any
send(Tensor[] tensors, {_GROUP}, int dst, int tag) -> Any
recv_(Tensor[] tensors, {_GROUP}, int src, int tag) -> Any
recv_any_source_(Tensor[] tensors, {_GROUP}, int tag) -> Any
""".strip().splitlines()

_library = cresset.library.Library("c10d", "FRAGMENT")
for _schema in _SCHEMAS:
    _library.define(_schema)
