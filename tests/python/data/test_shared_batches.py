"""In a worker process batches are made where the program's process can see them."""

import cresset as torch
import pytest
from cresset.utils.data import DataLoader, default_collate
from cresset.utils.data._utils import worker


@pytest.fixture
def in_worker(monkeypatch):
    monkeypatch.setattr(worker, "_worker_info", "a worker")


def test_outside_of_workers():
    assert not default_collate([torch.zeros(3)]).is_shared()


def test_in_a_worker(in_worker):
    x = torch.arange(6.0).view(3, 2)
    batch = default_collate(list(x))
    assert batch.is_shared() and batch.equal(x)
    nested = default_collate([{"a": row, "b": 1} for row in x])
    assert nested["a"].is_shared() and nested["a"].equal(x)


def test_what_cannot_be_written_there_is_stacked_all_the_same(in_worker):
    assert default_collate([torch.ones(2, requires_grad=True)] * 2).requires_grad
    assert default_collate([torch.ones(2), torch.ones(2, dtype=torch.float64)]).dtype is torch.float64
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.ones(2), torch.ones(3)])


def test_loaders_give_the_same():
    x = torch.arange(40.0).view(10, 4)
    assert torch.cat(list(DataLoader(x, batch_size=3, num_workers=2))).equal(x)
