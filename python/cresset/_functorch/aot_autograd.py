"""Functions recorded ahead of time: one graph for the results, one for the gradients, each given to a compiler of the caller's."""

import cresset
from cresset._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensor, FakeTensorMode
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.utils import _pytree as pytree

from .partitioners import default_partition, flattened

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func", "nop"]


def __getattr__(name):
    if name in ("BackwardSignature", "GraphSignature", "aot_export_module"):
        from . import _aot_export

        return getattr(_aot_export, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def nop(fx_g, example_inputs):
    """A compiler that runs the recorded graph as it is."""
    return fx_g


def make_boxed_func(f):
    """f as a function of one list, which it empties so that nothing else keeps the arguments alive."""

    def boxed(args):
        values = list(args)
        args.clear()
        return f(*values)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler):
    """The compiler with make_boxed_func around what it gives."""

    def boxed(fx_g, example_inputs):
        return make_boxed_func(compiler(fx_g, example_inputs))

    return boxed


def _called(compiled, values):
    return compiled(list(values)) if getattr(compiled, "_boxed_call", False) else compiled(*values)


def _key(tensors):
    # A tensor that is given twice is recorded as one.
    place = {}
    return cresset.is_grad_enabled(), tuple(
        (tuple(t.shape), tuple(t.stride()), t.dtype, t.device, t.requires_grad, place.setdefault(id(t), n)) for n, t in enumerate(tensors)
    )


def _recorded(function, options, *lists):
    """The graph of a function of lists of tensors; on real copies where sizes depend on values. AssertionError where it has a fake tensor as a constant."""
    decompositions = options["decompositions"]
    try:
        graph = make_fx(function, decompositions, tracing_mode="fake")(*lists)
        for name, buffer in graph.named_buffers():
            if isinstance(buffer, FakeTensor):
                raise AssertionError(f"Unexpected fake buffer {name}")
        return graph
    except DynamicOutputShapeException:
        if not options["dynamic"]:
            raise
        return make_fx(function, decompositions, tracing_mode="real")(*pytree.tree_map_only(cresset.Tensor, lambda t: t.detach().clone(), lists))


