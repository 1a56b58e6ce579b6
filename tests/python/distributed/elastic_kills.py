"""A training under the launcher whose ranks are killed (SIGKILL) or stopped (SIGSTOP) at random times, also while a checkpoint is written: after each the job
has to go on, in time, with a clear word about the rank, and its losses have to be those of an undisturbed one.

    python tests/python/distributed/elastic_kills.py 200        # so many kills, and the counts
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMEOUT = 2.0  # seconds of the group
PATIENCE = 60  # seconds from a kill to the next step: the timeout, a restart, and a busy machine
KILLS_OF_A_JOB = 20

TRAINS = """
import json, os, sys, time
from datetime import timedelta
import cresset, cresset.distributed as dist
cresset.set_num_threads(1)
folder, last, timeout = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
rank, path = dist.get_rank(), folder + "/checkpoint.pt"
cresset.manual_seed(0)
module = cresset.nn.Linear(4, 1)
optimizer = cresset.optim.Adam(module.parameters(), lr=0.01)
step = 0
if os.path.exists(path):
    held = cresset.load(path)
    step = held["step"]
    module.load_state_dict(held["module"])
    optimizer.load_state_dict(held["optimizer"])
ddp = cresset.nn.parallel.DistributedDataParallel(module)
with open(f"{folder}/pid{rank}.new", "w") as file:
    file.write(f"{os.getpid()} {os.environ['TORCHELASTIC_RESTART_COUNT']}")
os.replace(f"{folder}/pid{rank}.new", f"{folder}/pid{rank}")
while step < last:
    cresset.manual_seed(100 * step + rank)
    x = cresset.randn(8, 4)
    loss = (ddp(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    over = cresset.tensor(float(rank == 0 and os.path.exists(folder + "/over")))
    dist.all_reduce(over)
    if rank == 0:
        with open(folder + "/losses", "a") as losses:
            losses.write(json.dumps([step, loss.item()]) + "\\n")
        cresset.save({"step": step, "module": module.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()
    if over:
        break
dist.destroy_process_group()
"""


def losses_of(folder):
    """Step -> loss; one that was repeated counts as it was in the end. A line that a kill has cut is left out, as its step is repeated."""
    found = {}
    path = folder / "losses"
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            step, loss = json.loads(line)
        except ValueError:
            continue
        found[step] = loss
    return found


class Job:
    """A training of `ranks` ranks under the launcher."""

    def __init__(self, folder, ranks, last, restarts, timeout=TIMEOUT):
        self.folder, self.ranks = folder, ranks
        folder.mkdir()
        script = folder / "script.py"
        script.write_text(TRAINS)
        options = ["--standalone", f"--nproc-per-node={ranks}", f"--max-restarts={restarts}"]
        command = [sys.executable, "-m", "cresset.distributed.run", *options, str(script), str(folder), str(last), str(timeout)]
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)

    def ready(self, attempt):
        """The processes of all ranks in a round, or None before all train."""
        pids = []
        for rank in range(self.ranks):
            try:
                pid, when = map(int, (self.folder / f"pid{rank}").read_text().split())
            except (OSError, ValueError):
                return None
            if when != attempt:
                return None
            pids.append(pid)
        return pids

    def until(self, question, patience=PATIENCE):
        """The first answer that is not None or False within so many seconds; None when there is none, or the job has ended."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and self.process.poll() is None:
            if answer := question():
                return answer
            time.sleep(0.02)
        return None

    def end(self):
        """The exit status; None for a job that does not end."""
        (self.folder / "over").touch()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.process.kill()
            self.log.close()


def disturbed(folder, count, seed, ranks=2):
    """(losses, hangs, unclear reports, the longest seconds from a kill to the next step) of a job with so many kills."""
    chance, longest, hangs = random.Random(seed), 0.0, []
    job = Job(folder, ranks, 10**6, count)
    for attempt in range(count):
        pids = job.until(lambda: job.ready(attempt))
        if pids is None:
            hangs.append(f"seed {seed}, kill {attempt}: the round did not begin (exit status {job.process.poll()})")
            break
        time.sleep(chance.uniform(0, 0.3))
        before = max(losses_of(folder), default=0)
        begin = time.monotonic()
        os.kill(pids[chance.randrange(ranks)], chance.choice([signal.SIGKILL, signal.SIGSTOP]))
        if job.until(lambda: job.ready(attempt + 1) and max(losses_of(folder), default=0) > before) is None:
            hangs.append(f"seed {seed}, kill {attempt}: no step within {PATIENCE} s (exit status {job.process.poll()})")
            break
        longest = max(longest, time.monotonic() - begin)
    status = job.end()
    if status != 0 and not hangs:
        hangs.append(f"seed {seed}: the job ended with {status}")
    return losses_of(folder), hangs, unclear((folder / "log").read_text(), attempt + 1), longest


def unclear(log, count):
    """What is wrong with the launcher's words: each kill is a killed rank, or an error that names the rank that did not take part."""
    reports = re.findall(r"error\s*: (.*)|exitcode\s*: -(\d+)", log)
    clear = re.compile(r"rank \d+ (is gone|did not take part)")
    told = len(re.findall(r"exitcode\s*: -9", log)) + len(clear.findall(log))
    wrong = [text for text, _ in reports if text and not clear.search(text) and text != "not known"]
    return wrong + ([f"{count} kills, and {told} reports of them"] if told < count else [])


def kills(count, seed=0):
    """(kills, hangs, unclear reports, jobs whose losses differ, longest wait)."""
    done, hangs, vague, different, longest = 0, [], [], [], 0.0
    with tempfile.TemporaryDirectory() as name:
        jobs = []
        while done < count:
            some = min(KILLS_OF_A_JOB, count - done)
            losses, stuck, words, seconds = disturbed(Path(name) / f"job{done}", some, seed + done)
            jobs.append((seed + done, losses))
            done, hangs, vague, longest = done + some, hangs + stuck, vague + words, max(longest, seconds)
        last = max(max(losses, default=0) for _, losses in jobs)
        calm = Job(Path(name) / "calm", 2, last, 0, 60.0)
        calm.process.wait(600)
        calm.end()
        whole = losses_of(calm.folder)
        different = [job for job, losses in jobs if losses != {step: whole.get(step) for step in losses} or sorted(losses) != list(range(1, len(losses) + 1))]
    return done, hangs, vague, different, longest


if __name__ == "__main__":
    number, stuck, words, others, seconds = kills(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(f"{number} kills: {len(stuck)} hangs, {len(words)} unclear errors, {len(others)} jobs with other losses; longest wait {seconds:.1f} s", *stuck, *words, sep="\n")
    sys.exit(1 if stuck or words or others else 0)
