"""How a tensor lies along a dimension of a mesh: in parts, copied, or as parts of a sum."""


import cresset

from .. import _functional_collectives as funcol
from ._mesh_collectives import mesh_broadcast, mesh_scatter

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base of the kinds of placement."""

    __slots__ = ()

    def is_shard(self, dim=None):
        """Is it a Shard, of this dimension where one is given?"""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self):
        """Is it Replicate?"""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Is it a Partial, of this reduction where one is given?"""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


class Shard(Placement):
    """Dimension `dim` is divided among the ranks, in order, in parts of ceil(size / ranks); the last ones have less, or nothing."""

    __slots__ = ("dim",)

    def __init__(self, dim):
        self.dim = dim

    def __eq__(self, other):
        return type(other) is Shard and self.dim == other.dim

    def __hash__(self):
        return hash((Shard, self.dim))

    def __repr__(self):
        return f"Shard(dim={self.dim})"

    def __str__(self):
        return f"S({self.dim})"

    def __reduce__(self):
        return Shard, (self.dim,)

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        """(size, offset) of a rank's part."""
        step = -(-curr_local_size // num_chunks)
        begin = min(step * rank, curr_local_size)
        return min(curr_local_size, begin + step) - begin, begin

    _local_shard_size_and_offset = local_shard_size_and_offset

    @staticmethod
    def _local_shard_size_on_dim(size_on_dim, num_chunks, rank, return_offset=False):
        size, offset = Shard.local_shard_size_and_offset(size_on_dim, num_chunks, rank)
        return size, offset if return_offset else -1

    def _in_order(self):
        """Are the parts of ranks, one behind the other, the whole?"""
        return True

    def _parts(self, tensor, num_chunks):
        """A view of each rank's part; empty ones keep the other dimensions."""
        places = [self.local_shard_size_and_offset(tensor.shape[self.dim], num_chunks, r) for r in range(num_chunks)]
        return [tensor.narrow(self.dim, offset, size) for size, offset in places]

    def _split_tensor(self, tensor, num_chunks, *, with_padding=True, contiguous=True):
        """(parts, how much each was padded to the size of the first)."""
        assert self.dim <= tensor.ndim, f"Sharding dim {self.dim} greater than tensor ndim {tensor.ndim}"
        parts = self._parts(tensor, num_chunks)
        pads = [parts[0].shape[self.dim] - part.shape[self.dim] for part in parts] if with_padding and tensor.shape[self.dim] else []
        if pads:
            parts = [pad_tensor(part, self.dim, pad) for part, pad in zip(parts, pads)]
        return [part.contiguous() if contiguous else part for part in parts], pads

    def _to_replicate_tensor(self, local_tensor, mesh, mesh_dim, current_logical_shape):
        """All ranks' parts behind each other."""
        ranks, size = mesh.size(mesh_dim), current_logical_shape[self.dim]
        step = -(-size // ranks)
        local = pad_tensor(local_tensor, self.dim, step - local_tensor.shape[self.dim]).contiguous()
        result = funcol.all_gather_tensor(local, gather_dim=self.dim, group=(mesh, mesh_dim))
        if step * ranks != size:
            result = _ready(result).narrow(self.dim, 0, size)
        return result

    def _to_new_shard_dim(self, local_tensor, mesh, mesh_dim, current_logical_shape, new_shard_dim):
        """This rank's part along another dimension."""
        whole = _ready(self._to_replicate_tensor(local_tensor, mesh, mesh_dim, current_logical_shape))
        return Shard(new_shard_dim)._replicate_to_shard(whole, mesh, mesh_dim, mesh.get_coordinate()[mesh_dim])

    def _replicate_to_shard(self, local_tensor, mesh, mesh_dim, shard_index):
        """A part of what all ranks have; the memory is its own."""
        return self._parts(local_tensor, mesh.size(mesh_dim))[shard_index].clone()

    def _reduce_shard_tensor(self, tensor, mesh, reduce_op, mesh_dim):
        """This rank's part of the reduction of all ranks' tensors."""
        ranks = mesh.size(mesh_dim)
        parts, pads = self._split_tensor(tensor, ranks)
        if any(pads) or not self._in_order():
            tensor = cresset.cat(parts, dim=self.dim)
        elif not tensor.is_contiguous():
            tensor = tensor.contiguous()
        result = funcol.reduce_scatter_tensor(tensor, reduce_op, scatter_dim=self.dim, group=(mesh, mesh_dim))
        mine = pads[mesh.get_coordinate()[mesh_dim]] if pads else 0
        return unpad_tensor(_ready(result), self.dim, mine) if mine else result

    def _shard_tensor(self, tensor, mesh, mesh_dim, src_data_rank=0):
        """This rank's part of the tensor of rank `src_data_rank` of the mesh dimension; of its own tensor where that is None."""
        coordinate = mesh.get_coordinate()
        if coordinate is None:
            return tensor.new_empty(0, requires_grad=tensor.requires_grad)
        here = coordinate[mesh_dim]
        if src_data_rank is None:
            return self._parts(tensor, mesh.size(mesh_dim))[here].contiguous()
        parts, pads = self._split_tensor(tensor, mesh.size(mesh_dim))
        received = cresset.empty_like(parts[here])
        mesh_scatter(received, parts, mesh, mesh_dim, group_src=src_data_rank)
        return unpad_tensor(received, self.dim, pads[here]).contiguous() if pads and pads[here] else received


class _StridedShard(Shard):
    """A Shard that divides after the mesh dimensions behind it have divided, `split_factor` times in all: sharding by FSDP of tensors sharded before."""

    __slots__ = ("split_factor",)

    def __init__(self, dim, *, split_factor):
        super().__init__(dim)
        self.split_factor = split_factor

    def __eq__(self, other):
        return isinstance(other, _StridedShard) and self.dim == other.dim and self.split_factor == other.split_factor

    def __hash__(self):
        return hash((_StridedShard, self.dim, self.split_factor))

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"

    def __reduce__(self):
        return _strided, (self.dim, self.split_factor)

    def _in_order(self):
        return self.split_factor == 1

    def _places(self, size, num_chunks):
        """Each rank's [(offset, size)]: its part of each of the parts that others have made."""
        pieces = [self.local_shard_size_and_offset(size, self.split_factor, n) for n in range(self.split_factor)]
        return [
            [(begin + offset, length) for own, begin in pieces for length, offset in [self.local_shard_size_and_offset(own, num_chunks, rank)] if length]
            for rank in range(num_chunks)
        ]  # fmt: skip

    def _parts(self, tensor, num_chunks):
        """Each rank's part."""
        return [
            cresset.cat([tensor.narrow(self.dim, *place) for place in places], self.dim) if places else tensor.narrow(self.dim, 0, 0)
            for places in self._places(tensor.shape[self.dim], num_chunks)
        ]  # fmt: skip

    def _to_replicate_tensor(self, local_tensor, mesh, mesh_dim, current_logical_shape):
        """All ranks' parts at their places."""
        places = self._places(current_logical_shape[self.dim], mesh.size(mesh_dim))
        sizes = [sum(size for _, size in each) for each in places]
        local = pad_tensor(local_tensor, self.dim, sizes[0] - local_tensor.shape[self.dim]).contiguous()
        gathered = _ready(funcol.all_gather_tensor(local, gather_dim=self.dim, group=(mesh, mesh_dim)))
        # Where each row of the whole lies in what was gathered.
        rows = {begin + n: sizes[0] * rank + before + n for rank, each in enumerate(places) for (begin, size), before in _with_sums(each) for n in range(size)}
        return gathered.index_select(self.dim, cresset.tensor([rows[n] for n in range(len(rows))], dtype=cresset.int64, device=gathered.device))


def one_division(placement):
    """What a placement does where the order of divisions is kept elsewhere: a strided Shard is one that divides what is there."""
    return Shard(placement.dim) if isinstance(placement, _StridedShard) else placement


def _with_sums(places):
    """Each (offset, size), and the sum of the sizes before it."""
    before = 0
    for place in places:
        yield place, before
        before += place[1]


def _strided(dim, split_factor):
    return _StridedShard(dim, split_factor=split_factor)


class Replicate(Placement):
    """Every rank has the whole."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Replicate)

    def __hash__(self):
        return hash(Replicate)

    def __repr__(self):
        return "Replicate()"

    def __str__(self):
        return "R"

    def _replicate_tensor(self, tensor, mesh, mesh_dim, src_data_rank=0):
        """The tensor of rank `src_data_rank` of the mesh dimension."""
        if mesh.get_coordinate() is None:
            return tensor.new_empty(0, requires_grad=tensor.requires_grad)
        tensor = tensor.contiguous()
        if src_data_rank is not None:
            mesh_broadcast(tensor, mesh, mesh_dim, group_src=src_data_rank)
        return tensor


class Partial(Placement):
    """Every rank has a term of a reduction that is still to be made: "sum", "avg", "product", "max", "min", …."""

    __slots__ = ("reduce_op",)

    def __init__(self, reduce_op="sum"):
        self.reduce_op = reduce_op

    def __eq__(self, other):
        return isinstance(other, Partial) and self.reduce_op == other.reduce_op

    def __hash__(self):
        return hash((Partial, self.reduce_op))

    def __repr__(self):
        return f"{type(self).__name__}({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})" if self.reduce_op != "sum" else "P"

    def __reduce__(self):
        return type(self), (self.reduce_op,)

    def _reduce_value(self, tensor, mesh, mesh_dim):
        return funcol.all_reduce(tensor, reduceOp=self.reduce_op, group=(mesh, mesh_dim))

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard_spec):
        return shard_spec._reduce_shard_tensor(tensor, mesh, self.reduce_op, mesh_dim)

    def _partition_value(self, tensor, mesh, mesh_dim):
        """A term of each rank, of a whole that all have."""
        if self.reduce_op == "sum":
            return tensor / mesh.size(mesh_dim)
        if self.reduce_op in ("avg", "max", "min"):
            return tensor
        if self.reduce_op == "product":
            return tensor if mesh.get_coordinate()[mesh_dim] == 0 else cresset.ones_like(tensor)
        raise NotImplementedError(f"Partial: a whole is not divided into terms of {self.reduce_op}.")


_Partial = Partial


def _ready(tensor):
    return tensor.wait() if isinstance(tensor, funcol.AsyncCollectiveTensor) else tensor


def pad_tensor(tensor, pad_dim, pad_size):
    """The tensor with `pad_size` zeros more behind a dimension."""
    if pad_size == 0:
        return tensor
    shape = list(tensor.shape)
    shape[pad_dim] = pad_size
    return cresset.cat([tensor, tensor.new_zeros(shape)], dim=pad_dim)


def unpad_tensor(tensor, pad_dim, pad_size):
    """The tensor without the last `pad_size` of a dimension."""
    return tensor if pad_size == 0 else tensor.narrow(pad_dim, 0, tensor.size(pad_dim) - pad_size)


def normalized(placements, ndim):
    """Placements as a tuple, with dimensions counted from the front."""
    found = []
    for placement in placements:
        if placement.is_shard() and placement.dim < 0:
            dim = placement.dim + ndim
            placement = _StridedShard(dim, split_factor=placement.split_factor) if isinstance(placement, _StridedShard) else Shard(dim)
        found.append(placement)
    return tuple(found)


def shard_order(placements, tensor_dim, sizes):
    """The mesh dimensions that divide a tensor dimension, in the order in which they divide."""
    first, strided = [], []
    for mesh_dim, placement in enumerate(placements):
        if placement.is_shard(tensor_dim):
            (strided if isinstance(placement, _StridedShard) else first).append(mesh_dim)
    order = first
    for mesh_dim in reversed(strided):  # behind as many of those to its right as make up its split factor
        place, count = 0, 1
        behind = [d for d in order if d > mesh_dim]
        for d in behind:
            if count >= placements[mesh_dim].split_factor:
                break
            count *= sizes[d]
            place = order.index(d) + 1
        order = order[:place] + [mesh_dim] + order[place:]
    return order


def local_range(size, mesh_sizes, order, coordinate):
    """(size, offset) of a rank's part of a dimension that the mesh dimensions of `order` divide. The offset of an empty part is the size."""
    length, offset = size, 0
    for mesh_dim in order:
        length, begin = Shard.local_shard_size_and_offset(length, mesh_sizes[mesh_dim], coordinate[mesh_dim])
        offset += begin
    return length, offset if length or not order else size


def local_shape_and_offset(shape, mesh_sizes, placements, coordinate):
    """(sizes, offsets) of a rank's part of a tensor."""
    sizes, offsets = list(shape), [0] * len(shape)
    for dim in {p.dim for p in placements if p.is_shard()}:
        sizes[dim], offsets[dim] = local_range(shape[dim], mesh_sizes, shard_order(placements, dim, mesh_sizes), coordinate)
    return tuple(sizes), tuple(offsets)
