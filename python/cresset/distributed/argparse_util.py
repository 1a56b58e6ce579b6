"""Actions of argparse whose arguments may come from the environment."""

import os
from argparse import Action

__all__ = ["check_env", "env"]


def _variable(dest):
    return f"PET_{dest.upper()}"


class env(Action):  # noqa: N801  PyTorch's name
    """An argument `--foo VALUE` that the variable PET_FOO gives where the command line does not; without both, its default. For flags: check_env."""

    def __init__(self, dest, default=None, required=False, **kwargs):
        default = os.environ.get(_variable(dest), default)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class check_env(Action):  # noqa: N801  PyTorch's name
    """A flag `--foo` that a number other than 0 in the variable PET_FOO sets too. ValueError for a variable that is no number."""

    def __init__(self, dest, default=False, **kwargs):
        value = os.environ.get(_variable(dest), "1" if default else "0")
        super().__init__(dest=dest, const=True, default=bool(int(value)), nargs=0, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)
