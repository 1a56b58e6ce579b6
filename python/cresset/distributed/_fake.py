"""The backend "fake": one process that plays one rank of many. Collectives end at once and give no other rank's values."""

from cresset._C_distributed import Backend, Store
from cresset.futures import Future

from ._works import FutureWork

__all__ = ["FakeProcessGroup"]


def _create_work_from_future(future):
    """Work that is done when the future is, and has its value."""
    return FutureWork(future)


def _done(value):
    future = Future()
    future.set_result(value)
    return FutureWork(future)


class FakeProcessGroup(Backend):
    """A rank without others, for trying out programs of many ranks in one process. Values are this rank's, repeated where ranks differ."""

    def getBackendName(self):
        """The name of the backend."""
        return "fake"

    def _alone(self, tensors, *rest, **options):
        return _done(tensors)

    broadcast = allreduce = allreduce_coalesced = reduce = send = recv = recv_anysource = _alone

    def barrier(self, opts=None):
        """Nobody is waited for."""
        return _done([])

    def allgather(self, output_tensors, input_tensors, opts=None):
        """Every output is this rank's input."""
        for outputs, value in zip(output_tensors, input_tensors):
            for output in outputs:
                output.copy_(value)
        return _done(output_tensors)

    def _allgather_base(self, output, input, opts=None):
        for part in output.view(self.size(), -1):
            part.copy_(input.reshape(-1))
        return _done([output])

    def allgather_coalesced(self, output_lists, input_list, opts=None):
        """Every output is this rank's input."""
        for outputs in output_lists:
            for output, value in zip(outputs, input_list):
                output.copy_(value)
        return _done(output_lists)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        """Every part of an output is this rank's input."""
        for output, value in zip(outputs, inputs):
            self._allgather_base(output, value)
        return _done(outputs)

    def gather(self, output_tensors, input_tensors, opts=None):
        """Every output is this rank's input."""
        for outputs in output_tensors:
            for output in outputs:
                output.copy_(input_tensors[0])
        return _done(output_tensors)

    def scatter(self, output_tensors, input_tensors, opts=None):
        """The root's own part; other ranks keep what they have."""
        if input_tensors:
            output_tensors[0].copy_(input_tensors[0][self.rank()])
        return _done(output_tensors)

    def reduce_scatter(self, output_tensors, input_tensors, opts=None):
        """This rank's part of its own inputs."""
        output_tensors[0].copy_(input_tensors[0][self.rank()])
        return _done(output_tensors)

    def _reduce_scatter_base(self, output, input, opts=None):
        output.copy_(input.view(self.size(), -1)[self.rank()].view(output.shape))
        return _done([output])

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        """This rank's parts of its own inputs."""
        for output, value in zip(outputs, inputs):
            self._reduce_scatter_base(output, value)
        return _done(outputs)

    def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None):
        """The input, as far as shapes agree."""
        if output.shape == input.shape:
            output.copy_(input)
        return _done([output])

    def alltoall(self, output_tensors, input_tensors, opts=None):
        """The inputs, as far as shapes agree."""
        for output, value in zip(output_tensors, input_tensors):
            if output.shape == value.shape:
                output.copy_(value)
        return _done(output_tensors)


class FakeStore(Store):
    """A store without keys, for groups that share nothing."""

