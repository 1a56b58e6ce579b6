"""IterDataPipe and MapDataPipe: datasets with a method for each registered step."""

import enum
import functools
import inspect
import pickle

import cresset

from ..dataset import Dataset, IterableDataset
from ..distributed import _get_distributed_settings

__all__ = [
    "DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe", "functional_datapipe", "argument_validation", "runtime_validation", "runtime_validation_disabled",
    "non_deterministic", "guaranteed_datapipes_determinism", "apply_random_seed", "apply_sharding", "apply_shuffle_settings", "traverse",
]  # fmt: skip


class DataChunk(list):
    """A batch: a list that prints as one."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=""):
        """The items in brackets."""
        return indent + "[" + ", ".join(str(i) for i in self) + "]"

    def __iter__(self):
        yield from super().__iter__()

    def raw_iterator(self):
        """The items."""
        yield from self.items


class _Steps:
    """Methods of registered steps, and pickling with hooks."""

    functions = {}
    getstate_hook = reduce_ex_hook = str_hook = repr_hook = None

    def __getattr__(self, name):
        step = type(self).functions.get(name) if not name.startswith("__") else None
        if step is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        bound = functools.partial(step, self)
        functools.update_wrapper(bound, step, assigned=("__doc__",))
        return bound

    @classmethod
    def register_function(cls, function_name, function):
        """Make `function(pipe, …)` the method `pipe.function_name(…)`."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register, enable_df_api_tracing=False):
        """Make a class of pipes a method; Exception when there is one of the name."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __getstate__(self):
        hook = type(self).getstate_hook
        state = {name: value for name, value in self.__dict__.items() if name != "_fast_forward_iterator"}
        return state if hook is None else hook(state)

    def __reduce_ex__(self, *args, **kwargs):
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn):
        """Let `hook_fn(state)` change what is pickled; None takes it away."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = staticmethod(hook_fn) if hook_fn is not None else None

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        """Let `hook_fn(pipe)` reduce pipes for pickles; None takes it away."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = staticmethod(hook_fn) if hook_fn is not None else None

    def __str__(self):
        return str(type(self).__qualname__)

    __repr__ = __str__

    def _loader_shuffle(self, shuffle):
        apply_shuffle_settings(self, shuffle)
        return _share_in_group


def _share_in_group():
    """What a loader, or a worker with its copy of the pipe, does when an iterator begins: takes the share of this process of the default process
    group, and of the worker."""
    return functools.partial(_take_share, *_get_distributed_settings())


def _take_share(processes, rank, pipe, info):
    workers, worker = (info.num_workers, info.id) if info is not None and info.worker_method == "multiprocessing" else (1, 0)
    apply_sharding(pipe, workers * processes, worker * processes + rank)  # the processes first, so that they get equally many


class _SnapshotState(enum.Enum):
    """Restored: the next iterator goes on where the pipe stands, and nothing is reset."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


class IterDataPipe(_Steps, IterableDataset):
    """A stream: subclasses define `__iter__`, or `__next__`, and may define `reset`, which runs when an iterator begins. Only the latest iterator
    is valid."""

    functions = {}
    _valid_iterator_id = 0
    _number_of_samples_yielded = 0  # by the latest iterator
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator = None  # what a restored pipe goes on with

    def __iter__(self):
        return self

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is not None and not getattr(own, "_latest_only", False):
            cls.__iter__ = _latest_only(own)

    def reset(self):
        """Called when an iterator begins."""


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames."""

    def _is_dfpipe(self):
        return True


def _latest_only(begin):
    @functools.wraps(begin)
    def __iter__(self):
        restored = self._snapshot_state == _SnapshotState.Restored
        self._snapshot_state = _SnapshotState.Iterating
        ahead = self.__dict__.pop("_fast_forward_iterator", None)
        if restored and ahead is not None:
            return ahead
        number = self._valid_iterator_id = self._valid_iterator_id + 1
        if not restored:
            self._number_of_samples_yielded = 0
            self.reset()
        made = begin(self)
        if made is self and not hasattr(type(self), "__next__"):
            raise TypeError(f"iter() of '{type(self).__name__}' needs a method __iter__ or __next__")
        return _checked(self, number, made) if inspect.isgenerator(made) else _Iterator(self, number, made)

    __iter__._latest_only = True
    return __iter__


IterDataPipe.__iter__ = _latest_only(IterDataPipe.__iter__)


def _checked(pipe, number, made):
    while True:
        try:
            value = _next(pipe, made)
        except StopIteration:
            return
        _check(pipe, number)
        pipe._number_of_samples_yielded += 1
        yield value
        _check(pipe, number)


class _Iterator:
    """What `__iter__` gave, when it is no generator: the pipe itself, or another's iterator. It is asked for what else it has."""

    def __init__(self, pipe, number, made):
        self._pipe, self._number, self._made = pipe, number, made if hasattr(made, "__next__") else iter(made)

    def __iter__(self):
        return self

    def __next__(self):
        _check(self._pipe, self._number)
        value = _next(self._pipe, self._made)
        self._pipe._number_of_samples_yielded += 1
        return value

    def __getattr__(self, name):
        if name in ("_pipe", "_number", "_made"):
            raise AttributeError(name)
        return getattr(self._made, name)


