"""Where programs run: a virtual environment, source trees, made-up data, and a process for each job and side."""

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Workplace:
    def __init__(self, options, manifest):
        self.options, self.manifest = options, manifest
        self.folder = options.workplace.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.python = self.folder / "venv/bin/python"
        self.sources = {name: Path(folder).resolve() for name, _, folder in (text.partition("=") for text in options.source)}
        self.answers = self.folder / "control.json"
        self.control = json.loads(self.answers.read_text()) if options.keep and self.answers.exists() else {}

    # --- what is fetched

    def prepare(self, entries):
        if not self.options.offline:
            self._install(entries)
        for name in {entry["source"] for entry in entries if "source" in entry} - set(self.sources):
            self.sources[name] = self.folder / "sources" / name
            if not self.sources[name].exists():
                if self.options.offline:
                    raise SystemExit(f"run_programs: the source tree {name} is not there. Give --source {name}=FOLDER, or leave --offline out.")
                subprocess.run(["git", "clone", "-q", "--depth", "1", self.manifest["sources"][name], self.sources[name]], check=True)
        if self.options.oracle:
            self._place_torch()

    def _install(self, entries):
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.folder / "venv"], check=True)
        wanted = [*self.manifest["install"]["plain"], *(p for e in entries for p in e.get("plain", []))]
        bare = [*self.manifest["install"]["bare"], *(p for e in entries for p in e.get("pip", []))]
        pip = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--prefer-binary"]
        subprocess.run([*pip, *wanted], check=True)
        subprocess.run([*pip, "--no-deps", *bare], check=True)

    def _place_torch(self):
        """A folder with PyTorch alone: the oracle's other packages are not those of this environment."""
        where = "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))"
        site = Path(subprocess.run([self.options.oracle, "-c", where], check=True, capture_output=True, text=True).stdout.strip())
        place = self.folder / "torch"
        place.mkdir(exist_ok=True)
        for found in (p for p in site.iterdir() if re.fullmatch(r"(torch|torchgen|functorch)(-.*\.dist-info)?", p.name)):
            if not (place / found.name).is_symlink():
                (place / found.name).symlink_to(found)

    # --- a job

    def run(self, entry):
        name = f"{entry['group']}/{entry['name']}"
        row = {"id": name, "group": entry["group"], "name": entry["name"], "what": entry.get("what", "")}
        if self.options.imports:
            answer = self._answer(entry, "cresset", imports=True)
            return {**row, "verdict": "fails" if answer["error"] else "imports", "note": answer["error"], "output": answer["output"], "seconds": answer["seconds"]}
        key = hashlib.sha256(json.dumps([entry, self._job(entry)], sort_keys=True).encode()).hexdigest()
        theirs = self.control.get(key)
        if theirs is None:
            theirs = self._answer(entry, "torch")
            self.control[key] = theirs
            self.answers.write_text(json.dumps(self.control))
        row["torch_seconds"] = theirs["seconds"]
        if theirs["error"]:
            return {**row, "verdict": "unfit", "note": theirs["error"], "output": theirs["output"]}
        ours = self._answer(entry, "cresset")
        row |= {"seconds": ours["seconds"], "output": ours["output"], "values": len(theirs["values"])}
        difference = compare.first_difference(ours["values"], theirs["values"], entry)
        if ours["error"]:
            return {**row, "verdict": "fails", "note": ours["error"]}
        return {**row, "verdict": "differs" if difference else "equal", "note": difference}

    def _job(self, entry):
        return (HERE / "jobs" / f"{entry['job']}.py").read_text() if "job" in entry else ""

    def _environment(self, side):
        paths = [ROOT / "python", ROOT / "compat/torch/python"] if side == "cresset" else [self.folder / "torch"]
        quiet = {"HF_HUB_OFFLINE": "1", "MPLBACKEND": "Agg", "TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore", "KMP_WARNINGS": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PROGRAMS_DATA": str(self.folder / "data"), "HOME": str(self.folder / "home")}

    def _answer(self, entry, side, imports=False):
        """{values: [[name, value]], error, output, seconds} of one side."""
        with tempfile.TemporaryDirectory() as scratch:
            cwd = Path(scratch, "work")
            if "source" in entry:
                shutil.copytree(self.sources[entry["source"]] / entry.get("folder", "."), cwd, symlinks=True)
            else:
                cwd.mkdir()
            out = Path(scratch, "values.json")
            commands = entry.get("run") or [f"{HERE / 'jobs' / (entry['job'] + '.py')}"]
            worker = [str(self.python), str(HERE / "worker.py"), str(out)]
            values, output, error, start = [], "", "", time.perf_counter()
            for command in commands:
                mode = "import" if imports else "program" if "run" in entry else "job"
                out.write_text("")
                text, error = self._process([*worker, mode, ",".join(entry.get("data", [])) or "-", *shlex.split(command)], cwd, side, entry.get("env", {}))
                output += text
                values += json.loads(out.read_text() or "[]")
                if mode == "program":
                    values += compare.printed(text, entry)
                if error:
                    break
            return {"values": values, "error": error, "output": output[-3000:], "seconds": round(time.perf_counter() - start, 1)}

    def _process(self, command, cwd, side, env):
        with tempfile.TemporaryFile() as log:
            (self.folder / "home").mkdir(exist_ok=True)
            process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self._environment(side) | env, start_new_session=True)
            error = ""
            try:
                status = process.wait(self.options.seconds)
            except subprocess.TimeoutExpired:
                status, error = 0, f"no end after {self.options.seconds:.0f} s"
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            log.seek(0)
            text = log.read().decode(errors="replace")
        if status:
            lines = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception|Interrupt|Exit|Failure|Warning)\b", line)] or text.strip().splitlines()
            error = (lines[-1] if lines else "no output").strip()[:300] + (f" (signal {-status})" if status < 0 else "")
        return text, error
