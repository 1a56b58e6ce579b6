"""Machines find each other and get numbers, again whenever one comes or goes."""

from .api import (
    RendezvousClosedError, RendezvousConnectionError, RendezvousError, RendezvousGracefulExitError, RendezvousHandler, RendezvousHandlerRegistry,
    RendezvousInfo, RendezvousParameters, RendezvousStateError, RendezvousStoreInfo, RendezvousTimeoutError, rendezvous_handler_registry,
)
from .registry import _register_default_handlers, _register_out_of_tree_handlers

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError", "RendezvousHandler",
    "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]

_register_default_handlers()
_register_out_of_tree_handlers()
