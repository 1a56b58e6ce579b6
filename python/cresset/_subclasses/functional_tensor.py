"""Functional tensors: programs with in-place operators and views, run as functional operators.

A FunctionalTensor has a value, and a storage that it shares with its views. An in-place or out= operator runs as its functional form; the
result goes back through the views into the storage's value, and other views make themselves again from it when they are next
used. `func.functionalize` is made of this.
"""

import contextlib
import functools
import math
import weakref

import cresset
from cresset import _C
from cresset._dtype_info import word_of
from cresset.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, no_dispatch
from cresset.utils._pytree import tree_leaves, tree_map, tree_map_only

from ._functional_operators import copying_form, functional_form, put_into, replay

__all__ = ["FunctionalTensor", "FunctionalTensorMode", "disable_functional_mode", "dispatch_functionalize"]


def _is_contiguous_in(value, order):
    # Without an operator, which a trace would show.
    expected = 1
    for d in reversed(order):
        if value.shape[d] != 1 and value.stride(d) != expected and value.numel():
            return False
        expected *= value.shape[d]
    return True


class _Storage:
    """The value of a tensor that is no view; `generation` counts its changes. New values get the order of dimensions of the first one, so
    that as_strided finds the same elements. `users`: the tensors that have it, by id, as long as they live. One that is `frozen` does not change."""

    __slots__ = ("_order", "frozen", "generation", "users", "value")

    def __init__(self, value):
        self.value, self.generation, self.frozen, self.users = value, 0, False, weakref.WeakValueDictionary()
        self._order = sorted(range(value.dim()), key=value.stride, reverse=True)

    def put(self, value):
        order = self._order
        if value.dim() != len(order) or _is_contiguous_in(value, order):
            self.value = value
        else:
            self.value = value.permute(order).contiguous().permute([order.index(d) for d in range(len(order))])
        self.generation += 1


class FunctionalTensor(cresset.Tensor):
    """A tensor whose changes are new values: `elem` is the one it has now."""

    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem, mode=None, *, storage=None, views=()):
        self = cresset.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=0,
            dtype=elem.dtype,
            device=elem.device,
            requires_grad=False,
        )
        self.elem, self._functional_mode = elem, mode
        self._storage = _Storage(elem) if storage is None else storage
        self._views, self._generation = views, self._storage.generation
        self._storage.users[id(self)] = self
        return self

    @staticmethod
    def to_functional(x):
        """x as a functional tensor of the mode that is active; it must not be one already."""
        if isinstance(x, FunctionalTensor):
            raise AssertionError("to_functional: a tensor that is not functional was required.")
        return FunctionalTensor(x, _active_mode())

    def from_functional(self):
        """The value it has now."""
        self.sync()
        return self.elem

    def is_base_tensor(self):
        """Is it no view of another one?"""
        return not self._views

    def sync(self):
        """Make a view again whose base has changed."""
        if self._generation != self._storage.generation:
            with _scope_of(self._functional_mode):
                self.elem = replay(self._storage.value, self._views)
            self._generation = self._storage.generation

    def replace_(self, value):
        """Take another value; commit_update tells the views."""
        self.elem = value

    def commit_update(self):
        """Put the value into the storage, so that other views of it see the change. A view is made again from it when it is next in use: one element
        of the storage may be several of the view."""
        storage = self._storage
        with _scope_of(self._functional_mode):
            storage.put(put_into(storage.value, self._views, self.elem))
        if not self._views:
            self._generation = storage.generation

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if all(t._functional_mode in (None, *_by_hand) for t in tree_leaves((args, kwargs or {})) if isinstance(t, FunctionalTensor)):
            return _mode_by_hand()._run(func, args, kwargs or {})
        raise RuntimeError(
            "Attempting to use FunctionalTensor on its own. Instead, please use it with a corresponding FunctionalTensorMode()"
        )

    def __repr__(self, *, tensor_contents=None):
        return f"FunctionalTensor({self.from_functional()!r})"


