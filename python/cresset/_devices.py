"""Device kinds in Python: plug-ins found by name, a module for each kind (`cresset.mychip`), methods (`Tensor.mychip()`)."""

import contextlib
import os
import sys
import types

import cresset

from . import _C

_modules = {}  # name -> the module of a device kind
_generic = set()  # names whose module was made here; a backend's own module may replace it
_entry_points = None  # name -> entry point, read when the first unknown name is asked for


def _offers():
    global _entry_points
    if _entry_points is None:
        from importlib.metadata import entry_points

        _entry_points = {e.name: e for e in entry_points(group="cresset.backends")}
    return _entry_points


def is_device_backend_autoload_enabled():
    """Does TORCH_DEVICE_BACKEND_AUTOLOAD leave load_torch_backends() on, as it does unless it is set to something else than 1?"""
    return os.getenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"


def load_torch_backends():
    """Import what packages offer under PyTorch's entry-point group `torch.backends`, as PyTorch does when it is imported.

    Called by as_torch.install(), since these packages import torch. TORCH_DEVICE_BACKEND_AUTOLOAD=0 leaves them. RuntimeError names the package
    that does not load."""
    if not is_device_backend_autoload_enabled():
        return
    from importlib.metadata import entry_points

    for offer in entry_points(group="torch.backends"):
        try:
            offer.load()()
        except Exception as error:
            raise RuntimeError(
                f"Failed to load the backend extension: {offer.name}. You can disable extension auto-loading with TORCH_DEVICE_BACKEND_AUTOLOAD=0."
            ) from error


def _resolve(name):
    """Asked by the core for an unknown device name: import the package whose entry point has that name."""
    offer = _offers().get(name)
    if offer is None:
        return False
    loaded = offer.load()
    if callable(loaded):
        loaded()
    if name not in _C._registered_backends() and name not in _C._known_device_names().split(", "):
        raise RuntimeError(f"the entry point {offer.value} was imported, but no device {name!r} appeared")
    return True


def module_of(name):
    """The module of a device kind by its name, or None; loads an installed plug-in of that name."""
    if name in _modules:
        return _modules[name]
    if name in _C._registered_backends() or (not name.startswith("_") and name in _offers()):
        _C._device_count(cresset.device(name))  # loads the plug-in, or raises why it cannot
        return _modules.get(name)
    return None


# --- modules -----------------------------------------------------------------------------------------------------------------------


class _Functions:
    """What a device module can do; its bound methods become the module's functions."""

    def __init__(self, name):
        self._name = name

    def _device(self, device=None):
        if device is None:
            return _C._device_current(cresset.device(self._name))
        device = cresset.device(self._name, device) if isinstance(device, int) else cresset.device(device)
        if device.type != self._name:
            raise ValueError(f"Expected a {self._name} device, but got: {device}")
        return _C._device_current(device) if device.index is None else device

    def is_available(self):
        """Whether there is such a device."""
        return self.device_count() > 0

    def is_initialized(self):
        return True

    def init(self):
        """Devices are ready when they are first used."""

    def is_in_bad_fork(self):
        return False

    def device_count(self):
        """How many devices there are."""
        return _C._device_count(cresset.device(self._name))

    def current_device(self):
        """Index of this thread's current device."""
        return _C._device_current(cresset.device(self._name)).index

    def set_device(self, device):
        """Make a device current for this thread; a negative index changes nothing."""
        if isinstance(device, int) and device < 0:
            return
        _C._device_set(self._device(device))

    def synchronize(self, device=None):
        """Wait for all work of a device."""
        _C._device_synchronize(self._device(device))

    def current_stream(self, device=None):
        return cresset.accelerator.current_stream(self._device(device))

    def default_stream(self, device=None):
        device = self._device(device)
        return cresset.Stream(stream_id=0, device_index=device.index, device_type=device.type)

    def set_stream(self, stream):
        if stream is not None:
            cresset.accelerator.set_stream(stream)

    def stream(self, stream):
        """A context in which a stream is current; None changes nothing."""
        return contextlib.nullcontext() if stream is None else stream

    def manual_seed(self, seed):
        """Seed the generator of the current device."""
        _C._default_generator(self._device()).manual_seed(int(seed))

    def manual_seed_all(self, seed):
        """Seed the generators of all devices."""
        for i in range(self.device_count()):
            _C._default_generator(self._device(i)).manual_seed(int(seed))

    def seed(self):
        return _C._default_generator(self._device()).seed()

    def seed_all(self):
        self.manual_seed_all(_C._default_generator(self._device(0)).seed())

    def initial_seed(self):
        return _C._default_generator(self._device()).initial_seed()

    def get_rng_state(self, device=None):
        """State of a device's generator, as bytes in host memory."""
        return _C._default_generator(self._device(device)).get_state()

    def set_rng_state(self, new_state, device=None):
        _C._default_generator(self._device(device)).set_state(new_state)

    def get_rng_state_all(self):
        return [self.get_rng_state(i) for i in range(self.device_count())]

    def set_rng_state_all(self, new_states):
        for i, state in enumerate(new_states):
            self.set_rng_state(state, i)

    def get_device_properties(self, device=None):
        """Name, memory and version of a device as the backend tells them."""
        return types.SimpleNamespace(**_C._device_properties(self._device(device)))

    def get_device_name(self, device=None):
        return _C._device_properties(self._device(device))["name"]

    def memory_allocated(self, device=None):
        return cresset.accelerator.memory_allocated(self._device(device))

    def max_memory_allocated(self, device=None):
        return cresset.accelerator.max_memory_allocated(self._device(device))

    def memory_reserved(self, device=None):
        return cresset.accelerator.memory_reserved(self._device(device))

    def max_memory_reserved(self, device=None):
        return cresset.accelerator.max_memory_reserved(self._device(device))

    def memory_stats(self, device=None):
        return cresset.accelerator.memory_stats(self._device(device))

    def reset_peak_memory_stats(self, device=None):
        cresset.accelerator.reset_peak_memory_stats(self._device(device))

    def mem_get_info(self, device=None):
        return cresset.accelerator.get_memory_info(self._device(device))

    def empty_cache(self):
        _C._device_empty_cache(self._device())

    def memory_snapshot(self, mempool_id=None):
        return cresset.accelerator.memory_snapshot(self._name, mempool_id)

    def set_per_process_memory_fraction(self, fraction, device=None):
        cresset.accelerator.set_per_process_memory_fraction(fraction, self._device(device))

    def get_per_process_memory_fraction(self, device=None):
        return cresset.accelerator.get_per_process_memory_fraction(self._device(device))

    def reset_accumulated_memory_stats(self, device=None):
        cresset.accelerator.reset_accumulated_memory_stats(self._device(device))

    def can_device_access_peer(self, device, peer_device):
        """Whether a device reaches the memory of another directly."""
        return cresset.accelerator.can_device_access_peer(self._device(device), self._device(peer_device))

    def get_device_capability(self, device=None):
        return cresset.accelerator.get_device_capability(self._device(device))

    def is_current_stream_capturing(self):
        """Whether work of the current stream is recorded by a graph."""
        return cresset.accelerator.current_stream(self._device()).is_capturing()

    def get_amp_supported_dtype(self):
        """The types that autocast may compute in."""
        return _C._autocast_dtypes(cresset.device(self._name))


