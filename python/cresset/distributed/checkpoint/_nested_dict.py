"""State dictionaries as flat ones, and back: names are paths joined by dots."""

from . import _version
from ._traverse import set_element, traverse_state_dict, traverse_state_dict_v_2_3

__all__ = ["FLATTEN_MAPPING", "flatten_state_dict", "unflatten_state_dict"]

FLATTEN_MAPPING = dict


def flatten_state_dict(state_dict, *, like_2_3=None):
    """(flat dictionary, name -> path). ValueError where two paths have one name."""
    flat, paths = {}, {}

    def visit(path, value):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    old = _version._act_like_version == "2_3" if like_2_3 is None else like_2_3
    (traverse_state_dict_v_2_3 if old else traverse_state_dict)(state_dict, visit)
    return flat, paths


def unflatten_state_dict(state_dict, mapping):
    """The nested dictionary of a flat one and its paths."""
    nested = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
