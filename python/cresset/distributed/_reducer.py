"""Gradients of a module averaged over ranks while backward goes on: buckets, filled by hooks of the parameters, reduced in order.

A bucket is a flat tensor with a view for each of its parameters. Its collective begins when all its gradients are there and those of the
buckets before it have begun, so that all ranks begin in one order; the end of the pass waits for them and gives the gradients back.
"""

import os
import weakref
from datetime import timedelta

import cresset
from cresset import _C
from cresset._C_distributed import BroadcastOptions, Work
from cresset.futures import Future

from . import _collectives, _groups
from ._sparse_gradients import SparseBucket

__all__ = ["GradBucket", "Reducer", "assign", "broadcast_coalesced"]

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has "
    "parameters that were not used in producing loss. "
)
_ENABLE = (
    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \n"
)
_OUTPUTS = (
    "making sure all `forward` function outputs participate in calculating loss. \nIf you already have done the above, then the distributed "
    "data parallel module wasn't able to locate the output tensors in the return value of your module's `forward` function. Please include the "
    "loss function and the structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable)."
)


_NO_LIMIT = timedelta(milliseconds=-1)


def wait_for(work):
    """Wait for work, also where a class in Python has no default for the time."""
    work.wait(_NO_LIMIT)


class GradBucket:
    """The gradients that one collective reduces, as a hook of DistributedDataParallel sees them."""

    def __init__(self, index, buffer, gradients, parameters, last):
        self._index, self._buffer, self._gradients, self._parameters, self._last = index, buffer, gradients, parameters, last

    def index(self):
        """The bucket's number; 0 is reduced first."""
        return self._index

    def buffer(self):
        """The flat tensor of all gradients."""
        return self._buffer

    def set_buffer(self, buffer):
        """Take another tensor as the buffer; the gradients come from the hook's result."""
        self._buffer = buffer

    def gradients(self):
        """Views of the buffer, in the shapes of the parameters."""
        return list(self._gradients)

    def parameters(self):
        """The parameters, in the order of the gradients."""
        return list(self._parameters)

    def is_last(self):
        """Is this the last bucket of the pass?"""
        return self._last


class _Bucket:
    """Dense gradients of one dtype in a flat tensor."""

    sparse = False

    def __init__(self, indices, parameters):
        self.indices, self.parameters = indices, parameters
        first = parameters[0]
        self.buffer = cresset.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        self.views = self.views_of(self.buffer)
        self.reset()

    def views_of(self, buffer):
        parts = buffer.split([p.numel() for p in self.parameters])
        return [part.view(p.shape) for part, p in zip(parts, self.parameters)]

    def reset(self):
        self.missing, self.work, self.sent = len(self.indices), None, None


def _compute_bucket_assignment_by_size(tensors, bucket_size_limits, expect_sparse_gradient=(), tensor_indices=()):
    """(lists of indices, their limits): tensors in their order, of one dtype and device each, until the bytes of a limit are reached.

    Each dtype and device begins with the first limit and goes on to the next with each bucket; the last holds for the rest. A tensor with a
    sparse gradient has a bucket of its own. With `tensor_indices` those numbers stand for the tensors, and buckets keep the order of their ends.
    """
    open_, reached, done = {}, {}, []
    numbers = list(tensor_indices) or range(len(tensors))
    for place, (number, t) in enumerate(zip(numbers, tensors)):
        if place < len(expect_sparse_gradient) and expect_sparse_gradient[place]:
            done.append(([number], 0))
            continue
        key = (t.dtype, t.device)
        indices, size = open_.get(key, ([], 0))
        limit = bucket_size_limits[min(reached.get(key, 0), len(bucket_size_limits) - 1)]
        open_[key] = indices, size = [*indices, number], size + t.numel() * t.element_size()
        if size >= limit:
            done.append((open_.pop(key)[0], limit))
            reached[key] = reached.get(key, 0) + 1
    for key, (indices, _) in open_.items():
        done.append((indices, bucket_size_limits[min(reached.get(key, 0), len(bucket_size_limits) - 1)]))
    if not tensor_indices:
        done.sort(key=lambda bucket: min(bucket[0]))
    return [indices for indices, _ in done], [limit for _, limit in done]


