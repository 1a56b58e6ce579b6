"""`torch.ops.profiler._record_function_enter`, its newer name and `_record_function_exit`: a range as two operators, for programs that put it into graphs."""

import itertools

import cresset

from .. import _C

_numbers = itertools.count(1)
_open = {}  # {what the tensor given out holds: the range}


def _enter(name, args=None):
    number = next(_numbers)
    _open[number] = _C._profiler_begin(name, args or "")
    return cresset.tensor([number])


def _leave(handle):
    record = _open.pop(int(handle), None)
    if record is None:
        raise RuntimeError("_record_function_exit: a handle from _record_function_enter that was not given back yet was required.")
    _C._profiler_end(record)


_library = cresset.library.Library("profiler", "DEF")
_library.define("_record_function_enter(str name, str? args=None) -> Tensor")
_library.define("_record_function_enter_new(str name, str? args=None) -> Tensor")  # PyTorch's handle is an object there
_library.define("_record_function_exit(Tensor handle) -> ()")
_library.impl("_record_function_enter", _enter, "CompositeExplicitAutograd")
_library.impl("_record_function_enter_new", _enter, "CompositeExplicitAutograd")
_library.impl("_record_function_exit", _leave, "CompositeExplicitAutograd")
for _name in ("_record_function_enter", "_record_function_enter_new", "_record_function_exit"):
    # Not operators of the profile: the range begins in the one and ends in the other, so it would be inside of neither.
    _library.impl(_name, cresset.library.fallthrough_kernel, "PreDispatch")
