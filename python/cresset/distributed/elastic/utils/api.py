"""Variables of the environment, free ports, and words in arguments that stand for ranks."""

import os
import socket
from string import Template

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name):
    """The variable's value. ValueError where it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port():
    """A socket that listens on a free port of this host. RuntimeError where there is none."""
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM):
        made = socket.socket(family, kind, protocol)
        try:
            made.bind(("localhost", 0))
            made.listen(0)
            return made
        except OSError:
            made.close()
    raise RuntimeError("Failed to create a socket")


class macros:
    """`macros.local_rank` in an argument of a program becomes the rank's number on its machine."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args, local_rank):
        """The arguments, texts among them with numbers in the place of words."""
        return [Template(a).safe_substitute(local_rank=local_rank) if isinstance(a, str) else a for a in args]
