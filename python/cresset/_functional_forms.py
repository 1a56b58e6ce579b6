"""Functional forms of operators that write, for graphs without writes: each writes into copies, and gives them behind what the operator itself gives."""

import functools

import cresset

__all__ = []

# What writes, and the rest of a schema whose name has no "_" at its end.
_FORMS = {
    "aten::resize_": "resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
    "aten::resize_as_": "resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor",
    "aten::set_": "set(Tensor self) -> Tensor",
    "aten::set_.source_Tensor": "set.source_Tensor(Tensor self, Tensor source) -> Tensor",
    "aten::embedding_renorm_": "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    "aten::_index_put_impl_":
    "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor",
    "aten::rrelu_with_noise":
    "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
    "Generator? generator=None) -> (Tensor, Tensor noise_out)",
    "aten::_batch_norm_with_update":
    "_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
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