def _innermost_mode():
    modes = (_C._get_dispatch_stack_at(i) for i in reversed(range(_C._len_torch_dispatch_stack())))
    return next((mode for mode in modes if isinstance(mode, FunctionalTensorMode)), None)


def _active_mode():
    mode = _innermost_mode()
    if mode is None:
        raise RuntimeError(
            "Attempting to use FunctionalTensor on its own. Instead, please use it with a corresponding FunctionalTensorMode()"
        )
    return mode


def call_on_values(function, *args, **kwargs):
    """What a function that writes nothing gives of the values of functional tensors, seen by what is around the active mode alone."""
    return _active_mode()._on_values(function, args, kwargs)


def has_functional(*values):
    """Is there a functional tensor of the active mode among the values?"""
    return _innermost_mode() is not None and any(isinstance(x, FunctionalTensor) for x in tree_leaves(values))


class _scope_of:
    """The layers that were on where a mode was entered, without the mode: values are recorded by autograd, and seen by what is around it.
    Without a mode that of a tensor made outside of any: the one that is active, if there is one."""

    def __init__(self, mode):
        self._mode = mode or _innermost_mode()
        self._popped, self._guard = False, contextlib.nullcontext()

    def __enter__(self):
        if self._mode is None:
            return
        count = _C._len_torch_dispatch_stack()
        self._popped = count > 0 and _C._get_dispatch_stack_at(count - 1) is self._mode
        if self._popped:
            _C._pop_torch_dispatch_stack()
        self._guard = _C._ForceDispatchKeyGuard(self._mode._included, self._mode._excluded)
        self._guard.__enter__()

    def __exit__(self, *exc_info):
        self._guard.__exit__(*exc_info)
        if self._popped:
            _C._push_on_torch_dispatch_stack(self._mode)


class disable_functional_mode:
    """No operator is made functional in the block."""

    def __enter__(self):
        self._mode = _C._pop_torch_dispatch_stack()
        return self._mode

    def __exit__(self, *exc_info):
        _C._push_on_torch_dispatch_stack(self._mode)


