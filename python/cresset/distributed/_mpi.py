"""The backend "mpi": collectives of an MPI library (Open MPI, MPICH) by mpi4py, among processes that mpirun or Slurm started.

Every call starts MPI's nonblocking operation; MPI goes on with it while this process waits for any work. When a process ends without leaving its
groups, mpirun ends the others.
"""

import socket
import time
from datetime import timedelta

import cresset
from cresset._C_distributed import Backend, DistBackendError, ReduceOp, TCPStore, Work
from cresset.futures import Future
from mpi4py import MPI

__all__ = ["MpiGroup", "rendezvous"]

_SPINS = 100  # looks before a wait sleeps
_SLEEPS = (5e-5, 1e-3)  # seconds, growing
_NUMBERS = {
    "uint8": MPI.UINT8_T, "int8": MPI.INT8_T, "int16": MPI.INT16_T, "int32": MPI.INT32_T, "int64": MPI.INT64_T, "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE, "complex64": MPI.C_FLOAT_COMPLEX, "complex128": MPI.C_DOUBLE_COMPLEX, "bool": MPI.C_BOOL,
}
_KINDS = {ReduceOp.AVG: ReduceOp.SUM, ReduceOp.PREMUL_SUM: ReduceOp.SUM}  # what the others are on the way
_OF_COMPLEX = {ReduceOp.SUM: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD}
_OF_REALS = {**_OF_COMPLEX, ReduceOp.MIN: MPI.MIN, ReduceOp.MAX: MPI.MAX}
_OF_INTEGERS = {**_OF_REALS, ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR}
_OF_TRUTHS = {
    ReduceOp.SUM: MPI.LOR, ReduceOp.PRODUCT: MPI.LAND, ReduceOp.MIN: MPI.LAND, ReduceOp.MAX: MPI.LOR, ReduceOp.BAND: MPI.LAND, ReduceOp.BOR: MPI.LOR,
    ReduceOp.BXOR: MPI.LXOR,
}  # fmt: skip
_OF_HALVES = {ReduceOp.SUM: cresset.add, ReduceOp.PRODUCT: cresset.mul, ReduceOp.MIN: cresset.minimum, ReduceOp.MAX: cresset.maximum}
_half_ops = {}


def rendezvous(timeout):
    """A store that all processes share, this one's rank, and their number, as MPI has them."""
    world = MPI.COMM_WORLD
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False, timeout=timeout) if world.rank == 0 else None
    host, port = world.bcast((socket.gethostname(), store.port) if store else None)
    if store is None:
        near = host == socket.gethostname()
        store = TCPStore("localhost" if near else host, port, timeout=timeout)
    return store, world.rank, world.size


# --- reductions

def _half_op(kind, dtype):
    """MPI has no 16-bit floating-point numbers: an operation of our own."""
    if (kind, dtype) not in _half_ops:
        function = _OF_HALVES[kind]

        def reduce(given, inout, _):
            a, b = (cresset.frombuffer(memory, dtype=dtype) for memory in (given, inout))
            function(a, b, out=b)

        _half_ops[kind, dtype] = MPI.Op.Create(reduce, commute=True)
    return _half_ops[kind, dtype]


def _reduction(op, dtype):
    """MPI's operation, and its type. RuntimeError where values of this dtype have none."""
    kind, name = _KINDS.get(op.op, op.op), str(dtype).rpartition(".")[2]
    try:
        if dtype in (cresset.float16, cresset.bfloat16):
            return _half_op(kind, dtype), MPI.UINT16_T
        table = _OF_TRUTHS if dtype == cresset.bool else _OF_COMPLEX if dtype.is_complex else _OF_REALS if dtype.is_floating_point else _OF_INTEGERS
        return table[kind], _NUMBERS[name]
    except KeyError:
        raise RuntimeError(f"ProcessGroupMPI: ReduceOp.{op.op.name} of {name} was asked for, which MPI does not have.") from None


def _brought(tensor, op):
    """What this rank gives to a reduction: multiplied by its factor, for PREMUL_SUM. Memory of its own."""
    if op == ReduceOp.PREMUL_SUM:
        _, number, factor = op.__getstate__()
        if factor is not None and factor.numel() != 1:
            raise RuntimeError(f"ReduceOp.PREMUL_SUM: a factor of one element was required; it has {factor.numel()}.")
        return (tensor * (number if factor is None else factor)).to(tensor.dtype).reshape(tensor.shape).contiguous()
    return tensor.detach().clone(memory_format=cresset.contiguous_format)