def assign(parameters, caps, sparse):
    """Lists of indices of parameters: from the last to the first, of one dtype and device each, until the bytes of `caps` (the last holds for the rest).

    Each of `sparse` has a list of its own.
    """
    buckets, open_ = [], {}
    for index in reversed(range(len(parameters))):
        p = parameters[index]
        if index in sparse:
            buckets.append([index])
            continue
        key = (p.dtype, p.device)
        indices, size = open_.get(key, ([], 0))
        indices, size = [*indices, index], size + p.numel() * p.element_size()
        open_[key] = (indices, size)
        if size >= caps[min(len(buckets), len(caps) - 1)]:
            buckets.append(open_.pop(key)[0])
    return sorted(buckets + [indices for indices, _ in open_.values()], key=lambda indices: -min(indices))


def broadcast_coalesced(tensors, group, source, limit=250 * 2**20):
    """Give tensors the values that rank `source` of the group has: one message for each dtype and device, up to `limit` bytes."""
    kinds = {}
    for t in tensors:
        kinds.setdefault((t.dtype, t.device), []).append(t)
    with cresset.no_grad():
        for same in kinds.values():
            while same:
                part, size = [], 0
                while same and (not part or size + same[0].nbytes <= limit):
                    size += same[0].nbytes
                    part.append(same.pop(0))
                flat = cresset.cat([t.detach().reshape(-1) for t in part])
                opts = BroadcastOptions()
                opts.rootRank = source
                wait_for(group.broadcast([flat], opts))
                for t, value in zip(part, flat.split([t.numel() for t in part])):
                    t.detach().copy_(value.view(t.shape))


