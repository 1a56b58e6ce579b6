"""`opcheck`: tests of one operator's registrations on given arguments."""

import functools

import cresset
from cresset import _C
from cresset.utils._pytree import tree_flatten, tree_leaves, tree_map_only

__all__ = ["OpCheckError", "opcheck"]

ALL_TEST_UTILS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic")
DEFAULT_TEST_UTILS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """A test of opcheck failed; the message names it."""


def _clone(tree):
    """The same structure with tensors of their own, which require gradients where the originals do."""
    return tree_map_only(cresset.Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), tree)


def _named_arguments(op, args, kwargs):
    schema = op._schema.arguments
    return [(a, value) for a, value in zip(schema, args)] + [(a, kwargs[a.name]) for a in schema if a.name in kwargs]


def _tensors(tree):
    return [t for t in tree_leaves(tree) if isinstance(t, cresset.Tensor)]


def _memory(tensor):
    return tensor.untyped_storage()._cdata if tensor.numel() else None


def test_schema(op, args, kwargs):
    """What the schema does not declare must not happen: arguments that change, results that share memory."""
    with cresset.no_grad():
        checked_call(op, _clone(args), _clone(kwargs))


def checked_call(op, args, kwargs, record=None):
    """The results of a call. RuntimeError for what its schema does not declare; what it declares goes into record.mutated and record.aliasing."""
    arguments = _named_arguments(op, args, kwargs)
    before = [[t.detach().clone() for t in _tensors(value)] for _, value in arguments]
    results = op(*args, **kwargs)
    for (argument, value), old in zip(arguments, before):
        changed = any(not _same_values(a, b) for a, b in zip(old, _tensors(value)))
        if changed and not argument.is_write:
            raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
        if changed and record is not None:
            record.mutated.append((op._schema.name, argument.name))
    returns = op._schema.returns
    outputs = results if len(returns) > 1 else (results,)
    for place, (declared, output) in enumerate(zip(returns, outputs)):
        for t in _tensors(output):
            for argument, value in arguments:
                if not any(_memory(t) is not None and _memory(t) == _memory(i) for i in _tensors(value)):
                    continue
                if op._schema.name.startswith(("aten::unsafe_", "aten::_unsafe_view")):
                    continue  # pieces and views of what nobody else has are declared as no views: who calls it will not write
                if not argument.alias or argument.alias != declared.alias:
                    raise RuntimeError(f"Argument {argument.name} is not defined to alias output but was aliasing")
                if record is not None:
                    record.aliasing.append((op._schema.name, argument.name, f"output_{place}"))
    seen = {}
    for position, (declared, output) in enumerate(zip(returns, outputs)):
        for t in _tensors(output):
            memory = _memory(t)
            if memory is not None and seen.setdefault(memory, position) != position and not declared.alias:
                raise RuntimeError(f"Outputs {seen[memory]} and {position} alias unexpectedly")
    return results


def _same_values(a, b):
    if a.shape != b.shape:
        return False
    if a.is_floating_point() or a.is_complex():
        return bool(((a == b) | ((a != a) & (b != b))).all())
    return bool((a == b).all())


def test_autograd_registration(op, args, kwargs):
    """Results that require gradients come from a kernel at an autograd key, not from inside of a backend's kernel."""
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    name = op.name()
    keys = ("AutogradCPU", "Autograd", "CompositeImplicitAutograd")
    if any(op.has_kernel_for_dispatch_key(key) for key in keys):
        return
    results = op(*_clone(args), **_clone(kwargs))
    if any(t.requires_grad for t in _tensors(results)):
        raise OpCheckError(
            f"{name}: at least one output of this operator has requires_grad=True but the operator does not have an autograd kernel defined at an "
            "autograd key (e.g. DispatchKey::Autograd). This could mean that you have incorrectly registered an autograd kernel to a "
            "non-Autograd DispatchKey, which may lead to silently incorrect results. If your operator consists of regular operations, consider "
            "not using an operator at all or registering your operator as CompositeImplicitAutograd."
        )


class _UnknownSizes:
    """What new_dynamic_size gives: first a number that stands for the size, then the size that real tensors had in its place."""

    # No result of an honest fake implementation has such sizes by itself.
    _FIRST = 1_000_003

    def __init__(self):
        self.bounds, self.found = [], None
        self._count = 0

    def __call__(self, low, high):
        place = self._count
        self._count += 1
        if self.found is not None:
            return self.found.get(place, low)
        self.bounds.append((low, high))
        return self._FIRST + 2 * place

    def learn(self, op, real, fake):
        """Compare shapes: what stands for a size has that size from now on."""
        self.found, self._count = {}, 0
        for a, b in zip(_tensors(real), _tensors(fake)):
            for size, standing in zip(a.shape, b.shape):
                place, odd = divmod(standing - self._FIRST, 2)
                if odd or not 0 <= place < len(self.bounds):
                    continue
                low, high = self.bounds[place]
                if size < low or (high is not None and size > high):
                    raise RuntimeError(f"{op}: new_dynamic_size(min={low}, max={high}): the real operator gave the size {size}.")
                self.found[place] = size


def _run_fake(op, args, kwargs, sizes):
    from cresset._subclasses.fake_tensor import FakeTensorMode

    from .fake import sizes_from

    mode = FakeTensorMode()
    fake_args, fake_kwargs = tree_map_only(cresset.Tensor, mode.from_tensor, (_clone(args), _clone(kwargs)))
    with mode, sizes_from(sizes):
        return op(*fake_args, **fake_kwargs)


