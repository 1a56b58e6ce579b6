"""May a schema take the place of an older one? What `FunctionSchema.is_backward_compatible_with` and `check_forward_compatible_with` say."""

__all__ = ["backward_compatible", "forward_incompatibility"]


def _fits(given, wanted):
    """Is every value of type `given` one of type `wanted`?"""
    return given == wanted or given + "?" == wanted


def _parts(schema):
    """(arguments without those for results, arguments for results)"""
    return [a for a in schema.arguments if not a.is_out], [a for a in schema.arguments if a.is_out]


def _same_frame(new, old):
    """Name, number of results, and whether any more arguments are taken."""
    return (new.name, new.overload_name, len(new.returns), new.is_vararg) == (old.name, old.overload_name, len(old.returns), old.is_vararg)


def _default(argument):
    return (argument.has_default_value(), argument.default_value)


def _takes_older(new, old):
    """Does a call that was written for the older argument work with the newer?"""
    return (new.name == old.name and _fits(old.type, new.type) and new.alias_info == old.alias_info and not (new.kwarg_only and not old.kwarg_only)
            and (not old.has_default_value() or _default(new) == _default(old)))  # fmt: skip


def backward_compatible(new, old):
    """Do calls and programs that were made for `old` work with `new`?"""
    if not _same_frame(new, old):
        return False
    if any(a.name != b.name or not _fits(a.type, b.type) for a, b in zip(new.returns, old.returns)):
        return False
    (plain, outs), (old_plain, old_outs) = _parts(new), _parts(old)
    if len(plain) < len(old_plain) or len(outs) < len(old_outs):
        return False
    pairs = [*zip(plain, old_plain), *zip(outs, old_outs)]
    return all(_takes_older(a, b) for a, b in pairs) and all(a.has_default_value() for a in plain[len(old_plain) :])


def forward_incompatibility(new, old):
    """Why a program that was made for `new` may not work where `old` is what there is; "" when nothing speaks against it."""
    if not _same_frame(new, old):
        return "Function schema should have the same name, results and kind of arguments"
    (plain, outs), (old_plain, old_outs) = _parts(new), _parts(old)
    if len(outs) != len(old_outs):
        return "Function schema should have the same number of out arguments"
    for a, b in [*zip(plain, old_plain), *zip(outs, old_outs), *zip(new.returns, old.returns)]:
        if (a.name, a.type, a.alias_info, a.kwarg_only, _default(a)) != (b.name, b.type, b.alias_info, b.kwarg_only, _default(b)):
            return f"'{a.name}' is not forward compatible with the older version of the schema"
    for a in old_plain[len(plain) :]:
        if not a.has_default_value():
            return f"Function schema is not forward compatible since the older argument '{a.name}' has no default value."
    for a in plain[len(old_plain) :]:
        where = f"Function schema is not forward compatible since the new argument '{a.name}' of type {a.type.str()}"
        if not a.has_default_value():
            return f"{where} did not provide a default value."
        if a.type.endswith("]"):
            return f"{where} has a container type as its default value."
    return ""