def _leaves_below(tensors):
    """The ids of the leaves that gradients of these tensors reach."""
    seen, leaves = set(), {id(t) for t in tensors if t.grad_fn is None}
    stack = [t.grad_fn for t in tensors if t.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            leaves.add(id(variable))
        stack += [below for below, _ in node.next_functions if below is not None]
    return leaves


class _Averages:
    """Averages gradients of `parameters`, a list, over the ranks of `group`. `names` are for errors; `buckets` are lists of indices, `sparse` places of those
    with sparse gradients."""

    def __init__(self, parameters, names, group, buckets, find_unused, view_gradients, static, sparse=frozenset()):
        self.parameters, self.names, self.group, self.size = parameters, names, group, group.size()
        self.find_unused, self.view_gradients, self.static = find_unused, view_gradients, static
        self.buckets = [
            SparseBucket(indices[0], parameters[indices[0]]) if indices[0] in sparse else _Bucket(indices, [parameters[i] for i in indices])
            for indices in buckets
        ]
        self.place = {i: (b, k) for b, bucket in enumerate(self.buckets) for k, i in enumerate(bucket.indices)}
        self.hook = self.divisor = self.reduce_dtype = None  # of sums of gradients, without one the number of ranks; gradients' dtype on the way
        self.armed = self.running = self.unfinished = False
        self.passes, self.error = 0, ""  # that were prepared to reduce; what check_finished said last
        self.unused, self.used = set(), set()  # of the graph; since gradients were last reduced
        self.hits, self.expected = [0] * len(parameters), None  # in this pass; in every pass of a static graph
        self.kept = None
        reducer = weakref.ref(self)

        def hook_of(i):
            def hook(parameter):
                if (alive := reducer()) is not None:
                    alive._on_gradient(i)

            return hook

        self.handles = [p.register_post_accumulate_grad_hook(hook_of(i)) for i, p in enumerate(parameters)]

    def __del__(self):
        for handle in getattr(self, "handles", ()):
            handle.remove()

    def check_finished(self):
        """RuntimeError when the pass before gave no gradient to some parameter."""
        if not self.unfinished:
            return
        missing = [i for i, done in enumerate(self.done) if not done]
        rank = _groups.get_rank()
        text = _UNFINISHED + (_OUTPUTS[0].upper() + _OUTPUTS[1:] if self.find_unused else _ENABLE + _OUTPUTS) + "\n"
        level = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
        if level in ("INFO", "DETAIL"):
            text += f"Parameters which did not receive grad for rank {rank}: {', '.join(self.names[i] for i in missing)}\n"
        text += f"Parameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}"
        if level not in ("INFO", "DETAIL"):
            text += (
                "\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information "
                "about which particular parameters did not receive gradient on this rank as part of this error"
            )
        self.error = text
        raise RuntimeError(text)

    def prepare(self, outputs, reduce):
        """Before backward from these tensors; with `reduce` false gradients stay this rank's until a later pass."""
        if reduce:
            self.check_finished()
        self.armed, self.running = reduce, False
        if not reduce:
            return
        self.passes += 1
        self._reset()
        with_graph = [t for t in outputs if t.requires_grad]
        self.unused = set()
        if self.find_unused and not self.static:
            reached = _leaves_below(with_graph)
            self.unused = {i for i, p in enumerate(self.parameters) if id(p) not in reached}
        reducer = weakref.ref(self)

        def begin(gradient):
            if (alive := reducer()) is not None:
                alive.armed = True  # also of a second backward from the same outputs
                alive._begin()

        for t in with_graph:
            if t.grad_fn is not None:
                t.register_hook(begin)  # runs in the outermost pass, where nested ones are within

    def _reset(self):
        for bucket in self.buckets:
            bucket.reset()
        self.done = [False] * len(self.parameters)
        self.hits, self.next = [0] * len(self.parameters), 0

    def _begin(self):
        if self.running or not self.armed:
            return
        self._reset()
        self.running = self.unfinished = True
        _C._queue_callback(self._finish)
        for i in self.unused:
            self._ready(i)
        if self.static and self.expected is not None:
            for i, times in enumerate(self.expected):
                if times == 0:
                    self._ready(i)

    def _on_gradient(self, i):
        self.used.add(i)
        if not self.armed:
            return
        self._begin()
        self.hits[i] += 1
        if self.static:
            if self.expected is None or self.hits[i] < self.expected[i]:
                return
        elif self.done[i]:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module parameter "
                "outside the `forward` function. Please make sure model parameters are not shared across multiple concurrent forward-backward passes. "
                "or try to use _set_static_graph() as a workaround if this module graph does not change during training loop.2) Reused parameters in "
                "multiple reentrant backward passes. For example, if you use multiple `checkpoint` functions to wrap the same part of your model, it "
                "would result in the same set of parameters been used by different reentrant backward passes multiple times, and hence marking a "
                "variable ready multiple times. DDP does not support such use cases in default. You can try to use _set_static_graph() as a workaround "
                f"if your module graph does not change over iterations.\nParameter at index {i} with name {self.names[i]} has been marked as ready twice."
            )
        self._ready(i)

    def _ready(self, i):
        """The gradient of parameter i is complete: into its bucket."""
        if self.done[i]:
            return
        self.done[i] = True
        number, place = self.place[i]
        bucket = self.buckets[number]
        if bucket.sparse:
            bucket.take(self.parameters[i].grad)
        else:
            self._fill(self.parameters[i], bucket.views[place])
        bucket.missing -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            self._start(self.next)
            self.next += 1

    def _fill(self, parameter, view):
        gradient = parameter.grad
        with cresset.no_grad():
            if gradient is None:
                view.zero_()
            elif gradient.layout != cresset.strided:
                raise RuntimeError("DistributedDataParallel: dense gradients were required; a sparse one was given. Use sparse=False in the layer.")
            elif gradient.data_ptr() != view.data_ptr() or gradient.numel() == 0:
                view.copy_(gradient)

    def _start(self, number):
        bucket = self.buckets[number]
        if self.hook is None and bucket.sparse:
            with cresset.no_grad():
                bucket.buffer = bucket.buffer / (self.divisor or self.size)
            _collectives.all_reduce(bucket.buffer, group=self.group)
            return
        if self.hook is None:
            with cresset.no_grad():
                bucket.buffer.div_(self.divisor or self.size)
                same = self.reduce_dtype in (None, bucket.buffer.dtype)
                bucket.sent = bucket.buffer if same else bucket.buffer.to(self.reduce_dtype)
            bucket.work = _collectives.all_reduce(bucket.sent, group=self.group, async_op=True)
            return
        function, state = self.hook
        with cresset.no_grad():
            views = bucket.views_of(bucket.buffer) if bucket.sparse else bucket.views
            future = function(state, GradBucket(number, bucket.buffer, views, bucket.parameters, number == len(self.buckets) - 1))
        if not isinstance(future, Future):
            kind = f"{type(future).__module__}.{type(future).__qualname__}"
            self.error = f"DDP communication hook's callback must return a torch.futures.Future object, but got {kind}"
            raise RuntimeError(self.error)
        bucket.work = future

    def shadow(self):
        """The collectives of a pass, with gradients of zero: for a rank that has no input while others have."""
        self._reset()
        for number, bucket in enumerate(self.buckets):
            with cresset.no_grad():
                if bucket.sparse:
                    bucket.take(None)
                else:
                    bucket.buffer.zero_()
            self._start(number)
        self._used_anywhere()
        for bucket in self.buckets:
            if bucket.work is not None:
                bucket.work.wait()

    def _finish(self):
        """At the end of the pass: everybody's gradients."""
        self.running = False
        if self.static and self.expected is None:
            self.expected = list(self.hits)
            for i in range(len(self.parameters)):
                self._ready(i)
        if self.next < len(self.buckets):
            return  # check_finished tells
        kept = self._used_anywhere()
        with cresset.no_grad():
            for bucket in self.buckets:
                views = self._wait(bucket)
                for i, parameter, view in zip(bucket.indices, bucket.parameters, views):
                    if i in kept:
                        self._give(parameter, view)
        self.unfinished = self.armed = False  # a backward of the module alone, without a forward of this, stays the rank's
        self.used = set()

    def _wait(self, bucket):
        """The bucket's reduced gradients."""
        if bucket.sparse and self.hook is None:
            return [bucket.buffer]
        if self.hook is None:
            if isinstance(bucket.work, Work) and type(bucket.work) is not Work:  # written in Python: its future says when it is done
                bucket.work.get_future().wait()
            else:
                wait_for(bucket.work)
            if bucket.sent is not bucket.buffer:
                bucket.buffer.copy_(bucket.sent)
            bucket.sent = None
            return bucket.views
        result = bucket.work.wait()
        result = result[0] if isinstance(result, (list, tuple)) else result
        if not self.view_gradients or bucket.sparse:
            return bucket.views_of(result)
        if result.data_ptr() != bucket.buffer.data_ptr():
            bucket.buffer.copy_(result)
        return bucket.views

    def _used_anywhere(self):
        """The parameters that some rank used; those of nobody keep the gradients that they had."""
        everyone = range(len(self.parameters))
        if self.static and self.kept is not None:
            return self.kept
        if not (self.static or self.find_unused):
            return set(everyone)
        flags = cresset.tensor([int(i in self.used) for i in everyone], dtype=cresset.int32, device=self.parameters[0].device)
        _collectives.all_reduce(flags, group=self.group)
        self.kept = {i for i, n in enumerate(flags.tolist()) if n}
        return self.kept

    def _give(self, parameter, view):
        gradient = parameter.grad
        if view.layout != cresset.strided:
            parameter.grad = view
        elif self.view_gradients:
            if gradient is None or gradient.data_ptr() != view.data_ptr():
                parameter.grad = view
        elif gradient is None:
            parameter.grad = view.clone()
        else:
            gradient.copy_(view)