def _finish_average(tensor, op, size):
    if op == ReduceOp.AVG:
        tensor.div_(size, rounding_mode=None if tensor.is_floating_point() or tensor.is_complex() else "trunc")
    return tensor


# --- memory

def _check(what, *tensors):
    for tensor in tensors:
        if tensor.layout != cresset.strided or tensor.device.type != "cpu":
            raise RuntimeError(f"ProcessGroupMPI::{what}: dense tensors in this host's memory were required; {tensor.layout} on {tensor.device} was given.")


def _check_alike(what, tensors, like):
    _check(what, like, *tensors)
    for i, tensor in enumerate(tensors):
        if tensor.dtype != like.dtype or tensor.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroupMPI::{what}: tensors of one dtype and size were required; number {i} is {tensor.dtype} of {tuple(tensor.shape)} "
                f"beside {like.dtype} of {tuple(like.shape)}."
            )


def _single(what, tensors):
    if len(tensors) != 1:
        raise RuntimeError(f"ProcessGroupMPI::{what}: a list of one tensor was required; {len(tensors)} were given.")
    _check(what, tensors[0])
    return tensors[0]


def _raw(tensor):
    """The memory of a contiguous tensor, as MPI takes it."""
    return [tensor.detach().reshape(-1).view(cresset.uint8).numpy(), MPI.BYTE]


def _numbers(tensor, kind):
    flat = tensor.detach().reshape(-1)
    return [(flat.view(cresset.int16) if kind == MPI.UINT16_T else flat).numpy(), kind]


def _joined(tensors):
    """Tensors one behind the other, as bytes."""
    parts = [t.detach().contiguous().reshape(-1).view(cresset.uint8) for t in tensors]
    return cresset.cat(parts) if parts else cresset.empty(0, dtype=cresset.uint8)


def _spread(memory, tensors):
    """Back from bytes that lie one behind the other."""
    at = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        tensor.copy_(memory[at : at + size].view(tensor.dtype).view(tensor.shape))
        at += size


