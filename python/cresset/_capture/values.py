"""What the evaluator computes with.

Lists, tuples, dicts and slices made by the code are Python's own, of values; everything else is one of these.
"""

__all__ = ["Bound", "Closure", "Known", "Results", "Scope", "SizeVar", "Sizes", "Super", "TensorVar"]


class Known:
    """An object as it is. `path`: where the guards find it, None for constants that the code itself makes."""

    __slots__ = ("obj", "path")

    def __init__(self, obj, path=None):
        self.obj, self.path = obj, path

    def __repr__(self):
        return f"Known({self.obj!r})"


class TensorVar:
    """A tensor of the graph, with the one that it is in this call. `path` for inputs; `held`: is it a parameter or buffer of a module?

    dims: its sizes in the guards' words, where they are known (`shapes`).
    """

    __slots__ = ("node", "value", "path", "held", "dims")

    def __init__(self, node, value, path=None):
        self.node, self.value, self.path, self.held, self.dims = node, value, path, False, None


class SizeVar:
    """A number computed of sizes. `guard`: the same of the inputs in the guards' words, None where that is not known."""

    __slots__ = ("node", "value", "guard")

    def __init__(self, node, value, guard):
        self.node, self.value, self.guard = node, value, guard


class Sizes(tuple):
    """A tensor's shape."""

    __slots__ = ()


class Results(tuple):
    """The results of an operator that have names. `kind` is their type."""

    kind = None


class Scope:
    """The variables of a function that runs, and where it was defined."""

    __slots__ = ("names", "local", "parent", "function", "path", "filename")

    def __init__(self, local, parent, function, path, filename):
        self.names = {}
        self.local = local  # names that are this scope's
        self.parent = parent  # of a function that the code itself made
        self.function, self.path = function, path  # whose globals and captured variables are seen
        self.filename = filename


class Closure:
    """A function that the code itself made."""

    __slots__ = ("tree", "scope", "defaults", "kwdefaults", "name")

    def __init__(self, tree, scope, defaults, kwdefaults, name):
        self.tree, self.scope, self.defaults, self.kwdefaults, self.name = tree, scope, defaults, kwdefaults, name


class Bound:
    """A method: a function, or a tensor's operator by name, and whose it is."""

    __slots__ = ("owner", "function")

    def __init__(self, owner, function):
        self.owner, self.function = owner, function


class Super:
    """super() of a method."""

    __slots__ = ("cls", "owner")

    def __init__(self, cls, owner):
        self.cls, self.owner = cls, owner
