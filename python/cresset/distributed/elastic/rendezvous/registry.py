"""The backends there are: static, c10d, and those that installed packages bring as entry points of the group `torchrun.handlers`."""

from importlib import metadata

from cresset._logging import logger_of

from .api import rendezvous_handler_registry as handler_registry

__all__ = ["get_rendezvous_handler"]

_log = logger_of(__name__)


def _create_static_handler(params):
    from . import static_tcp_rendezvous

    return static_tcp_rendezvous.create_rdzv_handler(params)


def _create_c10d_handler(params):
    from .c10d_rendezvous_backend import create_backend
    from .dynamic_rendezvous import create_handler

    backend, store = create_backend(params)
    return create_handler(store, backend, params)


def _register_default_handlers():
    handler_registry.register("c10d", _create_c10d_handler)
    handler_registry.register("static", _create_static_handler)


def _register_out_of_tree_handlers():
    for entry in metadata.entry_points(group="torchrun.handlers"):
        try:
            handler_registry.register(entry.name, entry.load()())
        except Exception:
            _log.warning("Exception while registering out of tree plugin %s: ", entry.name, exc_info=True)


def get_rendezvous_handler(params):
    """The handler of these parameters. ValueError for an unknown backend."""
    return handler_registry.create_handler(params)
