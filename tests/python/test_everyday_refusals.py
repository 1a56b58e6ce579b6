"""What everyday parts refuse or warn of: trees, loaders, optimisers, gradcheck. Words and numbers are PyTorch 2.13's."""

import collections
import warnings

import pytest

import cresset
from cresset import nn
from cresset.autograd import gradcheck
from cresset.utils import _pytree as pytree
from cresset.utils.data import DataLoader, IterableDataset, default_collate

Pair = collections.namedtuple("Pair", "p q")
Other = collections.namedtuple("Other", "p q")


class Node:
    def __init__(self, context):
        self.context = context


pytree.register_pytree_node(Node, lambda n: ([1], n.context), lambda children, context: Node(context))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([1, 2], (3, 4), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
        ({"a": 1}, {"b": 4}, "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}."),
        ({"a": 1, "b": 2}, {"a": 4}, "Node arity mismatch; expected 2, but got 1."),
        (Pair(1, 2), Other(1, 2), "but got <class '" + __name__ + ".Other'>."),
        (Node(1), Node(2), "Node context mismatch for custom node type <class '" + __name__ + ".Node'>."),
        (Node(1), 2, "Type mismatch; expected <class '" + __name__ + ".Node'>, but got <class 'int'>."),
    ],
)
def test_trees_of_different_structures(first, second, words):
    with pytest.raises(ValueError) as caught:
        pytree.tree_map(lambda a, b: a, first, second)
    assert words in str(caught.value)


def test_the_length_that_a_deque_may_have_is_no_part_of_its_structure():
    first, second = collections.deque([1], maxlen=3), collections.deque([2], maxlen=4)
    assert pytree.tree_map(lambda a, b: a + b, first, second) == collections.deque([3])


def test_classes_that_are_no_nodes():
    with pytest.raises(ValueError, match="field_names must be specified with a list of all fields"):
        pytree.register_dataclass(int)
    with pytest.raises(TypeError, match="expects `cls` to have a non-default `__eq__` implementation"):
        pytree.register_constant(type("Plain", (), {}))


class Numbers(IterableDataset):
    def __iter__(self):
        return iter(range(9))

    def __len__(self):
        return 3


def test_a_wrong_length_is_told_when_more_batches_come_than_samples_were_promised():
    loader = DataLoader(Numbers(), batch_size=2)
    assert len(loader) == 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert len(list(loader)) == 5
    assert [w.message.args[0].split("was reported to be ")[1][:1] for w in seen] == ["3", "3"]
    assert "but 4 samples have been fetched" in str(seen[0].message)


@pytest.mark.parametrize(("sample", "kind"), [(lambda: cresset.eye(2).to_sparse(), "sparse"), (lambda: cresset.nested.nested_tensor([cresset.ones(1)]), "nested")])
def test_batches_of_what_has_no_rows(sample, kind):
    with pytest.raises(RuntimeError, match=f"Batches of {kind} tensors are not currently supported by the default collate_fn"):
        default_collate([sample(), sample()])


def test_optimisers():
    p = nn.Parameter(cresset.ones(2))
    with pytest.raises(ValueError, match="Invalid learning rate: 0"):
        cresset.optim.SparseAdam([p], lr=0)
    # Without gradients there is nothing to search along: the name is not looked at.
    assert float(cresset.optim.LBFGS([p], line_search_fn="x").step(lambda: (p**2).sum())) == 2.0
    with pytest.raises(ValueError, match="expected 1 min_lrs, got 2"):
        cresset.optim.lr_scheduler.ReduceLROnPlateau(cresset.optim.SGD([p], lr=0.1), min_lr=[1, 2])


def test_gradcheck():
    x = cresset.randn(2, 2, dtype=cresset.double, requires_grad=True)
    for options in ({}, {"fast_mode": True}, {"check_forward_ad": True, "check_backward_ad": False}):
        with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
            gradcheck(lambda v: v.to_sparse(), x, **options)
    with pytest.raises(AssertionError, match="requires check_backward_ad to be True"):
        gradcheck(cresset.sin, x, check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)


def test_arguments_that_a_function_of_autograd_does_not_take():
    class Product(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

    with pytest.raises(TypeError, match=r"Product.forward\(\) missing 1 required positional argument: 'y'"):
        Product.apply(cresset.ones(1))
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        x = cresset.ones(1, requires_grad=True)
        cresset.autograd.grad(x * 2, x, only_inputs=False)


def test_strategies_of_fusion_are_remembered():
    assert cresset.jit.set_fusion_strategy([("STATIC", 3)]) == [("STATIC", 2), ("DYNAMIC", 10)]
    assert cresset.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)]) == [("STATIC", 3)]
    with pytest.raises(ValueError, match="FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: ZZ"):
        cresset.jit.set_fusion_strategy([("ZZ", 1)])
    with pytest.warns(UserWarning, match="Only works in script mode"), cresset.jit.strict_fusion():
        pass


def fused(x):
    with cresset.jit.strict_fusion():
        return x + 1


def test_blocks_that_should_be_fused_are_compiled():
    assert cresset.jit.script(fused)(cresset.ones(1)).tolist() == [2.0]


def test_hooks_of_several_gradients():
    plain, x = cresset.ones(1), cresset.ones(1, requires_grad=True)
    register = cresset.autograd.graph.register_multi_grad_hook
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        register((plain, x), print)
    seen = []
    register((plain, x), seen.append, mode="any")
    (x * 2).backward()
    assert [g.tolist() for g in seen] == [[2.0]]
