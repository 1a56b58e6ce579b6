"""Names of the script compiler that libraries import from here."""

from cresset import _C
from cresset.jit import Final, _overload, _overload_method, export, fork, ignore, is_scripting, unused, wait  # noqa: F401
from cresset.jit._classes import qualified_name as _qualified_name  # noqa: F401

Future = _C.Future
