"""The node object of a custom Function keeps its node while a program has the object, and goes back to the node afterwards."""

import gc
import weakref

import cresset


class Scaled(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x, keep=None):
        ctx.save_for_backward(x)
        ctx.factor = 2
        if keep is not None:
            keep.append(ctx)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * ctx.factor, None


def leaf():
    return cresset.ones(3, requires_grad=True)


def test_the_object_keeps_the_node():
    x = leaf()
    node = Scaled.apply(x).grad_fn  # the output is gone
    assert node.saved_tensors[0] is x and node.factor == 2 and node.next_functions[0][0].variable is x and node.name() == "ScaledBackward"


def test_a_context_that_forward_kept_keeps_the_node():
    x, kept = leaf(), []
    Scaled.apply(x, kept)
    assert kept[0].saved_tensors[0] is x and kept[0].next_functions[0][0].variable is x


def test_it_is_one_object_and_attributes_stay():
    y = Scaled.apply(leaf())
    first = id(y.grad_fn)
    y.grad_fn.note = 7
    for _ in range(3):  # shown and gone again
        assert y.grad_fn.note == 7 and id(y.grad_fn) == first
    z = y * 3
    seen = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert z.grad_fn.next_functions[0][0] is seen() and seen().note == 7
    z.sum().backward()
    del z
    assert seen() is None


def test_nothing_is_left_without_the_collector():
    gc.disable()
    try:
        x = leaf()
        y = Scaled.apply(x)
        node, saved = y.grad_fn, weakref.ref(y.grad_fn)
        del y
        assert saved() is node
        del node
        assert saved() is None
        y = Scaled.apply(x)
        node = y.grad_fn
        del node
        saved = weakref.ref(y.grad_fn)
        del y
        assert saved() is None
    finally:
        gc.enable()


def test_the_collector_finds_cycles_through_it():
    def make(tie):
        y = Scaled.apply(leaf())
        tie(y, y.grad_fn)
        return weakref.ref(y.grad_fn), weakref.ref(y)

    def attribute(y, node):
        node.me, node.output = node, y

    def hook(y, node):
        node.register_hook(lambda *_: node)

    def of_tensor(y, node):
        y.node, node.output = node, y

    for tie in (attribute, hook, of_tensor):
        made = make(tie)
        gc.collect()
        assert [r() for r in made] == [None, None], tie.__name__


def test_the_object_goes_during_backward():
    class Drops(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            held.clear()
            del ctx
            gc.collect()
            return g * 2

    x = leaf()
    y = Drops.apply(x)
    held = [y.grad_fn]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    (cresset.utils.checkpoint.checkpoint(lambda t: Scaled.apply(t), x, use_reentrant=False)).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]
