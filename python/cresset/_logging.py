"""Loggers of PyTorch's compiler, by the names that libraries ask for. Cresset's own log levels: `CRESSET_LOG`."""

import logging

__all__ = []


def getArtifactLogger(module_qname, artifact_name):
    """A logger for one kind of a module's messages, below the module's own."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")
