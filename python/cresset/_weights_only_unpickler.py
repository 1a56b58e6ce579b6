"""The unpickler of load(weights_only=True): a machine for the few instructions that checkpoints need, which calls nothing but what is listed.

A global of the pickle is looked up in a table by name; nothing is imported for it. The functions of the table cannot run code of the file,
load a library or ask for more memory than the file has bytes; where PyTorch's function could, a stricter one is called in its place.
"""

import codecs
import functools
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from pickle import UnpicklingError

import cresset
import cresset._tensor
import cresset._utils

__all__ = ["Unpickler", "get_globals_in_pkl", "load"]

_blocklisted_modules = ["sys", "os", "posix", "nt"]
_user_globals = []


def _add_safe_globals(safe_globals):
    _user_globals.extend(entry for entry in safe_globals if entry not in _user_globals)


def _get_safe_globals():
    return list(_user_globals)


def _clear_safe_globals():
    _user_globals.clear()


def _remove_safe_globals(globals_to_remove):
    for entry in globals_to_remove:
        if entry in _user_globals:
            _user_globals.remove(entry)


class _safe_globals:
    def __init__(self, safe_globals):
        self.safe_globals = list(safe_globals)

    def __enter__(self):
        self._added = [entry for entry in self.safe_globals if entry not in _user_globals]
        _add_safe_globals(self._added)

    def __exit__(self, *error):
        _remove_safe_globals(self._added)


def _public(module, name):
    from cresset.serialization._names import public_name

    return ".".join(public_name(module, name))


def _get_user_allowed_globals():
    """Full name -> what the user has called safe."""
    found = {}
    for entry in _user_globals:
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}")
            if not isinstance(entry[1], str):
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
            found[_public(*entry[1].rpartition(".")[::2])] = entry[0]
        else:
            found[_public(entry.__module__, entry.__qualname__)] = entry
    return found


# What is called in place of a function that would trust its arguments ---------------------------------------------------


def _encode(text, encoding="latin1"):
    if encoding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise UnpicklingError(f"Trying to encode with {encoding!r}; latin1, utf-8 or ascii were expected")
    return codecs.encode(text, encoding)


def _bytearray(*args):
    if args and not isinstance(args[0], (bytes, str)):
        raise UnpicklingError("Trying to call reduce for bytearray with something else than bytes")
    return bytearray(*args)


def _device(kind, index=None):
    from cresset.serialization._locations import known_device

    name = str(kind) if index is None else f"{kind}:{index}"
    device = known_device(name)
    if device is None:
        raise RuntimeError(
            f"load: the file mentions the device {name!r}, which is not here. Name it once (torch.device) so that its plug-in is loaded; "
            "a file does not load it."
        )
    return device


def _no_arguments(kind):
    def make(*args):
        if args:
            raise UnpicklingError(f"Trying to call reduce for {kind.__name__} with arguments")
        return kind()

    return make


def _nested(value, limit=200):
    """Refuses tuples whose hash would take too long or too deep a stack; a tuple may hold another one many times."""
    depth, level = 0, [value]
    while level:
        level = [part for item in level for part in item if type(part) is tuple]
        depth += 1
        if depth > limit or len(level) > 100_000:
            raise UnpicklingError("A key of a dictionary or an element of a set is too large")


def _check_key(key):
    if type(key) is tuple:
        _nested(key)


def _keys(kind):
    def make(*args):
        for arg in args:
            for key in arg:
                _check_key(key)
        return kind(*args)

    return make


def _ordered(*args):
    for arg in args:
        for pair in arg.items() if isinstance(arg, dict) else arg:
            _check_key(pair[0])
    return OrderedDict(*args)


def _from_type(func, new_type, args, state):
    if func not in _rebuilders() and func not in _get_user_allowed_globals().values():
        raise UnpicklingError(f"Trying to call reduce for unrecognized function {func}")
    return cresset._tensor._rebuild_from_type_v2(func, new_type, args, state)