def _rows(splits, tensor, size, what):
    """Elements for each rank: of equal parts of dimension 0, or of as many rows as given."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % size:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        splits = [rows // size] * size
    if len(splits) != size:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(splits) != rows or min(splits) < 0:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    each = tensor.numel() * tensor.element_size() // rows if rows else 0
    return [n * each for n in splits]


# --- work

_under_way = set()  # MPI reads and writes the memory of these, also when nobody waits for them


class _MpiWork(Work):
    """An operation under way. `finish` puts what was received where it belongs."""

    def __init__(self, what, start, outputs, timeout, finish=None):
        super().__init__()
        self._what, self._outputs, self._timeout, self._finish = what, outputs, timeout, finish
        self._memory = start  # what MPI reads and writes lives as long as its function: requests do not hold it
        self._status, self._error, self._done = MPI.Status(), None, False
        for work in list(_under_way):
            work.is_completed()
        try:
            self._request = start()
        except MPI.Exception as error:
            raise DistBackendError(f"{what}: MPI says: {error}") from None
        _under_way.add(self)

    def _end(self, error=None):
        self._done, self._memory, self._finish = True, None, None
        self._error = DistBackendError(f"{self._what}: MPI says: {error}") if isinstance(error, MPI.Exception) else error
        _under_way.discard(self)

    def is_completed(self):
        """Is it done? Also MPI goes on with it."""
        if self._done:
            return True
        try:
            if not self._request.Test(self._status):
                return False
            if self._finish:
                with cresset.no_grad():
                    self._finish()
            self._end()
        except Exception as error:
            self._end(error)
        return True

    def is_success(self):
        """Is it done without an error?"""
        return self.is_completed() and self._error is None

    def exception(self):
        """The error, or None."""
        return self._error

    def wait(self, timeout=None):
        """Until it is done; True. DistBackendError for an error of MPI, and after the timeout, after which it goes on."""
        seconds = (timeout if timeout and timeout > timedelta(0) else self._timeout).total_seconds()  # from C++, none is -1 ms
        begin, spins, pause = time.monotonic(), 0, _SLEEPS[0]
        while not self.is_completed():
            spins += 1
            if spins < _SPINS:
                continue
            time.sleep(pause)
            pause = min(pause * 1.2, _SLEEPS[1])
            if time.monotonic() - begin > seconds > 0:
                raise DistBackendError(f"{self._what} timed out after {seconds * 1000:.0f} ms. MPI does not say which rank is late.")
        if self._error:
            raise self._error
        return True

    def result(self):
        """What the operation wrote."""
        return self._outputs

    def source_rank(self):
        """The rank that a message came from."""
        return self._status.Get_source()

    _source_rank = source_rank

    def get_future(self):
        """A future of what the operation wrote; waits for it, because MPI goes on only while somebody waits."""
        self.wait()
        future = Future()
        future.set_result(self._outputs)
        return future


class MpiGroup(Backend):
    """Ranks that talk by MPI. `ranks`: those of MPI's world that are in the group, which all make the same call."""

    def __init__(self, rank, size, ranks, name, timeout):
        super().__init__(rank, size)
        world = MPI.COMM_WORLD
        if world.size <= max(ranks, default=0) or ranks[rank] != world.rank:
            raise ValueError(f"mpi: rank {world.rank} of {world.size} was required, as MPI has it; rank {ranks[rank]} of a group of {size} was given.")
        self._timeout = timeout
        digest = sum(ord(c) * 31**i for i, c in enumerate(name)) % 32749  # MPI has 32768 tags at least
        self._comm = world.Create_group(world.group.Incl(ranks), digest)

    def getBackendName(self):
        """The name of the backend."""
        return "mpi"

    def _start(self, what, start, outputs, opts=None, finish=None):
        timeout = getattr(opts, "timeout", None)
        return _MpiWork(what, start, outputs, timeout if timeout and timeout > timedelta(0) else self._timeout, finish)

    # one tensor each

    def broadcast(self, tensors, opts):
        """The root's values for all."""
        tensor = _single("broadcast", tensors)
        memory = tensor.detach().contiguous()
        return self._start("broadcast", lambda: self._comm.Ibcast(_raw(memory), opts.rootRank), tensors, opts, lambda: _take(tensor, memory))

    def allreduce(self, tensors, opts):
        """The reduction, on all ranks."""
        tensor = _single("allreduce", tensors)
        op, kind = _reduction(opts.reduceOp, tensor.dtype)
        memory = _brought(tensor, opts.reduceOp)
        return self._start(
            "allreduce", lambda: self._comm.Iallreduce(MPI.IN_PLACE, _numbers(memory, kind), op), tensors, opts,
            lambda: tensor.copy_(_finish_average(memory, opts.reduceOp, self.size())),
        )  # fmt: skip

    def allreduce_coalesced(self, tensors, opts):
        """The reduction of tensors of one dtype, in one message."""
        _check("allreduce_coalesced", *tensors)
        if len({t.dtype for t in tensors}) != 1:
            raise RuntimeError("ProcessGroupMPI::allreduce_coalesced: tensors of one dtype were required.")
        joined = cresset.cat([t.detach().reshape(-1) for t in tensors])
        op, kind = _reduction(opts.reduceOp, joined.dtype)
        memory = _brought(joined, opts.reduceOp)

        def finish():
            parts = _finish_average(memory, opts.reduceOp, self.size()).split([t.numel() for t in tensors])
            for tensor, part in zip(tensors, parts):
                tensor.copy_(part.view(tensor.shape))

        return self._start("allreduce_coalesced", lambda: self._comm.Iallreduce(MPI.IN_PLACE, _numbers(memory, kind), op), tensors, opts, finish)

    def reduce(self, tensors, opts):
        """The reduction, on the root."""
        tensor = _single("reduce", tensors)
        op, kind = _reduction(opts.reduceOp, tensor.dtype)
        memory = _brought(tensor, opts.reduceOp)
        if self.rank() != opts.rootRank:
            return self._start("reduce", lambda: self._comm.Ireduce(_numbers(memory, kind), None, op, opts.rootRank), tensors, opts)
        return self._start(
            "reduce", lambda: self._comm.Ireduce(MPI.IN_PLACE, _numbers(memory, kind), op, opts.rootRank), tensors, opts,
            lambda: tensor.copy_(_finish_average(memory, opts.reduceOp, self.size())),
        )  # fmt: skip

    # parts

    def _gather_all(self, what, outputs, inputs, result, opts):
        """Bytes of all ranks' inputs, one behind the other, into `outputs` in that order."""
        memory = _joined(inputs)
        everything = cresset.empty(memory.numel() * self.size(), dtype=cresset.uint8)
        return self._start(what, lambda: self._comm.Iallgather(_raw(memory), _raw(everything)), result, opts, lambda: _spread(everything, outputs))

    def allgather(self, output_tensors, input_tensors, opts):
        """All ranks' tensors, on all ranks."""
        tensor = _single("allgather", input_tensors)
        self._check_count("allgather", output_tensors[0])
        _check_alike("allgather", output_tensors[0], tensor)
        return self._gather_all("allgather", output_tensors[0], [tensor], output_tensors, opts)

    def _allgather_base(self, output, input, opts):
        self._check_times("_allgather_base", output, input)
        return self._gather_all("_allgather_base", [output], [input], [output], opts)

    def allgather_coalesced(self, output_lists, input_list, opts):
        """A list of tensors from each rank."""
        self._check_count("allgather_coalesced", output_lists)
        for outputs in output_lists:
            for output, value in zip(outputs, input_list, strict=True):
                _check_alike("allgather_coalesced", [output], value)
        return self._gather_all("allgather_coalesced", [t for outputs in output_lists for t in outputs], input_list, output_lists, opts)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts):
        """Several tensors of all ranks."""
        for output, value in zip(outputs, inputs, strict=True):
            self._check_times("allgather_into_tensor_coalesced", output, value)
        shapes = [t.shape for t in inputs] * self.size()
        parts = [cresset.empty(shape, dtype=t.dtype) for shape, t in zip(shapes, list(inputs) * self.size())]
        work = self._gather_all("allgather_into_tensor_coalesced", parts, inputs, outputs, opts)
        spread = work._finish

        def finish():
            spread()
            for i, output in enumerate(outputs):
                output.copy_(cresset.cat([p.reshape(-1) for p in parts[i :: len(inputs)]]).view(output.shape))

        work._finish = finish
        return work

    def gather(self, output_tensors, input_tensors, opts):
        """All ranks' tensors, on the root."""
        tensor = _single("gather", input_tensors)
        memory = tensor.detach().contiguous()
        if self.rank() != opts.rootRank:
            if output_tensors and output_tensors[0]:
                raise RuntimeError("ProcessGroupMPI::gather: no outputs were required on a rank that is not the root.")
            return self._start("gather", lambda: self._comm.Igather(_raw(memory), None, opts.rootRank), [], opts)
        self._check_count("gather", output_tensors[0])
        _check_alike("gather", output_tensors[0], tensor)
        everything = cresset.empty(memory.numel() * memory.element_size() * self.size(), dtype=cresset.uint8)
        return self._start(
            "gather", lambda: self._comm.Igather(_raw(memory), _raw(everything), opts.rootRank), output_tensors[0], opts,
            lambda: _spread(everything, output_tensors[0]),
        )  # fmt: skip

    def scatter(self, output_tensors, input_tensors, opts):
        """The root's tensors, one for each rank."""
        tensor = _single("scatter", output_tensors)
        memory = cresset.empty(tensor.shape, dtype=tensor.dtype)
        if self.rank() != opts.rootRank:
            if input_tensors and input_tensors[0]:
                raise RuntimeError("ProcessGroupMPI::scatter: no inputs were required on a rank that is not the root.")
            sent = None
        else:
            self._check_count("scatter", input_tensors[0])
            _check_alike("scatter", input_tensors[0], tensor)
            sent = _raw(_joined(input_tensors[0]))
        return self._start(
            "scatter", lambda: self._comm.Iscatter(sent, _raw(memory), opts.rootRank), output_tensors, opts, lambda: tensor.copy_(memory)
        )

    def reduce_scatter(self, output_tensors, input_tensors, opts):
        """Each rank's part of the reduction of lists."""
        output = _single("reduce_scatter", output_tensors)
        self._check_count("reduce_scatter", input_tensors[0])
        _check_alike("reduce_scatter", input_tensors[0], output)
        return self._reduce_parts("reduce_scatter", output, cresset.cat([t.detach().reshape(-1) for t in input_tensors[0]]), opts)

    def _reduce_scatter_base(self, output, input, opts):
        self._check_times("_reduce_scatter_base", input, output)
        return self._reduce_parts("_reduce_scatter_base", output, input.detach().reshape(-1), opts)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts):
        """Parts of several reductions, one after the other."""
        works = [self._reduce_scatter_base(output, value, opts) for output, value in zip(outputs, inputs, strict=True)]
        for work in works[:-1]:
            work.wait()
        works[-1]._outputs = outputs
        return works[-1]

    def _reduce_parts(self, what, output, values, opts):
        op, kind = _reduction(opts.reduceOp, output.dtype)
        memory, mine = _brought(values, opts.reduceOp), cresset.empty(output.shape, dtype=output.dtype)
        return self._start(
            what, lambda: self._comm.Ireduce_scatter_block(_numbers(memory, kind), _numbers(mine, kind), op), [output], opts,
            lambda: output.copy_(_finish_average(mine, opts.reduceOp, self.size())),
        )  # fmt: skip

    def _exchange(self, what, outputs, inputs, sent_bytes, received_bytes, opts):
        memory, received = _joined(inputs), cresset.empty(sum(received_bytes), dtype=cresset.uint8)
        return self._start(
            what, lambda: self._comm.Ialltoallv([memory.numpy(), sent_bytes, MPI.BYTE], [received.numpy(), received_bytes, MPI.BYTE]), outputs, opts,
            lambda: _spread(received, outputs),
        )  # fmt: skip

    def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts):
        """Rows for each rank, from each rank."""
        _check("alltoall_base", output, input)
        sent, received = _rows(input_split_sizes, input, self.size(), "input"), _rows(output_split_sizes, output, self.size(), "output")
        return self._exchange("alltoall_base", [output], [input], sent, received, opts)

    def alltoall(self, output_tensors, input_tensors, opts):
        """A tensor for each rank, from each rank."""
        self._check_count("alltoall", output_tensors)
        self._check_count("alltoall", input_tensors)
        _check("alltoall", *output_tensors, *input_tensors)
        sent, received = ([t.numel() * t.element_size() for t in tensors] for tensors in (input_tensors, output_tensors))
        return self._exchange("alltoall", output_tensors, input_tensors, sent, received, opts)

    # messages

    def send(self, tensors, dst, tag=0):
        """To a rank of the group."""
        memory = _single("send", tensors).detach().contiguous()
        return self._start(f"send to rank {dst}", lambda: self._comm.Isend(_raw(memory), dst, tag), tensors)

    def recv(self, tensors, src, tag=0):
        """From a rank of the group."""
        return self._receive("recv from rank " + str(src), tensors, src, tag)

    def recv_anysource(self, tensors, tag=0):
        """From the first that sends."""
        return self._receive("recv_anysource", tensors, MPI.ANY_SOURCE, tag)

    def _receive(self, what, tensors, source, tag):
        tensor = _single("recv", tensors)
        memory = cresset.empty(tensor.shape, dtype=tensor.dtype)
        return self._start(what, lambda: self._comm.Irecv(_raw(memory), source, tag), tensors, None, lambda: tensor.copy_(memory))

    def barrier(self, opts):
        """Until all have come."""
        return self._start("barrier", self._comm.Ibarrier, [], opts)

    # what is checked

    def _check_count(self, what, tensors):
        if len(tensors) != self.size():
            raise RuntimeError(f"ProcessGroupMPI::{what}: {self.size()} tensors were required, one a rank; {len(tensors)} were given.")

    def _check_times(self, what, whole, part):
        _check(what, whole, part)
        if whole.dtype != part.dtype or whole.numel() != part.numel() * self.size():
            raise RuntimeError(
                f"ProcessGroupMPI::{what}: {self.size()} times the elements of the part, of its dtype, were required; {whole.numel()} of {whole.dtype} beside "
                f"{part.numel()} of {part.dtype} were given."
            )


def _take(tensor, memory):
    if memory.data_ptr() == tensor.data_ptr():
        cresset.autograd.graph.increment_version(tensor)
    else:
        tensor.copy_(memory)