class FunctionalTensorMode(TorchDispatchMode):
    """Runs every operator of the block as a functional one. `views` says whether views stay views, or become copies."""

    def __init__(self, pre_dispatch=False, export=False, *, views=True):
        super().__init__()
        if pre_dispatch or export:
            raise NotImplementedError(
                "FunctionalTensorMode: pre_dispatch and export are not part of Cresset. Leave them False."
            )
        self.views = views

    def __enter__(self):
        self._included, self._excluded = _C._dispatch_tls_local_include_set(), _C._dispatch_tls_local_exclude_set()
        return super().__enter__()

    def _value(self, x):
        return x.from_functional() if isinstance(x, FunctionalTensor) else x

    def _wrapped(self, x):
        return FunctionalTensor(x, self) if isinstance(x, cresset.Tensor) and not isinstance(x, FunctionalTensor) else x

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not _crossref.on:
            return self._run(func, args, kwargs or {})
        expected = _on_meta(self, func, args, kwargs or {})
        out = self._run(func, args, kwargs or {})
        _compare_forms(func, expected, out)
        return out

    def _run(self, func, args, kwargs):
        functional = any(isinstance(x, FunctionalTensor) for x in tree_leaves((args, kwargs)))
        schema = func._schema
        if schema.name in ("aten::lift_fresh", "aten::lift") and not functional:  # a constant that the program may write
            with _scope_of(self):
                return self._wrapped(func(*args, **kwargs))
        if schema.name in _BATCH_NORMS and functional and not kwargs and _trains_statistics(args):
            return self._batch_norm(args)
        if any(a.is_write for a in schema.arguments):
            if not _writes_functional(schema, args, kwargs):
                if functional:
                    raise RuntimeError(
                        f"{schema.name}: mutating a non-functional tensor with a functional tensor is not allowed. Please ensure that all of "
                        "your inputs are wrapped inside of a functionalize() call."
                    )
                with _scope_of(self):
                    return func(*args, **kwargs)
            return self._write(func, args, kwargs)
        if any(a.alias and not a.is_write for a in schema.arguments) and any(r.alias for r in schema.returns):
            return self._view(func, args, kwargs, functional)
        return self._on_values(func, args, kwargs)

    def _batch_norm(self, args):
        """What writes to the running statistics, which the schema of one does not say: they take the values that the functional form gives."""
        with _scope_of(self):
            *results, mean, var = cresset.ops.aten._native_batch_norm_legit_functional.default(*map(self._value, args))
        for target, value in zip(args[3:5], (mean, var)):
            target.replace_(value)
            target.commit_update()
        return tuple(map(self._wrapped, results))

    def _on_values(self, function, args, kwargs):
        with _scope_of(self):
            out = function(*tree_map(self._value, args), **tree_map(self._value, kwargs))
        return tree_map(self._wrapped, out)

    def _view(self, func, args, kwargs, functional):
        if not functional:
            with _scope_of(self):
                return func(*args, **kwargs)
        base = args[0]
        make = func if self.views else copying_form(func)
        rest, named = tree_map(self._value, args[1:]), tree_map(self._value, kwargs)
        with _scope_of(self):
            out = make(self._value(base), *rest, **named)
        if not isinstance(base, FunctionalTensor):
            return tree_map(self._wrapped, out)

        def view(value, place):
            return FunctionalTensor(
                value, self, storage=base._storage, views=(*base._views, (make, rest, named, place))
            )

        return view(out, None) if isinstance(out, cresset.Tensor) else type(out)(view(v, i) for i, v in enumerate(out))

    def _write(self, func, args, kwargs):
        schema = func._schema
        view = _geometry_view(func)
        if view is not None:
            return self._change_geometry(args[0], view, args[1:], kwargs)
        if schema.name == "aten::resize_" and (view := self._resized(args[0], args[1])) is not None:
            return self._change_geometry(args[0], *view)
        written = list(_written(schema, args, kwargs))
        if any(isinstance(target, FunctionalTensor) and target._storage.frozen for target in written):
            raise RuntimeError("cannot mutate tensors with frozen storage")
        values, named = tree_map(self._value, args), tree_map(self._value, kwargs)
        with _scope_of(self):
            results, out = functional_form(func)(values, named)
        for target, value in zip(written, results):
            if not isinstance(target, FunctionalTensor):
                continue
            with _scope_of(self):
                value = _as_written(func, target, value)
            if value.shape != target.shape:  # out= and resize_: the tensor itself gets other sizes
                _C._take_sizes(target, value)
                del target._storage.users[id(target)]
                target._storage, target._views = _Storage(value), ()
                target._storage.users[id(target)] = target
                target._storage.generation = target._generation = 1
                target.elem = value
                continue
            target.replace_(value)
            target.commit_update()
            target.sync()
        if not schema.returns:
            return None
        if out is not None:  # an operator of someone's own may give what it wrote without its schema saying so
            own = {id(value): target for target, value in zip(written, results)}
            return tree_map(lambda x: own.get(id(x)) if id(x) in own else self._wrapped(x), out)
        return written[0] if len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor" else tuple(written)

    def _resized(self, target, size):
        """The view of itself that a tensor becomes by resize_, as (operator, arguments, keyword arguments); None where it is a tensor of its own
        that gets other memory. RuntimeError where others see the memory that it would leave."""
        value, numel = target.from_functional(), math.prod(size)
        if not target._views and list(target._storage.users) == [id(target)]:
            return None
        if numel > value.numel():
            raise RuntimeError("Attempted to resize a view tensor to a larger size. This is not allowed in the functionalization pass")
        if not _is_contiguous_in(value, range(value.dim())):
            raise RuntimeError("functionalize: resize_ of a view whose elements do not lie one after the other is not possible. Clone it first.")
        strides = [math.prod(size[d + 1 :]) for d in range(len(size))]
        return cresset.ops.aten.as_strided.default, (list(size), strides), {}

    def _change_geometry(self, target, view, args, kwargs):
        """`t_` and its like: the tensor becomes the view of itself that the functional operator gives."""
        view = view if self.views else copying_form(view)
        with _scope_of(self):
            value = view(target.from_functional(), *args, **kwargs)
        _C._take_sizes(target, value)
        target.elem = value
        target._views = (*target._views, (view, args, kwargs, None))
        return target