class _Compiled:
    """What a call with arguments of one kind was compiled to."""

    def __init__(self, function, tensors, options):
        self.options = options
        self.function = function
        self.needed = [n for n, t in enumerate(tensors) if t.requires_grad] if cresset.is_grad_enabled() else []
        self.written, self.aliases = [], {}
        self.outputs = self._outputs(tensors) if self.needed else []
        if any(self.outputs) or self.written:
            self._record_both(tensors)
        else:
            with cresset.no_grad():
                plain = [t.detach() for t in tensors]
                graph = _recorded(self._flat, options, plain)
                self.forward = options["fw_compiler"](flattened(graph), plain)

    def _flat(self, tensors):
        results, self.spec = pytree.tree_flatten(self.function(tensors))
        return results

    def _requiring(self, tensors):
        return [t.detach().requires_grad_(n in self.needed) for n, t in enumerate(tensors)]

    def _outputs(self, tensors):
        """For each result that the graph gives, whether it requires a gradient. Notes which arguments that require one are written, and which results
        are such an argument, or a view of it: {place: (argument, None or size, stride, offset, and whether it requires a gradient)}."""
        try:
            mode = next((t.fake_mode for t in tensors if isinstance(t, FakeTensor)), None) or FakeTensorMode(allow_non_fake_inputs=True)
            plain = [t.detach() for t in tensors]
            with mode:
                return self._looked_at([t if isinstance(t, FakeTensor) else mode.from_tensor(t) for t in plain])
        except DynamicOutputShapeException:
            if not self.options["dynamic"]:
                raise
            return self._looked_at([t.detach().clone() for t in tensors])

    def _looked_at(self, tensors):
        given = self._requiring(tensors)
        given = [t.clone() if n in self.needed else t for n, t in enumerate(given)]  # no leaves: they may be written
        before = [t._version for t in given]
        results = self._flat(given)
        self.written = [n for n in self.needed if given[n]._version != before[n]]
        self.aliases = {}
        for place, r in enumerate(results):
            for n in self.written if isinstance(r, cresset.Tensor) and r.layout is cresset.strided else ():
                if r is given[n]:
                    self.aliases[place] = n, None
                elif r.untyped_storage()._cdata == given[n].untyped_storage()._cdata:
                    self.aliases[place] = n, (r.shape, r.stride(), r.storage_offset(), r.requires_grad)
        results = [r for place, r in enumerate(results) if place not in self.aliases]
        flags = [isinstance(r, cresset.Tensor) and r.requires_grad for r in results]
        ends = [*(r for r, flag in zip(results, flags) if flag), *(given[n] for n in self.written)]
        self.tangents = [cresset.ones(r.shape, dtype=r.dtype, device=r.device) for r in ends]
        return flags

    def _record_both(self, tensors):
        def joint(primals, tangents):
            with cresset.enable_grad():
                primals = self._requiring(primals)
                given = [p.clone() if n in self.written else p for n, p in enumerate(primals)]
                results = [r for place, r in enumerate(self._flat(given)) if place not in self.aliases]
                results += (given[n] for n in self.written)
                ends = [r for r, flag in zip(results, self.outputs) if flag] + results[len(self.outputs) :]
                found = cresset.autograd.grad(ends, [primals[n] for n in self.needed], tangents, allow_unused=True)
            return [r.detach() if isinstance(r, cresset.Tensor) else r for r in results], list(found)

        plain = [t.detach() for t in tensors]
        graph = _recorded(joint, self.options, plain, self.tangents)
        forward, backward = self.options["partition_fn"](graph, [*plain, *self.tangents], num_fwd_outputs=len(self.outputs) + len(self.written))
        plain_count, count = len(self.outputs), len(self.outputs) + len(self.written)
        run_forward = self.options["fw_compiler"](forward, plain)
        compiled = {}

        class Recorded(cresset.autograd.Function):
            @staticmethod
            def forward(ctx, *primals):
                results = _called(run_forward, primals)
                values, changed, saved = results[:plain_count], results[plain_count:count], results[count:]
                targets = [primals[n] for n in self.written]
                saved = [s.clone() if any(s is t for t in targets) else s for s in saved]
                for target, value in zip(targets, changed):
                    target.copy_(value)
                ctx.mark_dirty(*targets)
                ctx.save_for_backward(*(s for s in saved if isinstance(s, cresset.Tensor)))
                ctx.others = [None if isinstance(s, cresset.Tensor) else (s,) for s in saved]
                ctx.mark_non_differentiable(*(v for v, flag in zip(values, self.outputs) if not flag and isinstance(v, cresset.Tensor)))
                return (*values, *targets)

            @staticmethod
            def backward(ctx, *grads):
                tensors = iter(ctx.saved_tensors)
                saved = [next(tensors) if other is None else other[0] for other in ctx.others]
                # As recorded: what the graph does to make them contiguous was nothing then.
                wanted = [g for g, flag in zip(grads, self.outputs) if flag] + list(grads[plain_count:])
                given = [*saved, *(g.contiguous() for g in wanted)]
                if "backward" not in compiled:
                    compiled["backward"] = self.options["bw_compiler"](backward, given)
                found = dict(zip(self.needed, _called(compiled["backward"], given)))
                return tuple(found.get(n) for n in range(len(ctx.needs_input_grad)))

        self.forward = Recorded.apply

    def _with_aliases(self, results):
        """All results in their order, from those of the graph and the arguments that were written."""
        results = list(results)
        changed = dict(zip(self.written, results[len(self.outputs) :]))
        rest = iter(results[: len(self.outputs)])
        found = []
        for place in range(len(self.outputs) + len(self.aliases)):
            n, form = self.aliases.get(place, (None, None))
            if form is None:
                found.append(next(rest) if n is None else changed[n])
            else:
                *form, requires_grad = form
                found.append((changed[n] if requires_grad else changed[n].detach()).as_strided(*form))
        return found

    def __call__(self, tensors):
        results = _called(self.forward, tensors)
        results = self._with_aliases(results) if self.written else results
        return pytree.tree_unflatten(list(results) if isinstance(results, (list, tuple)) else [results], self.spec)


