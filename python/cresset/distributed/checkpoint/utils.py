"""Steps that all ranks take together, values of state dictionaries by index, views of files."""

import functools
import inspect
import io
import warnings

from cresset import distributed as dist

from . import _sharding
from .api import CheckpointException, _is_wrapped_exception, _wrap_exception

__all__ = ["find_state_dict_object", "find_tensor_shard"]


class _Steps:
    """Steps of the ranks of a group. An error on any rank is a CheckpointException, with all errors, on every rank.

    Without a group of several ranks a step is a call. `coordinator_rank` is a rank of the default group.
    """

    def __init__(self, group, use_dist, coordinator_rank):
        self.group, self.use_dist, self.coordinator_rank = group, use_dist, coordinator_rank
        self.rank = dist.get_rank(group) if use_dist else 0
        self.world_size = dist.get_world_size(group) if use_dist else 1
        self.root = dist.get_group_rank(group, coordinator_rank) if use_dist and group is not None else coordinator_rank
        self.is_coordinator = not use_dist or self.rank == self.root

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.world_size

    def broadcast_object(self, value):
        values = [value]
        if self.use_dist:
            dist.broadcast_object_list(values, group=self.group, group_src=self.root)
        return values[0]

    def gather_object(self, value):
        if not self.use_dist:
            return [value]
        values = [None] * self.world_size if self.is_coordinator else None
        dist.gather_object(value, values, group=self.group, group_dst=self.root)
        return values

    def all_gather_object(self, value):
        if not self.use_dist:
            return [value]
        values = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.group)
        return values

    def scatter_object(self, values):
        if not self.use_dist:
            return values[0]
        mine = [None]
        dist.scatter_object_list(mine, values if self.is_coordinator else None, group=self.group, group_src=self.root)
        return mine[0]

    @staticmethod
    def _outcome(function, *args):
        try:
            return function(*args)
        except BaseException as error:
            return _wrap_exception(error)

    @staticmethod
    def _check(step, answers):
        failures = _get_failure_dict(answers)
        if failures:
            raise CheckpointException(step, failures)

    def _reduced(self, step, answers, reduce_fun):
        """The coordinator's result, or the CheckpointException to raise everywhere."""
        failures = _get_failure_dict(answers)
        if not failures:
            try:
                return reduce_fun(answers)
            except BaseException as error:
                failures = {self.rank: _wrap_exception(error)}
        return CheckpointException(step, failures)

    def reduce_scatter(self, step, map_fun, reduce_fun):
        """map_fun() on every rank; reduce_fun of the list of results on the coordinator gives a list, one result for each rank."""
        answers = self.gather_object(self._outcome(map_fun))
        parts = None
        if self.is_coordinator:
            parts = self._reduced(step, answers, reduce_fun)
            if isinstance(parts, CheckpointException):
                parts = [parts] * self.world_size
        return _raised(self.scatter_object(parts))

    def all_reduce(self, step, map_fun, reduce_fun):
        """As reduce_scatter, with one result for all ranks."""
        answers = self.gather_object(self._outcome(map_fun))
        return _raised(self.broadcast_object(self._reduced(step, answers, reduce_fun) if self.is_coordinator else None))

    def all_gather(self, step, map_fun):
        """The results of map_fun() of all ranks, on every rank."""
        answers = self.all_gather_object(self._outcome(map_fun))
        self._check(step, answers)
        return answers

    def broadcast(self, step, map_fun):
        """The result of map_fun() on the coordinator, on every rank."""
        answer = self.broadcast_object(self._outcome(map_fun) if self.is_coordinator else None)
        if _is_wrapped_exception(answer):
            raise CheckpointException(step, {self.coordinator_rank: answer})
        return answer

    def barrier(self):
        if self.use_dist:
            dist.barrier(group=self.group)


_DistWrapper = _Steps


def _raised(answer):
    if isinstance(answer, CheckpointException):
        raise answer
    return answer


def _get_failure_dict(answers):
    return {rank: answer for rank, answer in enumerate(answers) if _is_wrapped_exception(answer)}


def _all_gather_keys(local_dict, group=None):
    """The keys that some rank of the group has."""
    keys = [None] * dist.get_world_size(group)
    dist.all_gather_object(keys, list(local_dict), group=group)
    return {key for some in keys for key in some}


def _use_dist(no_dist, what):
    """Is there a group to work in? Warns where the answer is a guess."""
    if no_dist:
        return False
    if dist.is_available() and dist.is_initialized():
        return True
    warnings.warn(
        f"torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {what} in a single process.", stacklevel=3
    )
    return False


def _positional_once(function):
    """Arguments that once were positional still may be, with a FutureWarning."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if len(args) > 1:
            older = ["state_dict", "storage_writer" if "storage_writer" in names else "storage_reader", "process_group", "coordinator_rank", "no_dist", "planner"]
            given = {name: value for name, value in zip(older[1:], args[1:]) if value is not None}
            warnings.warn(f"The argument order of {function.__name__} has been changed. Please check the document to avoid future breakages.", FutureWarning, stacklevel=2)
            kwargs = {name: value for name, value in given.items() if name in names} | kwargs
            args = args[:1]
        return function(*args, **kwargs)

    return wrapper


# Values -----------------------------------------------------------------------------------------------------------------


def _find_part(value, index):
    parts = _sharding.local_parts(value)
    if index.offset is None:
        raise ValueError(f"Cannot lookup {index.fqn} since its a ShardedTensor and no offset was provided")
    hint = index.index
    if hint is not None and hint < len(parts) and tuple(parts[hint].offsets) == tuple(index.offset):
        return parts[hint].tensor
    for part in parts:
        if tuple(part.offsets) == tuple(index.offset):
            return part.tensor
    raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")


def find_tensor_shard(tensor, index):
    """The part of a tensor that a MetadataIndex names. ValueError for a part that is not here."""
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index)
    if _sharding.is_sharded(tensor):
        return _find_part(tensor, index)
    if index.offset is not None and any(index.offset):
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return tensor


def find_state_dict_object(state_dict, index):
    """The value of a flat state_dict that a MetadataIndex names, or the part of a tensor. ValueError for what is not here."""
    import cresset

    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if isinstance(value, cresset.Tensor) or _sharding.is_sharded(value) or hasattr(value, "__get_tensor_shard__"):
        return find_tensor_shard(value, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return value


# Files ------------------------------------------------------------------------------------------------------------------


class _Slice(io.RawIOBase):
    """The bytes [offset, offset + length) of a file that can seek, as a file."""

    def __init__(self, file, offset, length):
        super().__init__()
        self.file, self.offset, self.length, self.place = file, offset, length, 0

    def seek(self, offset, whence=io.SEEK_SET):
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.length}[whence]
        self.place = max(0, base + offset)
        return self.place

    def tell(self):
        return self.place

    def readable(self):
        return True

    def seekable(self):
        return True

    def readinto(self, buffer):
        n = max(0, min(len(buffer), self.length - self.place))
        self.file.seek(self.offset + self.place)
        data = self.file.read(n)
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def _create_file_view(file, offset, length):
    return io.BufferedReader(_Slice(file, offset, length))
