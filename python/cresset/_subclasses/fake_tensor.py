"""Fake tensors: sizes, strides, dtypes and devices of a program without its values and memory.

A FakeTensor is a wrapper around a meta tensor that reports another device. Every operator on it runs the Meta kernel, so that a
model can be "run" on devices that are not there and with sizes that would not fit.
"""

import contextlib
import importlib
import weakref

import cresset
from cresset import _C
from cresset._library.fake import MissingFake, fake_impls, sizes_from, sizes_given
from cresset._subclasses import unknown_values
from cresset._subclasses.meta_utils import MetaConverter
from cresset._subclasses.real_tensors import MetadataMismatchError, RealRun, inferred
from cresset.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass, no_dispatch
from cresset.utils._pytree import tree_leaves, tree_map, tree_map_only
from cresset.utils.weak import WeakIdKeyDictionary

__all__ = [
    "FakeTensor", "FakeTensorMode", "FakeCopyMode", "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensorDeviceMismatchError",
    "FakeTensorConverter", "MetadataMismatchError", "UnsupportedFakeTensorException", "UnsupportedOperatorException", "is_fake", "maybe_get_fake_mode", "unset_fake_temporarily",
]  # fmt: skip

# Tensors of at most so many elements are carried along as constants, so that item() of a number that the program wrote down works.
CONSTANT_NUMEL_LIMIT = 1


def with_gradient(tensor, wanted=True):
    """The tensor, which requires a gradient where that is wanted: also inside of functional transforms, which refuse the method."""
    if wanted:
        with _C.DisableTorchFunction():
            tensor.requires_grad = True
    return tensor


def _is_tensor_constructor(func):
    """Does an operator make one tensor out of no tensor?"""
    schema = func._schema
    if any("Tensor" in a.type for a in schema.arguments):
        return False
    return len(schema.returns) == 1 and schema.returns[0].type == "Tensor"


def _aten_overloads(keep):
    schemas = (s for s in _C._jit_get_all_schemas() if s.name.startswith("aten::") and keep(s))
    return tuple(getattr(getattr(cresset.ops.aten, s.name[6:]), s.overload_name or "default") for s in schemas)


def __getattr__(name):
    if name == "_like_tensor_constructors":  # operators that make a tensor of the form of another
        return _aten_overloads(lambda schema: schema.name.endswith("_like"))
    if name == "_device_not_kwarg_ops":  # operators with a device among their positional arguments
        return _aten_overloads(lambda schema: any(a.type in ("Device", "Device?") and not a.kwarg_only for a in schema.arguments))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _OperatorError(RuntimeError):
    def __init__(self, func):
        super().__init__(func)
        self.func = func


class DataDependentOutputException(_OperatorError):
    """An operator's result is a number that depends on values: item(), equal."""


class DynamicOutputShapeException(_OperatorError):
    """The size of an operator's result depends on values: nonzero, unique."""


class UnsupportedOperatorException(_OperatorError):
    """An operator has no Meta kernel and cannot be run on zeros in its place."""


class UnsupportedFakeTensorException(RuntimeError):
    """There is no fake of such a tensor."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """The tensors of one operator report different devices."""

    def __init__(self, func, first, second):
        super().__init__(f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!")
        self.func = func


class FakeTensor(cresset.Tensor):
    """A tensor without values: `fake_device` is the device that it reports, `fake_mode` the mode that it belongs to.

    `constant` is a real tensor with its value where the program itself wrote the value down, else None; `real_tensor` one with the value that it
    would have, in a mode that keeps them (`_functorch.config.fake_tensor_propagate_real_tensors`).
    """

    _has_no_values = True  # for printing
    device = property(lambda self: self.fake_device, doc="The device that it reports, which may be another one later on.")
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, fake_mode, elem, device, constant=None, real_tensor=None):
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        device = cresset.device(device)
        if device.type not in ("cpu", "meta") and device.index is None:
            device = cresset.device(device.type, 0)
        self = cresset.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, device=device,
            requires_grad=elem.requires_grad,
        )  # fmt: skip
        self._elem = elem.detach() if elem.requires_grad else elem
        self.fake_mode, self.fake_device, self.constant, self.real_tensor = fake_mode, device, constant, real_tensor
        return self

    @staticmethod
    def from_tensor(t, fake_mode):
        """The fake of a real tensor."""
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        # No mode is active: the tensors' own mode does what it would do.
        mode = next(t.fake_mode for t in tree_leaves((args, kwargs or {})) if isinstance(t, FakeTensor))
        return mode.dispatch(func, types, args, kwargs or {})

    def untyped_storage(self):
        """The storage, which has a size and no bytes."""
        return cresset.UntypedStorage._of(self._elem)

    def storage(self):
        """The same with elements of the tensor's type."""
        return cresset.storage.TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)

    _typed_storage = storage

    def tolist(self):
        """The nested list of the elements, which a fake tensor has only where there are none: DataDependentOutputException otherwise."""
        return [part.tolist() for part in self] if self.dim() else self.item()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
            with no_dispatch(), cresset.no_grad():  # a mode that is active takes the tensor inside for one that is not fake
                copy = memo[id(self)] = self.fake_mode._wrap(self._elem.clone(), self.fake_device)
                copy.real_tensor = None if self.real_tensor is None else self.real_tensor.clone()
            with_gradient(copy, self.requires_grad)
        return memo[id(self)]