def _make_module(name):
    functions = _Functions(name)
    module = types.ModuleType(f"cresset.{name}", f"The devices of kind {name!r}.")
    for key in dir(functions):
        if not key.startswith("_"):
            setattr(module, key, getattr(functions, key))
    module._is_in_bad_fork = functions.is_in_bad_fork

    class device(contextlib.ContextDecorator):
        """Make a device current inside; the one before comes back, after exceptions too."""

        def __init__(self, device):
            self.idx = -1 if device is None else functions._device(device).index
            self._outer = []

        def __enter__(self):
            self._outer.append(_C._device_exchange(functions._device(self.idx)) if self.idx >= 0 else None)
            return self

        def __exit__(self, *exc_info):
            before = self._outer.pop()
            if before is not None:
                _C._device_restore(before)

    class device_of(device):
        """Make the device of a tensor current inside."""

        def __init__(self, obj):
            super().__init__(obj.device if obj.device.type == name else None)

    class Stream(cresset.Stream):
        __doc__ = cresset.Stream.__doc__

        def __new__(cls, device=None, priority=0, **kwargs):
            self = super().__new__(cls, functions._device(device) if not kwargs else None, priority, **kwargs)
            lowest, highest = _C._stream_priorities(self.device)
            self.priority = min(max(int(priority), highest), lowest)
            return self

        @staticmethod
        def priority_range():
            """(lowest, highest) priority; smaller numbers go first."""
            return tuple(_C._stream_priorities(functions._device()))

    class ExternalStream(Stream):
        """A queue that another library made, by the address of the driver's object; that library keeps it alive."""

        def __new__(cls, stream_ptr, device=None):
            device = functions._device(device)
            return super().__new__(cls, stream_id=_C._stream_of_native(device, int(stream_ptr)), device_index=device.index, device_type=device.type)

    class Event(cresset.Event):
        __doc__ = cresset.Event.__doc__

        def __init__(self, enable_timing=False, blocking=False, interprocess=False):
            super().__init__(functions._device(), enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    module.device, module.device_of, module.Stream, module.Event = device, device_of, Stream, Event
    module.ExternalStream = ExternalStream
    return module


def _put(name, module):
    _modules[name] = module
    setattr(cresset, name, module)
    sys.modules[f"cresset.{name}"] = module


def _appeared(name):
    """Called by the core for each new backend."""
    if name not in _modules:
        _generic.add(name)
        _put(name, _make_module(name))
    generate_methods(name, once=False)


def register_device_module(device_type, module):
    """Make a module the one of a device kind, `cresset.<device_type>`. RuntimeError for unknown kinds and a second module."""
    device_type = cresset.device(device_type).type
    if hasattr(cresset, device_type) and device_type not in _generic:
        raise RuntimeError(f"The runtime module of '{device_type}' has already been registered with '{getattr(cresset, device_type)}'")
    _generic.discard(device_type)
    _put(device_type, module)


def get_device_module(device=None):
    """The module of a device type: cresset.cpu, cresset.mychip, …; by default that of the accelerator. RuntimeError when there is none."""
    kind = cresset.device((_C._accelerator_type() or "cpu") if device is None else device).type
    module = _modules.get(kind) or getattr(cresset, kind, None)
    if module is None:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'cresset.{kind}'. Register one with _register_device_module."
        )
    return module


