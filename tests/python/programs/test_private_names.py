"""Private names of PyTorch that packages build on: keys of devices that are not here, operators without a public function."""

import re

import pytest

import cresset as torch


def test_operators_of_a_library_in_python():
    """torchvision registers shapes and autocast rules for every device's key, of devices that are not here too."""
    library = torch.library.Library("idioms", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    for key in ("AutocastCPU", "AutocastCUDA", "AutocastXPU"):
        library.impl("twice", lambda x: torch.ops.idioms.twice(x.float()), key)
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastXPU)
    assert keys.has(torch._C.DispatchKey.AutocastCPU) and keys.has(torch._C.DispatchKey.AutocastXPU) and torch._C.DispatchKey.SparseCPU.name == "SparseCPU"
    assert torch.ops.idioms.twice(torch.ones(2)).tolist() == [2, 2]


def test_rows_of_sparse_matrices():
    """Graph libraries keep beginnings of rows beside row numbers, and tensors that stand for them override private operators."""
    rows, columns = torch.tensor([0, 0, 2, 3, 3]), torch.tensor([1, 4, 0, 2, 3])
    begins = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert begins.tolist() == [0, 2, 2, 3, 5, 5] and begins.dtype == torch.int64
    assert torch._convert_indices_from_csr_to_coo(begins, columns).tolist() == [rows.tolist(), columns.tolist()]
    small = torch._convert_indices_from_csr_to_coo(begins, columns, out_int32=True, transpose=True)
    assert small.dtype == torch.int32 and small[0].tolist() == columns.tolist()
    assert torch._convert_indices_from_coo_to_csr(rows[:0], 2, out_int32=True).dtype == torch.int32
    assert re.match(r"aten::_pin_memory\(Tensor self, Device\? device=None\) -> Tensor", str(torch.ops.aten._pin_memory.default._schema))
    assert torch.ops.aten.is_pinned.default(rows) is False and torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch._is_all_true(rows > -1).item() and not torch._is_any_true(rows < 0).item()
    with pytest.raises(RuntimeError, match="bool"):
        torch._is_all_true(rows)