@functools.cache
def _rebuilders():
    return frozenset(getattr(cresset._utils, name) for name in _REBUILD)


def _checked(function):
    """The function to call for a listed one."""
    return _stricter().get(function, function) if _is_plain(function) else function


def _is_plain(function):
    try:
        hash(function)
    except TypeError:
        return False
    return True


@functools.cache
def _stricter():
    table = {codecs.encode: _encode, bytearray: _bytearray, cresset.device: _device, set: _keys(set), Counter: _keys(Counter)}
    table |= {OrderedDict: _ordered, cresset._tensor._rebuild_from_type_v2: _from_type}
    storage = cresset.storage
    for kind in (cresset.Tensor, *_tensor_types(), storage.UntypedStorage, storage.TypedStorage, *storage._classes.values()):
        table[kind] = _no_arguments(kind)
    return table


def _tensor_types():
    from cresset import _legacy

    return _legacy.types().values()


@functools.cache
def _get_allowed_globals():
    """Full name -> what every file may name."""
    from cresset import _jit_pickle, _quantized_types, _tensor, _utils, storage
    from cresset.serialization._names import _get_layout

    found = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "torch.nn.parameter.Parameter": cresset.nn.Parameter,
        "torch.serialization._get_layout": _get_layout, "torch.Size": cresset.Size, "torch.Tensor": cresset.Tensor,
        "torch.device": cresset.device, "_codecs.encode": codecs.encode, "builtins.bytearray": bytearray, "builtins.set": set,
        "builtins.complex": complex, "torch._tensor._rebuild_from_type_v2": _tensor._rebuild_from_type_v2,
        "torch.storage.UntypedStorage": storage.UntypedStorage, "torch.storage.TypedStorage": storage.TypedStorage,
    }  # fmt: skip
    for value in vars(cresset._C).values():
        if isinstance(value, cresset.dtype):
            found["torch." + str(value).rpartition(".")[2]] = value
    for name in _quantized_types.__all__:
        value = getattr(_quantized_types, name)
        if not isinstance(value, type):
            found["torch." + name] = value
    for name, kind in storage._classes.items():
        found["torch." + name] = kind
    for kind in _tensor_types():
        found[_public(kind.__module__, kind.__qualname__)] = kind
    for name in _REBUILD:
        found["torch._utils." + name] = getattr(_utils, name)
    for name in _jit_pickle.__all__:
        found["torch.jit._pickle." + name] = getattr(_jit_pickle, name)
    return found


_REBUILD = (
    "_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_sparse_tensor", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3",
    "_rebuild_meta_tensor_no_storage", "_rebuild_wrapper_subclass", "_rebuild_device_tensor_from_cpu_tensor", "_rebuild_device_tensor_from_numpy",
    "_rebuild_jagged_tensor", "_rebuild_qtensor", "_rebuild_nested_tensor",
)  # fmt: skip


def _current_globals():
    """The names of the pickle's protocol, Python 2's and Cresset's, as the tables have them."""
    return _get_allowed_globals(), _get_user_allowed_globals()


def _full_name(module, name, protocol):
    if protocol < 3:
        if (module, name) in NAME_MAPPING:
            module, name = NAME_MAPPING[module, name]
        elif module in IMPORT_MAPPING:
            module = IMPORT_MAPPING[module]
    return _public(module, name), module


# The machine ------------------------------------------------------------------------------------------------------------

_MARK = object()


