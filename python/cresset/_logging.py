"""Loggers of PyTorch's compiler, by the names that libraries ask for. Cresset's own log levels: `CRESSET_LOG`."""

import logging

__all__ = []


def logger_of(module_qname):
    """The logger of a module of the library, by PyTorch's name of the module: programs listen to `torch` and what is below it."""
    return logging.getLogger(module_qname.replace("cresset", "torch", 1))


def getArtifactLogger(module_qname, artifact_name):
    """A logger for one kind of a module's messages, below the module's own."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")
