"""Scripted modules that export the methods of a container, and masks without dimensions."""

import cresset
from cresset import jit, nn


class Shelf(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])

    def forward(self, x):
        return x

    @jit.export
    def __len__(self) -> int:
        return 7

    @jit.export
    def __getitem__(self, i: int) -> int:
        return i * 2

    @jit.export
    def __contains__(self, i: int) -> bool:
        return i > 3


def test_exported_methods_of_a_container():
    m = jit.script(Shelf())
    assert len(m) == 7 and m[4] == 8 and 5 in m and 2 not in m
    assert len(m.parts) == 3 and bool(m)


def test_a_mask_without_dimensions():
    def put(x, mask):
        x[mask] = 5.0
        return x

    f = jit.script(put)
    assert f(cresset.ones(2), cresset.tensor(False)).tolist() == [1.0, 1.0]
    assert f(cresset.ones(2), cresset.tensor(True)).tolist() == [5.0, 5.0]