def _next(pipe, iterator):
    """The next value; while a profiler runs, a row of the profile that names the pipe and how it was made."""
    if not cresset.autograd._profiler_enabled():
        return next(iterator)
    with cresset.autograd.profiler.record_function(_description(pipe)):
        return next(iterator)


def _description(pipe):
    """ "Batcher(batch_size=2, datapipe=IterableWrapper)": the attributes that the parameters of `__init__` became."""

    def short(value):
        if isinstance(value, (_Steps, type(pipe))):
            return type(value).__name__.removesuffix("IterDataPipe")
        if isinstance(value, (tuple, list)) and any(isinstance(v, _Steps) for v in value):
            return "(" + ", ".join(map(short, value)) + ")"
        return value.__name__ if inspect.isfunction(value) else str(value)

    names = sorted(n for n in inspect.signature(type(pipe).__init__).parameters if n in vars(pipe))
    return f"{short(pipe)}({', '.join(f'{n}={short(vars(pipe)[n])}' for n in names)})"


def _check(pipe, number):
    if pipe._valid_iterator_id != number:
        raise RuntimeError(
            f"This iterator has been invalidated because another iterator has been created from the same IterDataPipe: {pipe!r}\n"
            "This may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` if that is necessary."
        )


class MapDataPipe(_Steps, Dataset):
    """Samples by index: subclasses define `__getitem__`, usually `__len__`."""

    functions = {}