# --- methods -----------------------------------------------------------------------------------------------------------------------


def _device_argument(name, device):
    """The device that `tensor.mychip(device)` means."""
    if device is None:
        return cresset.device(name) if not _C._device_count(cresset.device(name)) else _C._device_current(cresset.device(name))
    if isinstance(device, int):
        return cresset.device(name, device)
    device = cresset.device(device)
    if device.type != name:
        raise RuntimeError(f"Invalid device, must be {name} device")
    return device


def _tensor_methods(name):
    def is_on(self):
        return self.device.type == name

    def to_device(self, device=None, non_blocking=False, **kwargs):
        return self.to(device=_device_argument(name, device), non_blocking=non_blocking, **kwargs)

    return is_on, to_device


def _named(function, owner, name, doc):
    function.__name__, function.__qualname__, function.__doc__ = name, f"{owner.__name__}.{name}", doc
    return function


def _install(owner, name, once, is_on, to_device):
    for key, value in ((f"is_{name}", property(_named(is_on, owner, f"is_{name}", f"Whether it is on a {name} device."))),
                       (name, _named(to_device, owner, name, f"The same on a {name} device, by default the current one."))):  # fmt: skip
        if hasattr(owner, key):
            if once:
                raise RuntimeError(f"The custom device module of {owner} has already been registered with {key}")
            continue
        setattr(owner, key, value)


def generate_methods(name, *, for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=False, unsupported_dtype=None, once=True):
    """Give Tensor, nn.Module, PackedSequence and storages `is_<name>` and `<name>()`. With `once`, RuntimeError where one exists."""
    if for_tensor:
        _install(cresset.Tensor, name, once, *_tensor_methods(name))
    if for_storage:
        from .storage import TypedStorage, UntypedStorage

        def storage_is_on(self):
            return self.device.type == name

        def storage_to(self, device=None, non_blocking=False):
            if unsupported_dtype and getattr(self, "dtype", None) in unsupported_dtype:
                raise RuntimeError(f"Cannot store {self.dtype} on {name}: the backend says that this type is not supported.")
            return self.to(device=_device_argument(name, device))

        for owner in (UntypedStorage, TypedStorage):
            _install(owner, name, once, storage_is_on, storage_to)
    if for_module or for_packed_sequence:
        _later.append((name, for_module, for_packed_sequence, once))
        if "cresset.nn.modules.module" in sys.modules:
            install_module_methods()


_later = []  # what waits until cresset.nn is imported


def install_module_methods():
    """Give nn.Module and PackedSequence the methods that were asked for so far."""
    if not _later:
        return
    from .nn.modules.module import Module
    from .nn.utils.rnn import PackedSequence

    while _later:
        name, for_module, for_packed, once = _later.pop(0)

        def module_to(self, device=None, _name=name):
            return self._apply(lambda t: t.to(_device_argument(_name, device)))

        if for_module and (once or not hasattr(Module, name)):
            if hasattr(Module, name):
                raise RuntimeError(f"Can not automatically generate {name}() method for Module. Because {name} already exists.")
            setattr(Module, name, _named(module_to, Module, name, f"Move parameters and buffers to a {name} device."))
        if for_packed:
            is_on = lambda self, _name=name: self.data.device.type == _name  # noqa: E731
            to_device = lambda self, *args, _name=name, **kwargs: self.to(_device_argument(_name, kwargs.pop("device", None) or (args[0] if args else None)))  # noqa: E731
            _install(PackedSequence, name, once and not hasattr(PackedSequence, name), is_on, to_device)


def rename_privateuse1_backend(backend_name):
    """Name the device kind PrivateUse1, once in a process: device strings, methods and modules use the name from then on."""
    if not isinstance(backend_name, str):
        raise RuntimeError(f"_rename_privateuse1_backend expects a str, but got {type(backend_name).__name__}")
    _C._rename_privateuse1_backend(backend_name)


def generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=False, unsupported_dtype=None):
    """Give Tensor, nn.Module, PackedSequence and storages the methods of PrivateUse1's name; RuntimeError the second time."""
    generate_methods(
        _C._get_privateuse1_backend_name(), for_tensor=for_tensor, for_module=for_module, for_packed_sequence=for_packed_sequence,
        for_storage=for_storage, unsupported_dtype=unsupported_dtype,
    )  # fmt: skip


def _on_first_use(name):
    def method(self, *args):
        from .utils import _device

        return getattr(_device, name)(self, *args)

    return method


# The core's registry of devices asks and tells Python. Device objects are contexts and decorators.
_C._add_device_resolver(_resolve)
_C._set_backend_listener(_appeared)
_C.device.__enter__, _C.device.__exit__, _C.device.__call__ = map(_on_first_use, ("enter", "leave", "decorate"))