def aot_function(
    fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0, keep_inference_input_mutations=False,
    inference_compiler=None, *, dynamic=False, enable_log=True,
):  # fmt: skip
    """A function with the results and the gradients of fn, which runs what the compilers made of its recorded graphs.

    fw_compiler(graph, arguments) is called when arguments of a kind (sizes, strides, types, which require gradients) are first met, bw_compiler
    at their first backward; both give a function of the graph's arguments. partition_fn divides the graph of results and gradients. What is
    not a tensor is part of the recorded graph. Sizes are always numbers; operators whose results' sizes depend on values are recorded when `dynamic`, and raise otherwise. Gradients have no
    graph of their own. Arguments that fn writes to are written, those that require gradients too when they are no leaves.
    """
    options = {
        "fw_compiler": fw_compiler, "bw_compiler": bw_compiler or fw_compiler, "partition_fn": partition_fn, "decompositions": decompositions,
        "dynamic": dynamic,
    }  # fmt: skip
    known = {}

    def prepared(args, kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor)]
        tensors = [leaves[n] for n in places]

        def of_tensors(tensors):
            given = dict(zip(places, tensors))
            inner_args, inner_kwargs = pytree.tree_unflatten([given.get(n, leaf) for n, leaf in enumerate(leaves)], spec)
            return fn(*inner_args, **inner_kwargs)

        others = tuple(repr(leaf) for n, leaf in enumerate(leaves) if n not in places)
        key = (str(spec), others, _key(tensors))
        if key not in known:
            with cresset.random.fork_rng(devices=()):
                known[key] = _Compiled(of_tensors, tensors, options)
        return known[key], tensors

    def call(*args, **kwargs):
        compiled, tensors = prepared(args, kwargs)
        return compiled(tensors)

    call.prepare = lambda *args, **kwargs: prepared(args, kwargs)
    return call


class _CompiledModule(cresset.nn.Module):
    def __init__(self, mod, *args, **kwargs):
        super().__init__()
        self.orig_module = mod
        self._call = aot_function(lambda state, given, named: cresset.func.functional_call(mod, state, given, named), *args, **kwargs)

    def _state(self):
        return {**dict(self.orig_module.named_parameters()), **dict(self.orig_module.named_buffers())}

    def forward(self, *args, **kwargs):
        return self._call(self._state(), args, kwargs)


def aot_module(mod, *args, **kwargs):
    """A module with the parameters of `mod` that runs what aot_function makes of its forward; buffers that forward changes stay as they were."""
    return _CompiledModule(mod, *args, **kwargs)


def aot_module_simplified(
    mod, args, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, keep_inference_input_mutations=False,
    inference_compiler=None,
):  # fmt: skip
    """What backends of `compile` use: a function of a module's arguments that runs what the compilers made of it, the first of them at once, for `args`.

    The graph has the parameters and buffers of `mod` in front of the arguments; results in a tuple come in a list. As aot_module in all else.
    """
    compiled = _CompiledModule(mod, fw_compiler, bw_compiler, partition_fn, decompositions, 0, keep_inference_input_mutations, inference_compiler)
    compiled._call.prepare(compiled._state(), tuple(args), {})

    def forward(*runtime_args):
        result = compiled(*runtime_args)
        return list(result) if isinstance(result, tuple) else result

    forward.named_parameters, forward.named_buffers, forward.zero_grad = mod.named_parameters, mod.named_buffers, mod.zero_grad
    return forward
