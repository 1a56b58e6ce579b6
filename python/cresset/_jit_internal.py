"""Names of the script compiler that libraries import from here."""

import inspect
import warnings

from cresset import _C
from cresset._script_forms import BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4, boolean_dispatch, boolean_dispatched  # noqa: F401
from cresset.jit import Final, _overload, _overload_method, export, fork, ignore, is_scripting, unused, wait  # noqa: F401
from cresset.jit._classes import qualified_name as _qualified_name  # noqa: F401
from cresset.jit._source import closure_names, frame_names

Future = _C.Future


def get_callable_argument_names(fn):
    """Names of the parameters that may be given by place and by name; none of a callable without a signature."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def _callback(lookup):
    def find(name):
        try:
            return lookup(name)
        except KeyError:
            return None

    return find


def createResolutionCallbackFromFrame(frames_up=0):
    """A function that gives the object of a name as the caller of who calls this sees it (`frames_up` further out), or None."""
    return _callback(frame_names(frames_up))


def createResolutionCallbackFromClosure(fn):
    """A function that gives the object of a name as the body of `fn` sees it, or None."""
    return _callback(closure_names(fn))


def check_empty_containers(obj):
    """Warn for an empty list, tuple or dict: what it would contain is not known."""
    if isinstance(obj, (list, tuple, dict)) and not obj:
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] would become list and "
            "therefore falsely return True for List[float] or List[str].",
            stacklevel=3,
        )


def _copy_to_script_wrapper(fn):
    """Decorator: a method that objects of scripted modules have too, as it is."""
    fn._torchscript_modifier = "copy_to_script_wrapper"
    return fn
