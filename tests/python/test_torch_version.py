"""TorchVersion compares as versions do."""

import cresset
import pytest
from cresset.torch_version import TorchVersion

ORDER = ["1.0.dev1", "1.0a1.dev1", "1.0a1", "1.0a2", "1.0b1", "1.0rc1", "1.0", "1.0+cpu", "1.0+cu118", "1.0.post1", "1.1", "1.10", "2.0.0a0", "2.0", "1!0.1"]


def test_order():
    for i, a in enumerate(ORDER):
        for j, b in enumerate(ORDER):
            have = (TorchVersion(a) < b, TorchVersion(a) <= b, TorchVersion(a) == b, TorchVersion(a) != b, TorchVersion(a) > b, TorchVersion(a) >= b)
            assert have == (i < j, i <= j, i == j, i != j, i > j, i >= j), (a, b)


def test_tuples_lists_and_strings():
    v = TorchVersion("2.1.0a0+git")
    assert v >= (1, 6) and v < (2, 1) and v > (2,) and v != (2, 1) and v > [2, 0, "0"]
    assert TorchVersion("1.10") == "1.10.0" and TorchVersion("1.10") > "1.9" and TorchVersion("1.10") == (1, 10, 0)
    assert TorchVersion("v1.2-RC.3") == "1.2rc3" and TorchVersion("1.2-3") == "1.2.post3"
    assert isinstance(v, str) and v.split(".")[0] == "2" and v.startswith("2.1")
    assert not TorchVersion("1.10") > "abc"
    assert {TorchVersion("1.10"): 1}[str("1.10")] == 1
    with pytest.raises(TypeError, match="'>' not supported"):
        TorchVersion("1.10") > 3  # noqa: B015


def test_the_version_of_the_package():
    assert type(cresset.__version__) is TorchVersion and cresset.__version__ >= (0, 0)