class Reducer(_Averages):
    """Averages gradients of parameters over the ranks of a group while backward goes on, for programs that do without DistributedDataParallel.

    `bucket_indices` are lists of indices of parameters of one dtype and device each (RuntimeError otherwise), reduced in this order. A pass is
    `prepare_for_forward()`, forward, `prepare_for_backward(outputs)`, backward. The sizes are not asked: buckets are given.
    """

    def __init__(
        self, params, bucket_indices, per_bucket_size_limits, process_group, expect_sparse_gradients=(), bucket_bytes_cap=25 * 2**20,
        find_unused_parameters=False, gradient_as_bucket_view=False, param_to_name_mapping=None, first_bucket_bytes_cap=2**20,
    ):  # fmt: skip
        params, names = list(params), param_to_name_mapping or {}
        if len(bucket_indices) != len(per_bucket_size_limits):
            raise RuntimeError(f"Reducer: a limit for each of {len(bucket_indices)} buckets was required; {len(per_bucket_size_limits)} were given.")
        for indices in bucket_indices:
            kinds = {(params[i].dtype, params[i].device) for i in indices}
            if len(kinds) != 1:
                raise RuntimeError("All parameters in a bucket must be placed on the same device and have the same dtype.")
        super().__init__(
            params, [names.get(i, str(i)) for i in range(len(params))], process_group, bucket_indices, find_unused_parameters, gradient_as_bucket_view, False
        )

    def prepare_for_forward(self):
        """RuntimeError when the pass before gave no gradient to some parameter."""
        self.check_finished()

    def prepare_for_backward(self, output):
        """Before backward from a tensor or a list of tensors."""
        self.prepare([output] if isinstance(output, cresset.Tensor) else list(output), True)