def is_fake(x):
    """Is x a FakeTensor?"""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t):
    """The mode of a fake tensor, or of the first one in a tuple or list; None when there is none."""
    for leaf in tree_leaves(t):
        if isinstance(leaf, FakeTensor):
            return leaf.fake_mode
    return None


def _written(func, args, kwargs):
    """The fake tensors that a call writes to."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            yield from (t for t in tree_leaves(value) if isinstance(t, FakeTensor))


def _is_index(func):
    return func._schema.name in ("aten::index", "aten::index_put", "aten::index_put_", "aten::_unsafe_index", "aten::_unsafe_index_put")


def active_mode():
    """The innermost FakeTensorMode that is active, or None."""
    modes = (_C._get_dispatch_stack_at(i) for i in reversed(range(_C._len_torch_dispatch_stack())))
    return next((mode for mode in modes if isinstance(mode, FakeTensorMode)), None)


def _sparse():
    return importlib.import_module("cresset._subclasses.fake_sparse")  # which stands on this module


def _is_sparse(kind):
    return kind.__module__ == "cresset.sparse._tensor"


def _speaks_first(kind):
    """Does a class wrap tensors? It is asked before the mode, which then sees what it wraps."""
    return not issubclass(kind, FakeTensor) and not _is_sparse(kind) and kind.__torch_dispatch__ is not cresset.Tensor.__torch_dispatch__


class FakeTensorMode(TorchDispatchMode):
    """A block in which factory functions give fake tensors; fake tensors follow their mode outside of the block too.

    from_tensor(t) gives the fake of a real tensor, always the same one. Real tensors among the arguments of an operator are an error
    unless allow_non_fake_inputs; operators of the package without a Meta kernel run on zeros when allow_fallback_kernels.
    Operators whose results depend on values raise DataDependentOutputException or DynamicOutputShapeException: sizes are always numbers.
    """

    def __init__(self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None, static_shapes=None, export=False):
        super().__init__()
        if shape_env is not None:
            from cresset.fx.experimental.symbolic_shapes import ShapeEnv  # with a mode's first environment

            if not isinstance(shape_env, ShapeEnv):
                raise TypeError(f"FakeTensorMode: a ShapeEnv was required; given {type(shape_env).__name__}.")
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.shape_env, self.static_shapes, self.export = shape_env, True, export
        from cresset._functorch import config

        self.allow_meta, self.propagate_real_tensors = config.fake_tensor_allow_meta, config.fake_tensor_propagate_real_tensors
        self._constants = {}  # id → weak reference of the fake tensors that have a constant
        self._loaded = []  # storages of files
        self._entered = []
        self.fake_tensor_converter = FakeTensorConverter(export=export)

    def __enter__(self):
        from cresset.utils._python_dispatch import _get_current_dispatch_mode

        active = _get_current_dispatch_mode() is self
        self._entered.append(not active)
        return self if active else super().__enter__()

    def __exit__(self, *exc_info):
        if self._entered.pop():
            super().__exit__(*exc_info)

    # --- fakes of real tensors

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """The fake of a real tensor: views of one storage stay views of one, parameters stay parameters."""
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def snapshot(self, fake):
        """A fake tensor of the same memory that keeps what the given one is now."""
        if fake.layout is not cresset.strided:
            return type(fake)(self, fake._elem, fake.fake_device)
        with no_dispatch(), cresset.no_grad():
            copy = self._wrap(fake._elem.detach(), fake.fake_device, fake.constant)
        copy.real_tensor = fake.real_tensor
        return with_gradient(copy, fake.requires_grad)

    def _wrap(self, meta, device, constant=None):
        if not self.allow_meta and cresset.device(device).type == "meta":
            raise AssertionError("device.type must not be 'meta' when allow_meta is False")
        fake = FakeTensor(self, meta, device, constant)
        if constant is not None:
            constants, key = self._constants, id(fake)
            constants[key] = weakref.ref(fake, lambda _: constants.pop(key, None))
        return fake

    def over_storage(self, storage, dtype, offset, size, stride):
        """A fake over a storage without data that load has made: it has the storage, and is on the storage's device."""
        with no_dispatch():
            fake = self._wrap(_C._storage_view(storage._anchor, dtype, offset, size, list(stride)), storage._fake_device)
        self._loaded.append(storage)  # has no bytes, and what the file says of it stays with it
        return fake

    # --- operators

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(map(_speaks_first, types)):
            return NotImplemented
        return self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func, types, args=(), kwargs=None):
        """Run one operator, on the real tensors too where the mode keeps them."""
        if not self.propagate_real_tensors:
            return self._on_fakes(func, types, args, kwargs)
        kwargs = dict(kwargs or {})
        run = RealRun(self, func, args, kwargs)
        try:
            results = self._on_fakes(func, types, args, kwargs)
        except (UnsupportedOperatorException, MissingFake):
            if not run.may or self.shape_env is None:
                raise
            run.run()
            results = inferred(self, run)
        else:
            if any(isinstance(t, FakeTensor) for t in tree_leaves(results)) or func.namespace not in ("aten", "prim", "prims", "cresset"):
                run.run()
        run.check(results)
        self._note_real_tensors(run, args, kwargs, results)
        return results

    def _note_real_tensors(self, run, args, kwargs, results):
        fakes = [t for t in tree_leaves(results) if isinstance(t, FakeTensor)]
        found = [t for t in tree_leaves(run.values) if isinstance(t, cresset.Tensor)] if run.known else []
        for at, fake in enumerate(fakes):
            fake.real_tensor = found[at] if len(found) == len(fakes) and found[at].shape == fake.shape else None
        if not run.known:
            for fake in _written(run.func, args, kwargs):
                fake.real_tensor = None

    def _on_fakes(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, cresset.Tensor)]
        if func._schema.name in ("aten::lift_fresh", "aten::lift", "aten::lift_fresh_copy") and not isinstance(args[0], FakeTensor):
            return self._lift(args[0])
        args, kwargs = self._only_fakes(func, args, kwargs, tensors)
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor)]
        if any(t.layout is not cresset.strided for t in tensors):
            return _sparse().run(self, func, args, kwargs, self._result_device(func, args, kwargs, tensors))
        known = self._on_constants(func, args, kwargs, tensors)
        if known is not None:
            return known[0]
        self._forget_constants(func, args, kwargs)
        given = self._given(func, args)
        if given is not None:
            return given
        self._refuse_values(func, args)
        device = self._result_device(func, args, kwargs, tensors)
        # Fake implementations of the user see the tensors and the device as they are.
        own = func.name() in fake_impls and func.has_kernel_for_dispatch_key("Meta")
        if not own and any(a.name == "device" for a in func._schema.arguments) and (kwargs.get("device") is not None or not tensors):
            kwargs["device"] = cresset.device("meta")

        def unknown_size(min, max):
            raise DynamicOutputShapeException(func)

        with contextlib.nullcontext() if sizes_given() else sizes_from(unknown_size):
            if own:
                with self:
                    return fake_impls[func.name()](*args, **kwargs)
            results = self._run(func, args, kwargs)
        return self._wrap_results(results, tensors, device)

    def _lift(self, real):
        constant = real.clone() if real.numel() <= CONSTANT_NUMEL_LIMIT else None
        with no_dispatch():
            return self._wrap(real.to("meta"), real.device, constant)

    def _only_fakes(self, func, args, kwargs, tensors):
        for t in tensors:
            if isinstance(t, FakeTensor) and t.fake_mode is not self:
                raise AssertionError(f"Mixing fake modes NYI x.fake_mode={t.fake_mode!r} vs self={self!r}")
        if all(isinstance(t, FakeTensor) for t in tensors):
            return args, kwargs
        if not self.allow_non_fake_inputs:
            shown = [*(_described(a) for a in args), *(f"{k}={_described(v)}" for k, v in kwargs.items())]
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {func}({', '.join(shown)})"
            )
        return tree_map_only(cresset.Tensor, self.from_tensor, (args, kwargs))

    def _on_constants(self, func, args, kwargs, tensors):
        """A tuple with the result when all values are known, else None."""
        device = kwargs.get("device")
        if device is not None and cresset.device(device).type != "cpu":
            return None
        if not tensors or any(t.constant is None for t in tensors) or cresset.Tag.nondeterministic_seeded in func.tags:
            return None
        with no_dispatch():
            real_args, real_kwargs = tree_map_only(FakeTensor, lambda t: t.constant, (args, kwargs))
            results = func(*real_args, **real_kwargs)
        by_constant = {id(t.constant): t for t in tensors}
        leaves = [t for t in tree_leaves(results) if isinstance(t, cresset.Tensor)]
        if any(t.numel() > CONSTANT_NUMEL_LIMIT or t.device.type == "meta" for t in leaves):
            # A view that is not known may be written, and with it what it looks at.
            if any(a.is_write for a in func._schema.arguments) or any(r.alias for r in func._schema.returns):
                self._forget_memory_of(tensors)
            return None

        if any(r.alias for r in func._schema.returns) and not any(a.is_write for a in func._schema.arguments):
            metas = self._run(func, args, kwargs)  # views of one fake share its storage
            return (tree_map(lambda real, meta: self._wrap(meta, tensors[0].fake_device, real) if isinstance(real, cresset.Tensor) else real, results, metas),)

        def wrap(real):
            fake = by_constant.get(id(real))
            with no_dispatch():
                if fake is None:
                    return self._wrap(real.to("meta"), tensors[0].fake_device, real)
                if fake.shape != real.shape:
                    fake._elem = real.to("meta")
                    _C._take_sizes(fake, real)
                return fake

        return (tree_map_only(cresset.Tensor, wrap, results),)

    def _forget_constants(self, func, args, kwargs):
        """What is written with values that are not known is no constant any more."""
        self._forget_memory_of(_written(func, args, kwargs))

    def _forget_memory_of(self, tensors):
        """These are no constants any more, nor is what shares their memory."""
        memories = {t.constant.untyped_storage()._cdata for t in tensors if t.constant is not None}
        for t in (ref() for ref in list(self._constants.values())) if memories else ():
            if t is not None and t.constant is not None and t.constant.untyped_storage()._cdata in memories:
                t.constant = None

    def _given(self, func, args):
        """What stands for a result that depends on values, where a run gives such numbers; else None."""
        values = unknown_values.active
        if values is None:
            return None
        name = func._schema.name
        if name == "aten::_local_scalar_dense":
            return values.item(args[0])
        if name in ("aten::nonzero", "aten::argwhere"):
            shape, dtype = lambda n: (n, args[0].dim()), cresset.int64
        elif name == "aten::masked_select":
            shape, dtype = lambda n: (n,), args[0].dtype
        elif name == "aten::index" and len(args[1]) == 1 and isinstance(args[1][0], FakeTensor) and args[1][0].dtype is cresset.bool:
            shape, dtype = lambda n: (n, *args[0].shape[args[1][0].dim() :]), args[0].dtype
        else:
            return None
        size = values.size(self._real_count(func, args))
        if size is None:
            return None
        with no_dispatch():
            return self._wrap(cresset.empty(shape(size), dtype=dtype, device="meta"), args[0].fake_device)

    def _real_count(self, func, args):
        """How many elements are chosen in the real tensors, None without such."""
        chooser = args[1] if func._schema.name == "aten::masked_select" else args[1][0] if func._schema.name == "aten::index" else args[0]
        real = chooser.real_tensor
        with no_dispatch():
            return None if real is None else int(cresset.count_nonzero(real))

    def _refuse_values(self, func, args):
        tags = func.tags
        if _is_index(func):
            masks = (cresset.bool, cresset.uint8)
            if func._schema.name.endswith("index") and any(isinstance(t, FakeTensor) and t.dtype in masks for t in args[1]):
                raise DynamicOutputShapeException(cresset.ops.aten.nonzero.default)
            return
        if cresset.Tag.data_dependent_output in tags or func._schema.name == "aten::_local_scalar_dense":
            raise DataDependentOutputException(func)
        if cresset.Tag.dynamic_output_shape in tags:
            raise DynamicOutputShapeException(func)

    def _result_device(self, func, args, kwargs, tensors):
        """The device of the results: the one that is asked for, or the one of the tensors; numbers on the CPU go with any other."""
        given = kwargs.get("device")
        if given is not None:
            return cresset.device(given)
        if not tensors:
            return cresset.device("cpu")
        if func._schema.name in ("aten::copy_", "aten::_copy_from", "aten::set_"):
            return tensors[0].fake_device
        if func._schema.name in ("aten::embedding", "aten::_embedding_bag") and args[0].device.type == "meta":
            return args[0].device  # places in a table without values may lie anywhere
        common, number = None, None
        for place, value in enumerate((*args, *kwargs.values())):
            if _is_index(func) and place == 1:
                continue  # indices may lie on the CPU
            for t in tree_leaves(value):
                if not isinstance(t, FakeTensor):
                    continue
                if t.dim() == 0 and t.fake_device.type == "cpu":
                    number = t.fake_device
                elif common is None:
                    common = t.fake_device
                elif common != t.fake_device:
                    raise FakeTensorDeviceMismatchError(func, common, t.fake_device)
        return common or number or tensors[0].fake_device

    def _run(self, func, args, kwargs):
        with no_dispatch():
            meta_args, meta_kwargs = tree_map_only(FakeTensor, lambda t: t._elem, (args, kwargs))
            try:
                return func(*meta_args, **meta_kwargs)
            except NotImplementedError as error:
                # Writing its arguments is all that it does, and fakes have no values.
                writes = next(_written(func, args, kwargs), None) is not None
                if writes and not func._schema.returns:
                    return None
                if func.namespace not in ("aten", "prim", "cresset") or not self.allow_fallback_kernels or writes:
                    raise UnsupportedOperatorException(func) from error
            # On zeros: what only depends on sizes comes out right.
            zeros = lambda t: cresset.zeros_like(t, device="cpu")  # noqa: E731
            real_args, real_kwargs = tree_map_only(cresset.Tensor, zeros, (meta_args, meta_kwargs))
            if real_kwargs.get("device") is not None:
                real_kwargs["device"] = cresset.device("cpu")
            return tree_map_only(cresset.Tensor, lambda t: t.to("meta"), func(*real_args, **real_kwargs))

    def _wrap_results(self, results, tensors, device):
        inputs = {id(t._elem): t for t in tensors}

        def wrap(meta):
            fake = inputs.get(id(meta))
            if fake is None and not tensors and meta.device.type != "meta":  # made of numbers alone
                return self._wrap(meta.to("meta"), meta.device, meta if meta.numel() <= CONSTANT_NUMEL_LIMIT else None)
            if fake is None:
                return self._wrap(meta, device)
            if fake.shape != meta.shape or fake.stride() != meta.stride():
                with no_dispatch():
                    _C._take_sizes(fake, meta)
            return fake

        with no_dispatch():
            return tree_map_only(cresset.Tensor, wrap, results)


