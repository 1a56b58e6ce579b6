"""Starts workers and collects what they say."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import libraries

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def environment(side: str) -> dict[str, str]:
    """What a worker finds. On Cresset's side the programs that tests start get it as `torch`, too."""
    paths = [str(ROOT / "python"), str(ROOT / "compat/torch/python")] if side == "cresset" else []
    paths += [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    single = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CRESSET_NUM_THREADS")}
    single["DISTRIBUTED_TESTS_DEFAULT_TIMEOUT"] = "45"  # seconds for the ranks of a test: they say what they wait for before the test counts as hanging
    return {**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}


def run_file(python: Path, side: str, file: str, options, ids: list[str] | None = None) -> dict:
    """What the tests of a file answer on one side: {load?, tests, chosen, absent, results: {id: answer}, ended?}."""
    said: dict = {"results": {}, "tests": 0, "chosen": [], "absent": []}
    if side == "cresset":
        libraries.prepare(options.tests, file)
    here, there = os.pipe()
    request = {
        "side": side, "tests": str(options.tests), "file": file, "helpers": [str(folder) for folder in options.helpers], "sample": options.sample, "seed": options.seed,
        "only": options.only, "seconds": options.seconds, "ids": ids, "out": there,
    }  # fmt: skip
    deadline = time.monotonic() + options.file_seconds
    with tempfile.TemporaryFile() as log:
        command = [str(python), str(HERE / "worker.py"), json.dumps(request)]
        worker = subprocess.Popen(command, pass_fds=[there], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(side), start_new_session=True)
        os.close(there)
        done = False
        with os.fdopen(here, "rb", buffering=0) as pipe:
            text = b""
            while not done:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([pipe], [], [], left)[0]:
                    said["ended"] = f"no end after {options.file_seconds:.0f} s"
                    break
                piece = pipe.read(65536)
                if not piece:
                    break
                *lines, text = (text + piece).split(b"\n")
                for line in map(json.loads, lines):
                    done = done or "done" in line or "load" in line
                    if "id" in line:
                        said["results"][line.pop("id")] = line
                    else:
                        said.update(line)
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        worker.wait()
        if not done and "ended" not in said:
            log.seek(0)
            said["ended"] = log.read().decode(errors="replace")[-2000:]
            if not said["tests"]:
                said["load"] = {"outcome": "crash", "message": said["ended"], "mro": [], "frames": []}
    said.pop("done", None)
    return said


def default_python() -> Path:
    """The interpreter for both sides: the one with a PyTorch when it is named, so that both have the same packages."""
    return Path(os.environ.get("CRESSET_ORACLE_PYTHON", sys.executable))


def has_torch(python: Path) -> bool:
    return subprocess.run([str(python), "-c", "import torch"], capture_output=True, env=environment("torch")).returncode == 0