class Unpickler:
    """One pickle at the position of a file; `load()` gives its object."""

    def __init__(self, file, *, encoding="bytes", errors="strict"):
        self.encoding, self.errors = encoding, errors
        self._read, self._readline = file.read, file.readline
        self.memo, self.stack, self.proto = {}, [], 2
        self._allowed, self._user = _current_globals()
        self._callable = {id(value) for value in (*self._allowed.values(), *self._user.values())}
        self._user_ids = {id(value) for value in self._user.values()}

    def persistent_load(self, pid):
        raise UnpicklingError("unsupported persistent id encountered")

    def load(self):
        try:
            while True:
                code = self._take(1)[0]
                step = _STEPS.get(code)
                if step is None:
                    raise UnpicklingError(f"Unsupported operand {code}")
                if step(self) is _STOP:
                    break
            return self.stack.pop()
        except (IndexError, KeyError, struct.error, RecursionError, MemoryError, OverflowError, UnicodeDecodeError) as error:
            if isinstance(error, UnicodeDecodeError) and self.encoding not in ("bytes", "utf-8"):
                raise  # what the caller has asked for
            raise self._damaged(error) from None

    @staticmethod
    def _damaged(error):
        from cresset.serialization._errors import damaged

        return damaged(f"its pickle is damaged ({type(error).__name__}: {error})")

    def _take(self, n):
        """n bytes, asked for in parts: a length that the file does not have asks for no memory."""
        parts = []
        left = n
        while left:
            part = self._read(min(left, 1 << 20))
            if not part:
                raise self._damaged(EOFError("it ends too early"))
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _line(self):
        line = self._readline()
        if not line.endswith(b"\n"):
            raise self._damaged(EOFError("it ends too early"))
        return line[:-1].decode("utf-8")

    def _number(self, form):
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _since_mark(self):
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                items = self.stack[at + 1 :]
                del self.stack[at:]
                return items
        raise self._damaged(IndexError("an instruction has no mark"))

    # Instructions

    def _proto(self):
        self.proto = self._take(1)[0]
        if self.proto != 2:
            import warnings

            warnings.warn(
                f"Detected pickle protocol {self.proto} in the checkpoint, which was not the default pickle protocol used by `torch.load` (2). The "
                "weights_only Unpickler might not support all instructions implemented by this protocol, please file an issue for adding support if "
                "you encounter this.",
                stacklevel=6,
            )

    def _global(self):
        module, name = self._line(), self._line()
        full, mapped = _full_name(module, name, self.proto)
        if mapped.split(".")[0] in _blocklisted_modules:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {mapped}.{name} whose module {mapped} is blocked.")
        if full in self._allowed:
            self.stack.append(self._allowed[full])
        elif full in self._user:
            self.stack.append(self._user[full])
        else:
            shown = full.removeprefix("builtins.")
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{shown}])` or the `torch.serialization.safe_globals([{shown}])` context manager to allowlist "
                "this global if you trust this class/function."
            )

    def _newobj(self):
        args, cls = self.stack.pop(), self.stack.pop()
        if not isinstance(args, tuple):
            raise self._damaged(TypeError("NEWOBJ without a tuple"))
        if id(cls) in self._user_ids and isinstance(cls, type):
            self.stack.append(cls.__new__(cls, *args))
        elif cls is OrderedDict:
            self.stack.append(self._call(OrderedDict.__new__, (cls, *args)))
        elif cls is cresset.nn.Parameter:
            self.stack.append(self._call(cls, args))
        else:
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` "
                f"but got {cls}"
            )

    def _call(self, function, args):
        try:
            return function(*args)
        except (TypeError, ValueError, AttributeError, AssertionError, ArithmeticError) as error:
            raise self._damaged(error) from None

    def _reduce(self):
        args, function = self.stack.pop(), self.stack[-1]
        if id(function) not in self._callable:
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function}")
        if not isinstance(args, tuple):
            raise self._damaged(TypeError("REDUCE without a tuple"))
        own = id(function) in self._user_ids
        self.stack[-1] = function(*args) if own else self._call(_checked(function), args)

    def _build(self):
        state, target = self.stack.pop(), self.stack[-1]
        kind = type(target)
        if kind is cresset.Tensor:
            self._call(target.__setstate__, (state,))
        elif kind is cresset.nn.Parameter or kind is OrderedDict:
            if not isinstance(state, dict):
                raise self._damaged(TypeError("BUILD without a dictionary"))
            target.__dict__.update(state)
        elif id(kind) in self._user_ids:
            if getattr(target, "__setstate__", None) is not None:
                target.__setstate__(state)
            else:
                cresset._utils._set_obj_state(target, state)
        else:
            raise UnpicklingError(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {kind}"
            )

    def _list(self):
        target = self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        return target

    def _append(self):
        item = self.stack.pop()
        self._list().append(item)

    def _appends(self):
        items = self._since_mark()
        self._list().extend(items)

    def _set(self, pairs, what):
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(f"Can only {what} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}")
        for key, value in pairs:
            _check_key(key)
            try:
                target[key] = value
            except TypeError as error:
                raise self._damaged(error) from None

    def _setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        self._set([(key, value)], "SETITEM")

    def _setitems(self):
        items = self._since_mark()
        if len(items) % 2:
            raise self._damaged(IndexError("SETITEMS without pairs"))
        self._set(zip(items[::2], items[1::2], strict=True), "SETITEMS")

    def _pop(self, n):
        if n > len(self.stack):
            raise self._damaged(IndexError("pop from empty stack"))
        items = tuple(self.stack[len(self.stack) - n :])
        del self.stack[len(self.stack) - n :]
        return items

    def _string(self):
        data = self._take(self._take(1)[0])
        self.stack.append(data if self.encoding == "bytes" else data.decode(self.encoding, self.errors))

    def _persistent(self):
        self.stack.append(self.persistent_load(self.stack.pop()))

    def _long(self):
        self.stack.append(pickle.decode_long(self._take(self._take(1)[0])))