def test_faketensor(op, args, kwargs, check_strides=True):
    """On fake tensors the operator gives the sizes, strides, dtypes and devices that it gives on real ones."""
    from cresset._subclasses.fake_tensor import UnsupportedOperatorException

    real = op(*_clone(args), **_clone(kwargs))
    sizes = _UnknownSizes()
    try:
        fake = _run_fake(op, args, kwargs, sizes)
        if sizes.bounds:
            sizes.learn(op, real, fake)
            fake = _run_fake(op, args, kwargs, sizes)
    except UnsupportedOperatorException as error:
        raise NotImplementedError(
            f"{op.name()}: the operator has no kernel for fake and meta tensors. Use register_fake to add one. ({error.__cause__})"
        ) from None
    (real_leaves, real_tree), (fake_leaves, fake_tree) = tree_flatten(real), tree_flatten(fake)
    if real_tree != fake_tree:
        raise RuntimeError(f"{op}: the fake implementation returns {fake_tree}, the real one {real_tree}.")
    what = f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatched tensor metadata: "
    for a, b in zip(real_leaves, fake_leaves):
        if isinstance(a, cresset.Tensor) != isinstance(b, cresset.Tensor):
            raise RuntimeError(f"{op}: the fake implementation returns a {type(b).__name__} where the real one returns a {type(a).__name__}.")
        if not isinstance(a, cresset.Tensor):
            continue
        if a.shape != b.shape:
            raise RuntimeError(f"{what}Shapes {a.shape} and {b.shape} are not equal!")
        if a.dtype != b.dtype:
            raise RuntimeError(f"{what}Dtypes {a.dtype} and {b.dtype} are not equal!")
        if a.device != b.device:
            raise RuntimeError(f"{what}Devices {a.device} and {b.device} are not equal!")
        strides = [(s, t) for s, t, n in zip(a.stride(), b.stride(), a.shape) if n > 1]
        if check_strides and a.numel() and any(s != t for s, t in strides):
            raise RuntimeError(f"{what}Stride mismatch! Strides are {a.stride()} and {b.stride()}")


def _results_and_gradients(function, args, kwargs, generator):
    """What a call gives, and the gradients of its sum for the arguments that require them."""
    args, kwargs = _clone(args), _clone(kwargs)
    cresset.set_rng_state(generator)
    results = _tensors(function(*args, **kwargs))
    wanted = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    ends = [r.sum().abs() for r in results if r.requires_grad]
    if not wanted or not ends:
        return results, []
    return results, cresset.autograd.grad(sum(ends), wanted, allow_unused=True)


def test_aot_dispatch(op, args, kwargs, atol=None, rtol=None, dynamic=True):
    """Recorded ahead of time the operator gives the results and the gradients that it gives as it is."""
    from cresset._functorch.aot_autograd import aot_function, nop

    generator = cresset.get_rng_state()
    eager = _results_and_gradients(op, args, kwargs, generator)
    recorded = _results_and_gradients(aot_function(op, nop, dynamic=dynamic), args, kwargs, generator)
    for what, have, wanted in zip(("Outputs", "Gradients"), recorded, eager):
        for a, b in zip(have, wanted):
            cresset.testing.assert_close(
                a, b, atol=atol, rtol=rtol, msg=lambda text, what=what: f"{what} of the operator are different in eager-mode and recorded.\n{text}"
            )


_TESTS = {
    "test_schema": test_schema, "test_autograd_registration": test_autograd_registration, "test_faketensor": test_faketensor,
    "test_aot_dispatch_static": functools.partial(test_aot_dispatch, dynamic=False), "test_aot_dispatch_dynamic": test_aot_dispatch,
}  # fmt: skip


def opcheck(op, args, kwargs=None, *, test_utils=DEFAULT_TEST_UTILS, raise_exception=True, atol=None, rtol=None):
    """Test an operator's registrations on sample arguments; {test: "SUCCESS" or the exception}.

    test_schema: nothing changes or shares memory that the schema does not declare. test_autograd_registration: gradients come from
    an autograd key. test_faketensor: the Meta kernel agrees with the real one. test_aot_dispatch_static and test_aot_dispatch_dynamic: recorded by
    functorch.compile.aot_function the operator gives the same results and gradients, within atol and rtol. With raise_exception the first failure raises
    OpCheckError. This does not test the values of gradients: use cresset.autograd.gradcheck for them.
    """
    from .custom_op import CustomOpDef

    if isinstance(op, CustomOpDef):
        op = op._opoverload
    elif not isinstance(op, _C.OpOverload):
        names = getattr(op, "overloads", None)
        if names is None:
            raise ValueError(
                f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
            )
        if len(names()) != 1:
            raise ValueError(f"opcheck(op, ...): {op} has the overloads {names()}. Pass one of them.")
        op = getattr(op, names()[0])
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(chosen) <= set(ALL_TEST_UTILS):
        raise ValueError(f"opcheck(op, ..., test_utils={chosen}), expected test_utils to be subset of {ALL_TEST_UTILS} but it was not")
    results = {}
    for name in chosen:
        try:
            tolerances = {"atol": atol, "rtol": rtol} if name.startswith("test_aot") else {}
            _TESTS[name](op, args, kwargs or {}, **tolerances)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)") from error
            results[name] = error
    return results
