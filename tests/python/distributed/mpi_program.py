"""What mpirun starts for test_mpi.py: the functions of test_collectives.py on the backend "mpi", and what is MPI's own.

mpi_program.py FOLDER: each rank leaves FOLDER/RANK when it has done everything. (mpirun mixes the ranks' lines, so what they print is for people.)
"""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

import cresset as torch
import cresset.distributed as dist
import test_collectives as given


def late(rank):
    """A rank that does not come: the others' wait ends, and a barrier afterwards does too."""
    group = dist.new_group(timeout=timedelta(milliseconds=300))
    x = torch.ones(3)
    if rank != 0:
        with pytest.raises(dist.DistBackendError, match="broadcast timed out after 300 ms. MPI does not say which rank is late"):
            dist.broadcast(x, 0, group=group)
    dist.barrier()
    if rank == 0:
        dist.broadcast(x, 0, group=group)


def data_parallel(rank):
    """DistributedDataParallel, with its default reduction, with a hook, and with uneven inputs."""
    from cresset.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    for hook in (None, bf16_compress_hook):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        alone = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        alone.load_state_dict(model.state_dict())
        inputs = torch.randn(2 * given.SIZE, 4, generator=torch.Generator().manual_seed(1))
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        if hook:
            parallel.register_comm_hook(None, hook)
        parallel(inputs[2 * rank : 2 * rank + 2]).square().mean().backward()
        alone(inputs).square().mean().backward()
        for mine, theirs in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=2e-2 if hook else 1e-5, atol=2e-3 if hook else 1e-6)


def refused(rank):
    """Calls with mistakes raise in words, before MPI sees them."""
    x = torch.ones(4)
    for call, words in (
        (lambda: dist.all_reduce(x, op=dist.ReduceOp.BAND), "ProcessGroupMPI: ReduceOp.BAND of float32 was asked for, which MPI does not have"),
        (lambda: dist.all_gather([x, x], x), f"ProcessGroupMPI::allgather: {given.SIZE} tensors were required, one a rank; 2 were given"),
        (lambda: dist.all_gather([x, x, torch.ones(3)], x), "number 2 is cresset.float32 of \\(3,\\) beside cresset.float32 of \\(4,\\)"),
        (lambda: dist.all_reduce(torch.ones(2, device="meta")), "No backend type associated with device type meta"),
        (lambda: dist.reduce_scatter_tensor(torch.ones(2), x), "3 times the elements of the part"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    assert x.tolist() == [1] * 4


def main():
    with pytest.warns(UserWarning, match=r"world_size \(7\) and rank \(-1\) are ignored since they are assigned by the MPI runtime"):
        dist.init_process_group("mpi", world_size=7)
    rank = dist.get_rank()
    assert dist.get_world_size() == given.SIZE and dist.get_backend() == "mpi" and dist.is_mpi_available()
    for dtype in given.DTYPES:
        for kind in given.kinds_of(dtype):
            given.reduce_everywhere(rank, kind, dtype)
        given.moving(rank, dtype)
    for name in given.SPARSE:
        for is_async in (False, True):
            assert given.sparse_sum(rank, name, torch.float32, is_async)
    for function in (given.large_and_empty, given.factors, given.exchanges, given.messages, given.objects, given.groups, refused, data_parallel, late):
        function(rank)
        dist.barrier()
        print(f"rank {rank}: {function.__name__}", flush=True)
    dist.destroy_process_group()
    assert not dist.is_initialized()
    Path(sys.argv[1], str(rank)).touch()


if __name__ == "__main__":
    main()
