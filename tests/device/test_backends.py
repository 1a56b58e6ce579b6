"""The tests of this folder on a device from outside of the tree, in a process of its own: a device stays for good once it is loaded."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_every_file_on_tin(tin):
    files = sorted(f for f in HERE.glob("test_*.py") if f != Path(__file__).resolve())
    environment = os.environ | {"CRESSET_TEST_DEVICES": str(tin), "CRESSET_TESTING_DEVICE_ONLY_FOR": "tin"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files],
                          capture_output=True, text=True, env=environment, cwd=HERE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and " skipped" not in done.stdout.splitlines()[-1]
