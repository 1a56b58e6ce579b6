"""Custom operators with Tag.inplace or Tag.out: they return what they write, and so have a fake kernel without being given one."""

import inspect

import cresset
from cresset import _C
from cresset._tags import name_of
from cresset.utils import _pytree as pytree

__all__ = ["Tagged", "way_of", "with_results"]

_below = _C._dispatch_keyset_full_after(_C.DispatchKey.AutogradOther)


def way_of(tags):
    """ "inplace" or "out" where the tags have it, otherwise None."""
    found = {name_of(tag) for tag in tags} & {"inplace", "out"}
    if len(found) == 2:
        raise AssertionError("torch.Tag.inplace and torch.Tag.out are mutually exclusive")
    return found.pop() if found else None


def _arguments(schema):
    """(name, type, keyword only, alias or "") of the arguments, (type, alias) of the results."""
    parsed = _C._schema_parts("_::_" + schema)
    return [(a[0], a[1], a[4], a[6] if a[5] else "") for a in parsed[2]], [(r[1], r[3] if r[2] else "") for r in parsed[3]]


def with_results(schema, fn, way, mutates_args):
    """The inferred schema with results that are the arguments written to. ValueError where the function does not fit the tag."""

    def require(holds, what):
        if not holds:
            raise ValueError(f"infer_schema(func): torch.Tag.{way} {what}. Got func with signature {inspect.signature(fn)})")

    arguments, results = _arguments(schema)
    if way == "inplace":
        positional = [a for a in arguments if not a[2]]
        require(positional, "requires a positional Tensor argument")
        name, kind = positional[0][:2]
        require(kind == "Tensor", "requires the first positional argument to be a Tensor")
        given = mutates_args if isinstance(mutates_args, str) else tuple(sorted(mutates_args))
        require(given == (name,), f"requires mutates_args to contain exactly the first positional argument, got {given}")
        require([r[0] for r in results] == ["Tensor"], "requires the return annotation to be torch.Tensor")
        written = positional[:1]
    else:
        written = [a for a in arguments if a[3]]
        require(all(a[2] for a in written), "requires mutable arguments to be keyword-only")
        require(all(a[1] == "Tensor" for a in written), "only supports mutable keyword-only Tensor arguments")
        require(written, "requires at least one mutable keyword-only Tensor argument")
        names = tuple(a[0] for a in written)
        require([r[0] for r in results] == ["Tensor"] * len(written), f"requires the return annotation to match the mutable keyword-only Tensor arguments {names}")
    made = [f"Tensor({a[3]}!)" for a in written]
    return f"{schema.rpartition(' -> ')[0]} -> {made[0] if len(made) == 1 else '(' + ', '.join(made) + ')'}"


def check_given(schema, name, way):
    """ValueError where a schema that was written does not fit the tag."""

    def require(holds, what):
        if not holds:
            raise ValueError(f"{what}. Got: {name}{schema}")

    tagged = f"chema tagged with torch.Tag.{way}"
    arguments, results = _arguments(schema)
    if way == "inplace":
        first = next((a for a in arguments if not a[2]), None)
        require(first and first[3], f"S{tagged} requires the first positional argument to be mutable (e.g., Tensor(a!))")
        more = [a[0] for a in arguments if a[3] and a is not first]
        require(not more, f"S{tagged} must only mutate the first positional argument. Found additional mutable args: {more}")
        require(len(results) == 1, f"S{tagged} must return exactly one value (the first argument). Got {len(results)} returns")
        require(results[0][1] == first[3], f"S{tagged} must return the first mutable argument (return must alias the first argument)")
        return
    written = [a for a in arguments if a[3]]
    require(written, f"S{tagged} must have at least one mutable argument")
    wrong = [a[0] for a in written if not a[2]]
    require(not wrong, f"S{tagged} requires all mutable arguments to be keyword-only (after the *). Found mutable positional args: {wrong}")
    wrong = [a[0] for a in written if a[1] != "Tensor"]
    require(not wrong, f"S{tagged} only supports Tensor mutable arguments. Found unsupported mutable args: {wrong}")
    require(len(results) == len(written), f"S{tagged} must return all mutable arguments (got {len(written)} mutable args but {len(results)} returns)")
    for i, (a, result) in enumerate(zip(written, results)):
        require(result[1] == a[3], f"Return {i} of s{tagged} must alias mutable arg '{a[0]}'")


class Tagged:
    """What an operator with one of the tags returns."""

    def __init__(self, way, overload):
        self.way, self.name, self.overload = way, overload.name(), overload
        self.written = [a.name for a in overload._schema.arguments if a.is_write]

    def results(self, *args, **kwargs):
        """The arguments that are written to: one alone, or a tuple."""
        if self.way == "inplace":
            return args[0] if args else kwargs[self.written[0]]
        made = tuple(kwargs[name] for name in self.written)
        return made[0] if len(made) == 1 else made

    def kernel(self, function):
        """The function, which has to return just those; they count as written to even where others than this package wrote."""

        def kernel(*args, **kwargs):
            expected, made = self.results(*args, **kwargs), function(*args, **kwargs)
            whole = expected if isinstance(expected, tuple) else (expected,)
            given = tuple(made) if isinstance(made, (tuple, list)) else (made,)
            if len(whole) != len(given) or any(a is not b for a, b in zip(whole, given)):
                what = "its first argument" if self.way == "inplace" else "its mutable keyword-only arguments"
                raise RuntimeError(f"{self.name}: An operator tagged with torch.Tag.{self.way} must return {what}.")
            for tensor in whole:
                cresset.autograd.graph.increment_version(tensor)
            return expected

        return kernel

    def refuse_gradients(self, keys, *args, **kwargs):
        """The kernel for Autograd of out= operators."""
        if cresset.is_grad_enabled() and any(isinstance(x, cresset.Tensor) and x.requires_grad for x in pytree.tree_leaves((args, kwargs))):
            name = self.name.partition("::")[2]
            raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
        return self.overload.redispatch(keys & _below, *args, **kwargs)
