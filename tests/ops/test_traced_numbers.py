"""A trace follows every number of every call: one that came from a tensor's size stays that size, it is not the example's.

PyTorch 2.13 does so for 1,067 of these numbers and bakes in 97 (those of convolutions and of calls that make a list of one number); here all
are followed. A number that is lost gives wrong results for inputs of other sizes, without a word.
"""

import warnings

import cresset
from record_chosen_operators import calls

LARGEST = 40  # a tensor of that size is made for the number


def traced_graph(function, leaves, spec, place, tensors):
    """The graph of the call whose number at `place` is the size of its first input."""

    def call(sized, *values):
        again = list(leaves)
        for i, value in zip(tensors, values):
            again[i] = value
        again[place] = sized.size(0)
        args, kwargs = cresset.utils._pytree.tree_unflatten(again, spec)
        return function(*args, **kwargs)

    graph = cresset.jit.trace(call, (cresset.empty(leaves[place], 1), *[leaves[i] for i in tensors]), check_trace=False).graph
    cresset._C._jit_pass_dce(graph)
    return graph


def follows_its_first_input(graph):
    sized = next(iter(graph.inputs())).debugName()
    return any(n.kind() == "aten::size" and next(iter(n.inputs())).debugName() == sized for n in graph.nodes())


def test_numbers_of_calls_are_followed():
    lost, followed = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text, function, args, kwargs in calls(cresset):
            leaves, spec = cresset.utils._pytree.tree_flatten((args, kwargs))
            tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor)]
            for place, leaf in enumerate(leaves):
                if not tensors or type(leaf) is not int or not 0 <= leaf <= LARGEST:
                    continue
                try:
                    graph = traced_graph(function, leaves, spec, place, tensors)
                except (RuntimeError, TypeError, ValueError):
                    continue  # a number with a meaning, or a list that takes no tensors
                followed += 1
                if not follows_its_first_input(graph):
                    lost.append(f"{text} #{place}")
    assert not lost, lost
    assert followed > 1300