def _described(value):
    if isinstance(value, cresset.Tensor) and not isinstance(value, FakeTensor):
        return f"tensor([...], size={tuple(value.shape)})"
    return repr(value)


class FakeTensorConverter:
    """Makes fakes for a mode: always the same one of the same tensor while both live, and fakes that share memory of tensors that share theirs.

    `tensor_memo` has the fakes by the numbers that `meta_converter.describer` gives real tensors, `meta_converter.storage_memo` their memories.
    """

    def __init__(self, *, copy_data=False, export=False):
        self.copy_data, self.export = copy_data, export
        self.meta_converter = MetaConverter(copy_data=copy_data)
        self._copies = WeakIdKeyDictionary()  # storage → a tensor of bytes with a copy of it, for real_tensor

    tensor_memo = property(lambda self: self.meta_converter.tensor_memo, doc="The fakes of tensors that live.")

    def from_real_tensor(self, fake_mode, t, make_constant=False, shape_env=None, *, source=None, symbolic_context=None, trace=True):
        """The fake of a real tensor in a mode; with make_constant it keeps the real one as its value. Its sizes are numbers, also with a shape_env."""
        if isinstance(t, FakeTensor):
            if t.fake_mode is not fake_mode:
                raise AssertionError("Mixing fake modes NYI")
            return t
        if not isinstance(t, cresset.Tensor):
            raise TypeError(f"from_tensor: a Tensor was required; a {type(t).__name__} was given.")
        fake = self._known(t)
        if fake is None:
            fake = self._convert(fake_mode, t)
            self.meta_converter.set_tensor_memo(t, fake)
        if make_constant:
            fake.constant = t
        return fake

    def from_meta_and_device(self, fake_mode, t, device, pytype=None, dispatch_keys=None):
        """The fake of a meta tensor, on a device. AssertionError for another tensor."""
        if t.device.type != "meta":
            raise AssertionError(f"tensor's device must be `meta`, got {t.device.type} instead")
        fake = self._known(t)
        if fake is None:
            with no_dispatch(), cresset.no_grad():
                fake = fake_mode._wrap(t.detach(), device)
            fake = with_gradient(fake, t.requires_grad)
            self.meta_converter.set_tensor_memo(t, fake)
        return fake

    def _known(self, tensor):
        fake = self.meta_converter.get_tensor_memo(tensor)
        changed = fake is not None and (fake.shape != tensor.shape or fake.layout is cresset.strided and fake.stride() != tensor.stride())
        return None if changed else fake

    def _convert(self, mode, tensor):
        kind = type(tensor)
        if tensor.layout is not cresset.strided:
            return _sparse().fake_of(mode, tensor)
        if is_traceable_wrapper_subclass(tensor):
            return self._convert_parts(mode, tensor)
        if kind is not cresset.Tensor and not isinstance(tensor, cresset.nn.Parameter):
            raise UnsupportedFakeTensorException(f"from_tensor: tensors of the class {kind.__name__} have no fake.")
        with no_dispatch(), cresset.no_grad():
            fake = mode._wrap(self.meta_converter.strided(tensor), tensor.device)
            if mode.propagate_real_tensors:
                fake.real_tensor = self._copy_of(tensor.detach())
        if isinstance(tensor, cresset.nn.Parameter):
            fake = cresset.nn.Parameter(fake, requires_grad=tensor.requires_grad)
        elif tensor.requires_grad:
            with_gradient(fake)
        if tensor.is_leaf and tensor.grad is not None:
            fake.grad = mode.from_tensor(tensor.grad)
        return fake

    def _convert_parts(self, mode, tensor):
        """A wrapper of the same class around the fakes of what it wraps."""
        names, context = tensor.__tensor_flatten__()
        with no_dispatch():
            parts = {name: mode.from_tensor(getattr(tensor, name)) for name in names}
        fake = type(tensor).__tensor_unflatten__(parts, context, tensor.shape, tensor.stride())
        return with_gradient(fake, tensor.requires_grad) if tensor.is_leaf and not fake.requires_grad else fake

    def _copy_of(self, tensor):
        """A tensor with the same values over memory of its own, which copies of views of one storage share."""
        storage = tensor.untyped_storage()
        if storage not in self._copies:
            self._copies[storage] = storage.clone()
        made = cresset.empty(0, dtype=tensor.dtype, device=tensor.device)
        return made.set_(self._copies[storage], tensor.storage_offset(), tensor.size(), tensor.stride())

    __call__ = from_real_tensor


class FakeCopyMode(cresset.overrides.TorchFunctionMode):
    """For a block: deepcopy of real tensors and parameters gives their fakes."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is cresset.Tensor.clone:  # what a Parameter copies itself with
            return func(self.fake_mode.from_tensor(args[0]), **(kwargs or {}))
        if func is cresset.Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def unset_fake_temporarily():
    """For a block: the innermost fake mode is off; gives it, or None."""
    from cresset.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes() as modes:
        yield next((m for m in modes if isinstance(m, FakeTensorMode)), None)
