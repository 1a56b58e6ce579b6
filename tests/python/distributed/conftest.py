"""Pools of ranks, forked once for each test file, whose functions they run. Nothing is collected where the build has no communication between processes."""

import sys
from pathlib import Path

import pytest

import cresset.distributed as dist

sys.path.insert(0, str(Path(__file__).parent))  # for ranks.py
from ranks import Ranks

collect_ignore_glob = [] if dist.is_available() else ["test_*.py"]


def _ranks(size):
    """A fixture of `size` ranks."""

    @pytest.fixture(scope="module")
    def fixture(request):
        ranks = Ranks(size, vars(request.module))
        yield ranks
        ranks.close()

    return fixture


pair, three, four = _ranks(2), _ranks(3), _ranks(4)


@pytest.fixture(scope="module", params=["pair", "three"])
def pool(request):
    """Two ranks, then three."""
    return request.getfixturevalue(request.param)
