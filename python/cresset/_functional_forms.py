"""Functional forms of `set_`, for graphs without writes: each writes into a copy, which is its result."""

import cresset

__all__ = []

_FORMS = {"set(Tensor self) -> Tensor": "default", "set.source_Tensor(Tensor self, Tensor source) -> Tensor": "source_Tensor"}


def _form(overload):
    def functional(*args):
        from cresset._subclasses._functional_operators import on_copies

        return on_copies(getattr(cresset.ops.aten.set_, overload), args, {})[0][0]

    return functional


_library = cresset.library.Library("aten", "FRAGMENT")
for _schema, _written in _FORMS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _form(_written), "CompositeExplicitAutograd")
