"""Functional forms of operators that write, for graphs without writes: each writes into copies, and gives them behind what the operator itself gives."""

import functools

import cresset

__all__ = []

# What writes, and the rest of a schema whose name has no "_" at its end.
_FORMS = {
    "aten::set_": "set(Tensor self) -> Tensor",
    "aten::set_.source_Tensor": "set.source_Tensor(Tensor self, Tensor source) -> Tensor",
}  # fmt: skip


def _overload(name):
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(cresset.ops.aten, packet), overload or "default")


@functools.cache
def _writer(name):
    from cresset._subclasses._functional_operators import on_copies

    return functools.partial(on_copies, _overload(name))


def _form(name):
    def functional(*args, **kwargs):
        written, out = _writer(name)(args, kwargs)
        return written[0] if out is None else (*(out if isinstance(out, tuple) else (out,)), *written)

    return functional


_library = cresset.library.Library("aten", "FRAGMENT")
for _name, _schema in _FORMS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _form(_name), "CompositeExplicitAutograd")