_STOP = object()


def _push(make):
    return lambda m: m.stack.append(make(m))


def _put(form):
    def step(m):
        m.memo[m._number(form)] = m.stack[-1]

    return step


_STEPS = {
    ord(code): step for code, step in {
        "\x80": Unpickler._proto, "c": Unpickler._global, "\x81": Unpickler._newobj, "R": Unpickler._reduce, "b": Unpickler._build,
        "a": Unpickler._append, "e": Unpickler._appends, "s": Unpickler._setitem, "u": Unpickler._setitems, "Q": Unpickler._persistent,
        "(": _push(lambda m: _MARK), "t": _push(lambda m: tuple(m._since_mark())),
        "\x85": _push(lambda m: m._pop(1)), "\x86": _push(lambda m: m._pop(2)), "\x87": _push(lambda m: m._pop(3)),
        "N": _push(lambda m: None), "\x88": _push(lambda m: True), "\x89": _push(lambda m: False),
        ")": _push(lambda m: ()), "]": _push(lambda m: []), "}": _push(lambda m: {}), "\x8f": _push(lambda m: set()),
        "J": _push(lambda m: m._number("<i")), "K": _push(lambda m: m._number("<B")), "M": _push(lambda m: m._number("<H")),
        "G": _push(lambda m: m._number(">d")), "\x8a": Unpickler._long, "U": Unpickler._string,
        "X": _push(lambda m: m._take(m._number("<I")).decode("utf-8", "surrogatepass")),
        "h": _push(lambda m: m.memo[m._number("<B")]), "j": _push(lambda m: m.memo[m._number("<I")]),
        "q": _put("<B"), "r": _put("<I"), ".": lambda m: _STOP,
    }.items()
}  # fmt: skip


def load(file, *, encoding="utf-8", errors="strict", persistent_load=None):
    """The object of a pickle. UnpicklingError for what it may not name; encoding is that of Python 2's texts."""
    unpickler = Unpickler(file, encoding=encoding, errors=errors)
    if persistent_load is not None:
        unpickler.persistent_load = persistent_load
    return unpickler.load()


def get_globals_in_pkl(file):
    """Full names of the globals that a pickle mentions; nothing of it is run."""
    import pickletools

    found, protocol = set(), 2
    for opcode, arg, _ in pickletools.genops(file):
        if opcode.name == "PROTO":
            protocol = arg
        elif opcode.name == "GLOBAL":
            found.add(_full_name(*arg.split(" ", 1), protocol)[0])
    return found

