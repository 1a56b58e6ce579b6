"""Archives of scripts and traces both ways with PyTorch: saved there and run here, saved again here and run there.

    tools/archive_exchange [--models PATTERN ...] [--keep FOLDER]

CRESSET_ORACLE_PYTHON names an interpreter with PyTorch; with torchvision or timm there, their networks are among the models. Weights are random.
Differences are of the largest answer. The exit status is 1 when a file does not load or an answer differs by more than --tolerance.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import cresset
from cresset import jit

THERE = Path(__file__).with_name("torch_side.py")


def there(python, *arguments, path=None):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if path:
        environment["PYTHONPATH"] = path
    done = subprocess.run([python, THERE, *map(str, arguments)], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"archive-exchange: {done.stderr[-2000:]}")
    sys.stderr.write(done.stderr)
    return done.stdout


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value] if isinstance(value, cresset.Tensor) else []


def run_here(folder: Path, stem: str) -> float | str:
    """The largest difference here, and the file saved again; or why there is none."""
    recorded = np.load(folder / f"{stem}.npz")
    try:
        model = jit.load(folder / f"{stem}.pt")
        with cresset.no_grad():
            answers = flat(model(*(cresset.from_numpy(recorded[k]) for k in recorded if k.startswith("in"))))
        model.save(folder / f"{stem}.back.pt")
    except Exception as error:  # noqa: BLE001: reported
        return f"{type(error).__name__}: {str(error).strip()[:200]}".replace("\n", " ")
    wanted = [recorded[k] for k in recorded if k.startswith("out")]
    if len(answers) != len(wanted):
        return f"{len(answers)} results where PyTorch has {len(wanted)}"
    return max(float(np.abs(a.numpy() - b).max() / max(1.0, np.abs(b).max())) for a, b in zip(answers, wanted))


def main() -> int:
    parser = argparse.ArgumentParser(prog="archive-exchange", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["*"], help="patterns of names: own.*, torchvision.resnet*, timm.*")
    parser.add_argument("--python", default=os.environ.get("CRESSET_ORACLE_PYTHON"), help="interpreter with PyTorch (default: CRESSET_ORACLE_PYTHON)")
    parser.add_argument("--site", help="a folder with more packages for it (torchvision, timm)")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--keep", type=Path, help="keep the files in this folder")
    options = parser.parse_args()
    if not options.python:
        sys.exit("archive-exchange: CRESSET_ORACLE_PYTHON names no interpreter with PyTorch.")
    chosen = [n for n in there(options.python, "names", path=options.site).splitlines()[-1].split() if any(fnmatch.fnmatch(n, p) for p in options.models)]
    bad = total = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            there(options.python, "save", folder, name, path=options.site)
            stems = sorted(p.name[: -len(".npz")] for p in folder.glob(f"{name}.*.npz"))
            here = {stem: run_here(folder, stem) for stem in stems}
            again = [stem for stem in stems if isinstance(here[stem], float)]
            back = dict(line.split(" ", 1) for line in there(options.python, "check", folder, *again, path=options.site).splitlines()) if again else {}
            for stem in stems:
                total += 1
                answer = back.get(stem, "-")
                fine = isinstance(here[stem], float) and here[stem] <= options.tolerance and not answer.startswith(("error", "-")) and float(answer) <= options.tolerance
                bad += not fine
                print(f"{'ok ' if fine else 'BAD'} {stem:60} here {here[stem]}  there {answer}", flush=True)
                if not options.keep:
                    for file in folder.glob(f"{stem}.*"):
                        file.unlink()
    print(f"{total - bad} of {total} archives agree both ways")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
