"""Operators that write expanded tensors all the same, with PyTorch's warning; set_ under a graph that is alive; isclose of storage types."""

import cresset as torch
import pytest


@pytest.mark.parametrize("values", [torch.tensor([1.0, 2.0, 3.0]), torch.tensor(5.0)])
def test_index_put(values):
    x = torch.zeros(1).expand(6)
    with pytest.warns(UserWarning, match="Use of index_put_ on expanded tensors is deprecated. Please clone"):
        x.index_put_((torch.tensor([2, 1, 0]),), values)
    assert x[0].item() == values.flatten()[-1].item()


def test_masks_write_only_what_they_name():
    for size in (6, 5000):
        x = torch.zeros(1).expand(size)
        mask = torch.zeros(size, dtype=torch.bool)
        mask[0] = True  # the elements behind it must not write the old value back
        with pytest.warns(UserWarning, match="on expanded tensors"):
            x[mask] = torch.tensor(3.0)
        assert x[0].item() == 3


def test_index_fill():
    x = torch.zeros(2, 1).expand(2, 3)
    with pytest.warns(UserWarning, match="Use of index_fill_ on expanded tensors is deprecated"):
        x.index_fill_(1, torch.tensor([2]), 7)
    assert x.tolist() == [[7] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element"):
        x.index_add_(1, torch.tensor([0]), torch.ones(2, 1))


def test_set_gives_new_graphs_a_new_accumulator():
    p = torch.nn.Parameter(torch.ones(4))
    seen, alive = [], []
    p.register_post_accumulate_grad_hook(lambda t: seen.append(tuple(t.grad.shape)))
    for _ in range(2):
        with torch.no_grad():
            p.set_(p[1:])
            p.grad = None
        alive.append(torch.cat((p, p)))
        alive[-1].sum().backward()
        assert p.grad.tolist() == [2] * len(p)
    assert seen == [(3,), (2,)]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_isclose_without_tolerance(dtype):
    x = torch.tensor([1.0, 2.0, float("nan")]).to(dtype)
    y = torch.tensor([1.0, 3.0, float("nan")]).to(dtype)
    assert torch.isclose(x, y, rtol=0, atol=0).tolist() == [True, False, False]
    assert torch.isclose(x, y, rtol=0, atol=0, equal_nan=True).tolist() == [True, False, True]
    with pytest.raises(NotImplementedError):
        torch.isclose(x, y)