# --- each operator once more, without values ----------------------------------------------------------------------------------------


class _crossref:
    """A block in which each operator on functional tensors runs on meta tensors, too: RuntimeError where the results have other forms."""

    on = False

    def __enter__(self):
        self._before, _crossref.on = _crossref.on, True

    def __exit__(self, *exc_info):
        _crossref.on = self._before


def _on_meta(running, func, args, kwargs):
    """What an operator gives for functional tensors of the same forms on the Meta device; None where that cannot be known without values."""
    mode = FunctionalTensorMode(views=running.views)
    mode._included, mode._excluded = running._included, running._excluded

    def twin(x):
        meta = cresset.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
        return FunctionalTensor(meta, mode) if isinstance(x, FunctionalTensor) else meta

    if not any(isinstance(x, FunctionalTensor) for x in tree_leaves((args, kwargs))):
        return None
    with _disable_current_modes(), no_dispatch(), cresset.no_grad():  # nobody else sees these operators
        named = {k: "meta" if k == "device" else v for k, v in kwargs.items()}
        try:
            return mode._run(func, *tree_map_only(cresset.Tensor, twin, (args, named)))
        except (NotImplementedError, RuntimeError):
            return None  # the values count, or the operator itself will say what is wrong


def _compare_forms(func, expected, out):
    if expected is None:
        return
    for want, have in zip(tree_leaves(expected), tree_leaves(out), strict=True):
        if isinstance(have, cresset.Tensor) and (want.shape, want.dtype) != (have.shape, have.dtype):
            raise RuntimeError(
                f"crossref_functionalize: {func} gives {have.dtype} of size {list(have.shape)}, and on the Meta device {want.dtype} of size {list(want.shape)}."
            )


_BATCH_NORMS = ("aten::native_batch_norm", "aten::_native_batch_norm_legit")


def _trains_statistics(args):
    return len(args) == 8 and args[5] and all(isinstance(t, FunctionalTensor) for t in args[3:5])


@functools.lru_cache(maxsize=None)
def _geometry_view(func):
    """The view that does the same as an operator that changes only what a tensor looks like, or None: transpose.int for transpose_."""
    if cresset.Tag.inplace_view not in func.tags or func.namespace != "aten":
        return None
    packet = getattr(cresset.ops.aten, func._schema.name.removeprefix("aten::").removesuffix("_"), None)
    views = [getattr(packet, name) for name in packet.overloads()] if packet else []
    arguments = [(a.name, a.type) for a in func._schema.arguments]
    return next((v for v in views if _is_view(v._schema) and [(a.name, a.type) for a in v._schema.arguments] == arguments), None)


def _is_view(schema):
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _written(schema, args, kwargs):
    """The tensors that a call writes, in the order of the schema."""
    for place, argument in enumerate(schema.arguments):
        if argument.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            yield from (t for t in tree_leaves(value) if isinstance(t, cresset.Tensor))


def _writes_functional(schema, args, kwargs):
    return any(isinstance(t, FunctionalTensor) for t in _written(schema, args, kwargs))


