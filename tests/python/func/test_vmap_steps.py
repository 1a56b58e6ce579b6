"""The steps of vmap are functions of `_functorch.vmap`, and packages with containers of tensors replace them."""

import cresset
from cresset._functorch import vmap as steps


class Pair:
    """No pytree: only replaced steps know what is in it."""

    def __init__(self, a, b):
        self.a, self.b = a, b


def test_replaced_steps_run(monkeypatch):
    def process(in_dims, args, func):
        (pair,) = args
        return pair.a.shape[0], [0], [pair], None

    def create(dims, leaves, level, spec):
        return (Pair(*(steps._add_batch_dim(t, 0, level) for t in (leaves[0].a, leaves[0].b))),)

    def unwrap(outputs, out_dims, level, batch_size, func):
        return Pair(*(steps._maybe_remove_batch_dim(steps._get_name(func), t, level, batch_size, 0) for t in (outputs.a, outputs.b)))

    monkeypatch.setattr(steps, "_process_batched_inputs", process)
    monkeypatch.setattr(steps, "_create_batched_inputs", create)
    monkeypatch.setattr(steps, "_unwrap_batched", unwrap)
    made = cresset.vmap(lambda p: Pair(p.a @ p.b, p.a + 1))(Pair(cresset.ones(3, 2), cresset.ones(3, 2)))
    assert made.a.tolist() == [2, 2, 2] and made.b.shape == (3, 2)


def test_dimensions_spread_over_a_tree():
    spec = cresset.utils._pytree.tree_structure({"a": 1, "b": [2, 3]})
    assert steps._broadcast_to_and_flatten({"a": 0, "b": None}, spec) == [0, None, None]
    assert steps._broadcast_to_and_flatten((0,), spec) is None


def test_a_level_works_where_its_key_is_excluded():
    key = cresset._C.DispatchKey.FuncTorchBatched
    with cresset._C._ExcludeDispatchKeyGuard(cresset._C.DispatchKeySet(key)):
        assert cresset.vmap(lambda x: x.sum(0))(cresset.ones(2, 3)).tolist() == [3, 3]
        assert cresset.vmap(cresset.vmap(lambda x: x * 2))(cresset.ones(2, 3)).sum() == 12
        assert cresset._C._dispatch_tls_local_exclude_set().has(key)
    assert not cresset._C._dispatch_tls_local_exclude_set().has(key)
