"""Names of PyTorch that backends of vendors use, by what they do."""

import math
import threading

import pytest

import cresset as torch
from cresset.utils._ordered_set import OrderedSet
from cresset.utils.file_baton import FileBaton


def test_factors_of_scaled_gradients_as_tensors():
    """As PyTorch's documentation of GradScaler has it: back off where a number is not finite, grow after so many good steps."""
    gradients = [torch.tensor([2.0, 4.0]), torch.tensor([8.0], dtype=torch.float64)]
    found = torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.tensor(0.5))
    assert [g.tolist() for g in gradients] == [[1.0, 2.0], [4.0]] and found.item() == 0
    scale, tracker = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32)
    states = []
    for bad in (0.0, 0.0, 1.0, 0.0):
        assert torch._amp_update_scale_(scale, tracker, torch.tensor([bad]), 2.0, 0.5, 2) is scale
        states.append((scale.item(), tracker.item()))
    assert states == [(8.0, 1), (16.0, 0), (8.0, 0), (8.0, 1)]
    largest = torch.tensor(3e38)
    torch._amp_update_scale_(largest, torch.tensor(1, dtype=torch.int32), torch.zeros(1), 2.0, 0.5, 2)
    assert largest.item() == torch.tensor(3e38).item()
    torch._amp_foreach_non_finite_check_and_unscale_([torch.tensor([1.0, math.nan])], found, torch.tensor(1.0))
    assert found.item() == 1
    with pytest.raises(RuntimeError, match="found_inf must be a 1-element tensor."):
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, torch.zeros(2), torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor."):
        torch._amp_update_scale_(scale, torch.zeros(1), found, 2.0, 0.5, 2)


def test_ordered_sets():
    a, b = OrderedSet([3, 1, 2, 1]), OrderedSet([2, 5, 3])
    assert list(a) == [3, 1, 2] and list(reversed(a)) == [2, 1, 3] and repr(a) == "OrderedSet([3, 1, 2])"
    assert list(a | b) == [3, 1, 2, 5] and list(a & b) == [2, 3] and list(a - b) == [1] and list(a.intersection(b)) == [3, 2]
    assert list(a.union([9], [1])) == [3, 1, 2, 9] and list(a.difference(b, [1])) == [] and a == {1, 2, 3} and a.issuperset([1]) and not a.issubset(b)
    a.update(b)
    a.difference_update([3])
    a.add(7)
    a.discard(100)
    assert list(a) == [1, 2, 5, 7] and 7 in a and len(a.copy()) == 4


def test_one_process_at_a_time_holds_a_baton(tmp_path):
    path = str(tmp_path / "lock")
    mine, other = FileBaton(path), FileBaton(path, wait_seconds=0.01, warn_after_seconds=0.02)
    assert mine.try_acquire() and not other.try_acquire()
    threading.Timer(0.15, mine.release).start()
    with pytest.warns(UserWarning, match="Waited on lock file"):
        other.wait()
    assert other.try_acquire()
    other.release()


def test_names_that_lie_elsewhere_here():
    import cresset.autograd
    from cresset.profiler import itt
    from cresset.utils.cpp_extension import get_compiler_abi_compatibility_and_version, get_cxx_compiler

    assert torch._C._GLIBCXX_USE_CXX11_ABI is torch.compiled_with_cxx11_abi()
    assert torch._C._OutOfMemoryError is torch.OutOfMemoryError and torch._C.Tag is torch.Tag
    before = torch._C._get_flash_sdp_enabled()
    torch._C._set_sdp_use_flash(not before)
    assert torch.backends.cuda.flash_sdp_enabled() is not before
    torch._C._set_sdp_use_flash(before)
    flat = torch._C._nn.flatten_dense_tensors(tensors=[torch.ones(2), torch.zeros(1, 1)])
    assert torch._C._nn.conv_depthwise3d(torch.ones(1, 2, 1, 1, 1), torch.ones(2, 1, 1, 1, 1), [1] * 3, None, [1] * 3, [0] * 3, [1] * 3).tolist() == [[[[[1]]], [[[1]]]]]
    assert not hasattr(torch._C._nn, "conv_depthwise4d")
    assert flat.tolist() == [1, 1, 0] and torch._C._nn.unflatten_dense_tensors(flat, [torch.ones(2), torch.zeros(1, 1)])[1].shape == (1, 1)
    assert torch.FloatStorage in torch._storage_classes and cresset.autograd._supported_activities() == torch.profiler.supported_activities()
    assert torch._is_functional_tensor(torch.ones(1)) is False and torch.distributed._remote_device("rank:0/cpu").rank() == 0
    assert torch._utils.is_compiling() is False and torch._library.utils.is_builtin(torch.ops.aten.add.Tensor)
    assert torch._logging.getArtifactLogger("a.b", "graph").name == "a.b.__graph"
    fits, version = get_compiler_abi_compatibility_and_version(get_cxx_compiler())
    assert fits and version >= "9" and get_compiler_abi_compatibility_and_version("no-such-compiler") == (False, "0.0.0")
    assert torch._utils._get_async_or_non_blocking("f", True, {}) is True
    with pytest.raises(TypeError, match=r"f\(\) got an unexpected keyword argument 'other'"):
        torch._utils._get_async_or_non_blocking("f", True, {"other": 1})
    assert not itt.is_available() and torch.optim._muon.Muon is torch.optim.Muon
    with pytest.raises(RuntimeError, match="ITT functions not installed"), itt.range("x"):
        pass
    with pytest.raises(AttributeError, match="no_such_name"):
        torch._C.no_such_name
