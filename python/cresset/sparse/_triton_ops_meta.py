"""Parameters of Triton kernels for products with sparse blocks, by device: a table that libraries ask and add to. It is empty at first, since no such
kernel runs here; None means that a kernel chooses for itself."""

import cresset

__all__ = ["get_meta", "minimize", "update"]

_tables = {}  # (operator, device, version): {key: values}


def get_meta(op, key, device_name=None, version=(0, cresset.float16, 0.5), exact=False):
    """The parameters of `update` for an operator and key, as a dict or tuple; None where nothing is known.

    A key with "*" gives {key: parameters} of all that agree at the other places. Without `exact` tables of other devices count as well.
    """
    own = [_tables[place] for place in [(op, device_name, version)] if place in _tables]
    others = [] if exact else [table for (o, _, v), table in _tables.items() if (o, v) == (op, version)]
    for table in own + others:
        if "*" in key:
            found = {k: v for k, v in table.items() if len(k) == len(key) and all(a in ("*", b) for a, b in zip(key, k))}
            if found:
                return found
        elif key in table:
            return table[key]
    return None


def update(op, device_name, version, key, value):
    """Keep the parameters `value` for an operator, device, version and key."""
    _tables.setdefault((op, device_name, version), {})[key] = value


def _neighbours(parameters, step_func, max_step):
    """Parameters that differ at one place, by up to max_step steps."""
    for name in parameters:
        for direction in range(-max_step, max_step + 1):
            value = parameters[name]
            for _ in range(abs(direction)):
                value = step_func(name, value, 1 if direction > 0 else -1, parameters)
            if value != parameters[name]:
                yield name, {**parameters, name: value}


def minimize(target_func, initial_parameters, reference_parameters, step_func, max_step=2, verbose=False, all_values=None):
    """The best parameters that steps at one place at a time lead to: (parameters, gain over the reference in percent, their value, a text).

    step_func(name, value, direction, parameters) gives the next value, or the same one at an end. all_values, a dict, keeps all that were tried.
    """
    known = {} if all_values is None else all_values

    def value_of(parameters):
        key = tuple(parameters[name] for name in sorted(parameters))
        if key not in known:
            known[key] = target_func(parameters)
            if verbose:
                print(f"{parameters}: {known[key]}")
        return known[key]

    reference = value_of(dict(reference_parameters))
    best = dict(initial_parameters)
    while True:
        tried = [(value_of(p), name, p) for name, p in _neighbours(best, step_func, max_step)]
        least = min((value for value, _, _ in tried), default=value_of(best))
        if least >= value_of(best):
            break
        best = next(p for value, _, p in tried if value == least)
    value = value_of(best)
    worse = {}
    for other, name, _ in tried:
        worse[name] = min(worse.get(name, float("inf")), (other - value) / value * 100)
    text = ", ".join(f"{name}: {best[name]} (+{percent:.1f} % next to it)" for name, percent in worse.items())
    return best, (reference - value) / reference * 100, value, text
