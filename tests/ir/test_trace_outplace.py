"""Traces with _force_outplace: operators that write are recorded as those that give a new tensor, as PyTorch records them."""

import warnings

import pytest

import cresset
from cresset import arange, empty, jit, nn, tensor, zeros

X = arange(12.0).view(3, 4) + 0.5

# (name, function, the operator that is recorded, does the trace give what the function gives)
RECORDED = [
    ("add_", lambda x: (x + 1).add_(x), "aten::add(", True),
    ("on the input", lambda x: x.add_(1), "aten::add(", True),
    ("relu_", lambda x: cresset.relu_(x - 3), "aten::relu(", True),
    ("t_", lambda x: (x + 1).t_(), "aten::t(", True),
    ("unsqueeze_", lambda x: (x + 1).unsqueeze_(0), "aten::unsqueeze(", True),
    ("detach_", lambda x: (x + 1).detach_(), "aten::detach(", True),
    ("masked_fill_", lambda x: (x + 1).masked_fill_(x > 4, 2.0), "aten::masked_fill(", True),
    ("fill_", lambda x: empty(x.shape).fill_(7), "aten::full_like(", True),
    ("zero_", lambda x: empty(x.shape).zero_(), "aten::zeros_like(", True),
    ("copy_", lambda x: zeros(x.size()).copy_(x), "aten::expand_as(", True),
    ("copy_ of a row", lambda x: zeros(x.size()).copy_(x[0]), "aten::expand_as(", True),
    ("copy_ to another dtype", lambda x: zeros(x.size(), dtype=cresset.int64).copy_(x), "aten::type_as(", True),
    ("out=", lambda x: cresset.add(x, x, out=empty(3, 4)), "aten::add(", True),
    ("out= with a dimension", lambda x: cresset.cumsum(x, 1, out=empty(3, 4)), "aten::cumsum(", True),
    ("index_put_", lambda x: (x + 1).index_put_((tensor([0]),), x[1]), "aten::index_put(", True),
    ("resize_", lambda x: (x + 1).resize_(2, 2), "aten::resize(", True),
    ("an assignment to an element", lambda x: _assigned(x, (0, 1), 4), "aten::copy_(", True),
    ("an assignment to a part", lambda x: _assigned(x, 0, 4), "aten::fill_(", True),
    ("an assignment of a row", lambda x: _assigned(x, 0, x[1]), "aten::copy_(", True),
    ("an assignment by indices", lambda x: _assigned(x, tensor([0, 2]), x[1]), "aten::index_put(", True),
    ("through a view", lambda x: _through_view(x), None, False),
]  # fmt: skip


def _assigned(x, index, value):
    y = x + 1
    y[index] = value
    return y


def _through_view(x):
    y = x + 1
    y.view(-1).add_(5)
    return y


@pytest.mark.filterwarnings("ignore::cresset.jit.TracerWarning")
@pytest.mark.parametrize("function, recorded, equal", [c[1:] for c in RECORDED], ids=[c[0] for c in RECORDED])
def test_recorded(function, recorded, equal):
    traced = jit.trace(function, X.clone(), _force_outplace=True, check_trace=False)
    assert recorded is None or recorded in str(traced.graph)
    again = X + 2
    assert traced(again.clone()).equal(function(again.clone())) == equal


def test_a_new_tensor_for_the_written_one():
    """Every later use sees the new value, under all names of the tensor; the input keeps its values."""

    def function(x):
        y = x * 2
        z = y
        y += 1
        return y, z

    traced = jit.trace(function, X.clone(), _force_outplace=True)
    for a, b in zip(traced(X), function(X)):
        assert a.equal(b)
    given = X.clone()
    jit.trace(lambda x: x.add_(1), X.clone(), _force_outplace=True, check_trace=False)(given)
    assert given.equal(X)


def test_writes_that_other_views_do_not_see_warn():
    with pytest.warns(jit.TracerWarning, match="There are 2 live references to the data region being modified when tracing in-place operator add_. "):
        jit.trace(_through_view, X.clone(), _force_outplace=True, check_trace=False)
    with pytest.warns(jit.TracerWarning, match=r"copy_ \(possibly due to an assignment\). This might cause the trace to be incorrect"):
        jit.trace(lambda x: _assigned(x, 0, x[1]), X.clone(), _force_outplace=True, check_trace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit.trace(lambda x: (x + 1).add_(x), X.clone(), _force_outplace=True)


def test_random_twins():
    traced = jit.trace(lambda x: (x + 1).bernoulli_(0.5), X.clone(), _force_outplace=True, check_trace=False)
    assert "aten::bernoulli(" in str(traced.graph)
    assert set(traced(X).unique().tolist()) <= {0.0, 1.0}


def test_modules_and_flat_graphs():
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
    for m in (jit.trace(module, X, _force_outplace=True), jit.trace_module(module, {"forward": X}, _force_outplace=True)):
        assert "aten::relu(" in str(m.inlined_graph) and "aten::relu_(" not in str(m.inlined_graph)
        assert m(X).equal(module(X))
    assert "aten::relu_(" in str(jit.trace(module, X).inlined_graph)
    graph, _ = jit._get_trace_graph(module, X, _force_outplace=True)
    assert "aten::relu(" in str(graph)


def test_detach_is_always_recorded_as_a_new_tensor():
    traced = jit.trace(lambda x, w: cresset.matmul(x, w).detach_(), (X, X.T))
    assert "aten::detach(" in str(traced.graph)
    assert traced(X + 1, X.T).equal((X + 1) @ X.T)