def _as_written(func, target, value):
    """The result of the functional form as the in-place operator would have stored it."""
    if value.dtype != target.dtype:
        if not cresset.can_cast(value.dtype, target.dtype):
            raise RuntimeError(
                f"result type {word_of(value.dtype)} can't be cast to the desired output type {word_of(target.dtype)}"
            )
        value = cresset.ops.aten._to_copy.default(value, dtype=target.dtype, layout=cresset.strided)
    if (
        value.shape != target.shape
        and not any(a.is_out for a in func._schema.arguments)
        and func._schema.name != "aten::resize_"
    ):
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(value.shape)}"
        )
    return value



def functionalize(func, *, remove="mutations"):
    """A function with the semantics of `func` in which no operator writes to a tensor: in-place and out= operators run as functional ones, and
    tensors that `func` changes among its arguments get their new values at the end. With remove="mutations_and_views" views become copies as
    well. What `func` captures must not be written with functional values: RuntimeError."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their out-of-place "
            "equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced with their "
            "non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func, assigned=[n for n in functools.WRAPPER_ASSIGNMENTS if hasattr(func, n)])
    def wrapped(*args, **kwargs):
        inputs = {}
        with FunctionalTensorMode(views=remove == "mutations") as mode:

            def functional(x):
                if not isinstance(x, cresset.Tensor):
                    return x
                if id(x) not in inputs:
                    inputs[id(x)] = (x, FunctionalTensor(x, mode))
                return inputs[id(x)][1]

            out = func(*tree_map(functional, args), **tree_map(functional, kwargs))
            out = tree_map(mode._value, out)
            changed = [(x, wrapper) for x, wrapper in inputs.values() if wrapper._storage.generation]
            values = [(x, wrapper.from_functional()) for x, wrapper in changed]
        for x, value in values:
            if x.shape != value.shape:
                x.resize_(value.shape)
            x.copy_(value)
        return out

    return wrapped


def dispatch_functionalize(func, mode=None):
    """A function that gives what `func` gives, by functional operators: its tensors run as functional ones of the mode. Arguments that it writes stay
    as they are; func.functionalize gives them their new values."""

    def wrapped(*args, **kwargs):
        with mode or FunctionalTensorMode() as active:
            out = func(*tree_map(active._wrapped, args), **tree_map(active._wrapped, kwargs))
            return tree_map(active._value, out)

    return wrapped


# --- functionalization by hand ----------------------------------------------------------------------------------------------------

_entered = []  # the modes of _enable_functionalization
_by_hand = []  # the mode of functional tensors made by hand, where none is on


def _mode_by_hand():
    if not _by_hand:
        _by_hand.append(FunctionalTensorMode())
    mode = _by_hand[0]
    mode._included, mode._excluded = _C._dispatch_tls_local_include_set(), _C._dispatch_tls_local_exclude_set()
    return mode



def _enable_functionalization(*, reapply_views=False):
    """From now on operators with functional tensors run as functional ones, until _disable_functionalization. RuntimeError while it is on."""
    if _entered:
        raise RuntimeError("multiple layers of mode-style functionalization nesting is not currently supported, outside of the functionalize() transform")
    _entered.append(FunctionalTensorMode(views=reapply_views))
    _entered[-1].__enter__()


def _disable_functionalization():
    """Ends what _enable_functionalization began."""
    if _entered:
        _entered.pop().__exit__(None, None, None)


def _to_functional_tensor(t):
    """A functional tensor with the value of `t`."""
    return FunctionalTensor(t, None)


def _is_functional_tensor(t):
    return isinstance(t, FunctionalTensor)


def _from_functional_tensor(t):
    """The value that a functional tensor has. RuntimeError for another tensor."""
    if not _is_functional_tensor(t):
        raise RuntimeError("_from_functional_tensor: a functional tensor was required.")
    return t.from_functional()


def _sync(t):
    """Brings a functional tensor up to date, if its base has changed. RuntimeError for another tensor."""
    _from_functional_tensor(t)


def _freeze_functional_tensor(t):
    """From now on writing to a functional tensor, or to a view of its storage, is an error. RuntimeError for another tensor."""
    _from_functional_tensor(t)
    t._storage.frozen = True
