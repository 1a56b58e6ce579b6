"""Walks through nested dictionaries and lists; a path is a tuple of keys (as texts) and places."""

import cresset

__all__ = ["get_element", "set_element", "traverse_state_dict", "traverse_state_dict_v_2_3"]


def _is_tensor(value):
    return isinstance(value, cresset.Tensor) or hasattr(value, "local_shards")


def _holds(value, test, *kinds):
    """Is `test` true, or one of `kinds`, of something within?"""
    if isinstance(value, kinds):
        return True
    if isinstance(value, dict):
        return any(_holds(v, test, *kinds) for v in value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds(v, test, *kinds) for v in value)
    return test(value)


def _walk(state_dict, visitor, into):
    def visit(path, value):
        if isinstance(value, dict) and into(value):
            for key, item in value.items():
                visit((*path, str(key)), item)
        elif isinstance(value, (list, tuple)) and into(value):
            for place, item in enumerate(value):
                visit((*path, place), item)
        else:
            visitor(path, value)

    for key, value in state_dict.items():
        visit((str(key),), value)


def traverse_state_dict(state_dict, visitor, keep_traversing=None):
    """visitor(path, value) for each leaf. Dictionaries are entered, lists and tuples where they hold a tensor or a dictionary at any depth.

    `keep_traversing(value)` decides otherwise. A dictionary without entries has no leaf.
    """
    _walk(state_dict, visitor, keep_traversing or (lambda value: isinstance(value, dict) or _holds(value, _is_tensor, dict)))


def traverse_state_dict_v_2_3(state_dict, visitor, keep_traversing=None):
    """As PyTorch 2.3 and earlier did: dictionaries, too, are entered only where they hold a tensor."""
    _walk(state_dict, visitor, keep_traversing or (lambda value: _holds(value, _is_tensor)))


def set_element(root_dict, path, value):
    """Put a value at a path; dictionaries and lists on the way are made, lists filled with None."""
    current = root_dict
    for key, following in zip(path, path[1:]):
        default = {} if isinstance(following, str) else []
        if isinstance(key, int):
            _extend(current, key)
            if current[key] is None:
                current[key] = default
            current = current[key]
        else:
            current = current.setdefault(key, default)
    if isinstance(path[-1], int):
        _extend(current, path[-1])
    current[path[-1]] = value


def _extend(items, place):
    while len(items) <= place:
        items.append(None)


def get_element(root_dict, path, default_value=None):
    """The value at a path, or the default."""
    current = root_dict
    for key in path:
        if isinstance(key, int):
            if not isinstance(current, list) or len(current) <= key:
                return default_value
        elif not isinstance(current, dict) or key not in current:
            return default_value
        current = current[key]
    return current