class _DataPipeSerializationWrapper:
    """A pipe, pickled by itself, with dill where pickle cannot and dill is installed."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __getstate__(self):
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            try:
                import dill
            except ImportError:
                dill = None
            if dill is None:
                raise
            return dill.dumps(self._datapipe), True

    def __setstate__(self, state):
        value, with_dill = state
        if with_dill:
            import dill as reader
        else:
            reader = pickle
        self._datapipe = reader.loads(value)

    def __len__(self):
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    """A pipe of samples in order."""

    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    """A pipe of samples by index."""

    def __getitem__(self, idx):
        return self._datapipe[idx]


# --- decorators -------------------------------------------------------------------------------------------------------------------


class _Shuffling:
    """A pipe that shuffles: a switch, and a seed for the next pass over `_rng`."""

    _enabled, _seed = True, None

    def set_shuffle(self, shuffle=True):
        """Shuffle, or give the samples in order; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """The seed of the next pass; returns the pipe."""
        self._seed = seed
        return self

    def _seed_pass(self):
        """The seed that was set, or a new one for each pass."""
        if self._seed is None:
            self._seed = int(cresset.empty((), dtype=cresset.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None


class functional_datapipe:
    """A decorator of classes of pipes: the class becomes the method `name` of the others of its kind. TypeError for other classes."""

    def __init__(self, name, enable_df_api_tracing=False):
        self.name = name

    def __call__(self, cls):
        if not (inspect.isclass(cls) and issubclass(cls, (IterDataPipe, MapDataPipe))):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        (IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe).register_datapipe_as_function(self.name, cls)
        return cls


_deterministic = [False]


class guaranteed_datapipes_determinism:
    """A context in which pipes that are not deterministic cannot be made."""

    def __init__(self):
        self._before = _deterministic[0]

    def __enter__(self):
        _deterministic[0] = True

    def __exit__(self, *error):
        _deterministic[0] = self._before


class non_deterministic:
    """A decorator of classes of IterDataPipes: they are not deterministic, or are where the function given says so of their arguments."""

    def __init__(self, arg):
        self._class, self._decide = (arg, None) if inspect.isclass(arg) else (None, arg)
        if self._class is not None and not issubclass(arg, IterDataPipe):
            raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found")

    def __call__(self, *args, **kwargs):
        if self._class is None:
            if not (len(args) == 1 and inspect.isclass(args[0]) and issubclass(args[0], IterDataPipe)):
                raise TypeError("Only `IterDataPipe` can be decorated.")
            self._class = args[0]
            return self._guarded
        self._refuse_if(_deterministic[0])
        return self._class(*args, **kwargs)

    def _guarded(self, *args, **kwargs):
        self._refuse_if(_deterministic[0] and self._decide(*args, **kwargs))
        return self._class(*args, **kwargs)

    def _refuse_if(self, refused):
        if refused:
            raise TypeError(f"{self._class.__name__} is non-deterministic with the inputs. You can turn off 'guaranteed_datapipes_determinism'.")


def argument_validation(f):
    """The function, whose arguments that are annotated with a class of pipes must be pipes of that kind (TypeError)."""
    signature = inspect.signature(f)

    @functools.wraps(f)
    def checked(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            wanted = signature.parameters[name].annotation
            if inspect.isclass(wanted) and issubclass(wanted, (IterDataPipe, MapDataPipe)) and not isinstance(value, wanted):
                raise TypeError(f"Expected argument '{name}' as a {wanted}, but found {type(value)}")
        return f(*args, **kwargs)

    return checked


_validating = [True]


class runtime_validation_disabled:
    """A context in which runtime_validation checks nothing."""

    def __init__(self):
        self._before = _validating[0]

    def __enter__(self):
        _validating[0] = False

    def __exit__(self, *error):
        _validating[0] = self._before


def runtime_validation(f):
    """The method `__iter__`, whose values must be of the type that its annotation `Iterator[type]` names (RuntimeError)."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")
    wanted = getattr(f, "__annotations__", {}).get("return")
    wanted = getattr(wanted, "__args__", (None,))[0]

    @functools.wraps(f)
    def checked(self):
        for value in f(self):
            if _validating[0] and inspect.isclass(wanted) and not isinstance(value, wanted):
                raise RuntimeError(f"Expected an instance as subtype of {wanted}, but found {value}({type(value)})")
            yield value

    return checked


# --- graphs of pipes --------------------------------------------------------------------------------------------------------------------


def _sources(pipe):
    """What a pipe reads from itself."""
    found = []

    def visit(value):
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            found.append(value)
        elif isinstance(value, (list, tuple, set)):
            for inner in value:
                visit(inner)
        elif isinstance(value, dict):
            for inner in value.values():
                visit(inner)

    for name, value in pipe.__dict__.items():
        if name != "_fast_forward_iterator":
            visit(value)
    return found


def traverse(pipe):
    """The pipe and all that it reads from, each once, itself first."""
    found, seen = [], set()

    def visit(pipe):
        if id(pipe) not in seen:
            seen.add(id(pipe))
            found.append(pipe)
            for source in _sources(pipe):
                visit(source)

    visit(pipe)
    return found


class SHARDING_PRIORITIES(enum.IntEnum):
    """Groups of instances that share samples, the outermost first. DEFAULT stands alone."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Let each sharding filter give the samples instance_id, instance_id + num_of_instances, …; returns the pipe. RuntimeError for a filter that
    reads from another one."""
    seen = set()

    def visit(pipe, behind):
        if (id(pipe), behind is None) in seen:
            return
        seen.add((id(pipe), behind is None))
        if hasattr(type(pipe), "apply_sharding"):
            if behind is not None:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                    f"Sharding already applied to {behind} while trying to apply to {pipe}"
                )
            groups = {"sharding_group": sharding_group} if "sharding_group" in inspect.signature(pipe.apply_sharding).parameters else {}
            pipe.apply_sharding(num_of_instances, instance_id, **groups)
            behind = pipe
        for source in _sources(pipe):
            visit(source, behind)

    visit(datapipe, None)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle=None):
    """Switch all shufflers on or off; with True one is warned of when there is none. Returns the pipe."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in traverse(datapipe) if hasattr(type(p), "set_shuffle")]
    if shuffle and not shufflers:
        import warnings

        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`: nothing is shuffled. Add .shuffle() to it.", stacklevel=4)
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Give each pipe with `set_seed` a number drawn from the generator; returns the pipe."""
    import cresset

    for pipe in traverse(datapipe):
        if callable(getattr(type(pipe), "set_seed", None)):
            pipe.set_seed(int(cresset.empty((), dtype=cresset.int64).random_(generator=rng).item()))
    return datapipe
