"""`load_url`: the older name of `hub.load_state_dict_from_url`."""

from cresset.hub import load_state_dict_from_url as load_url
from cresset.hub import tqdm  # noqa: F401  where PyTorch has it

__all__ = ["load_url"]
