"""Finds the plug-in (CRESSET_BACKEND_PATH, or installed) and the samples of the operator table."""

import json
import os
import sys
from pathlib import Path

import cresset
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/ops"))  # op_samples

DEVICE = "opencl"


def unavailable():
    """Why there is no device here, or nothing."""
    try:
        return None if cresset.empty(1, device=DEVICE) is not None else "no device"
    except RuntimeError as error:
        return str(error)


REASON = unavailable()


def pytest_collection_modifyitems(items):
    # CRESSET_REQUIRE_OPENCL: where a device must be there, its absence is a failure and not a skip.
    if REASON and not os.environ.get("CRESSET_REQUIRE_OPENCL"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture
def fallbacks():
    """The names of operators that ran on the CPU since the test began, when called."""
    cresset._C._fallback_reset()
    return lambda: sorted({row[0] for row in cresset._C._fallback_counts()})


def operators_json():
    import op_samples

    return json.loads(op_samples.table_file().read_text())
