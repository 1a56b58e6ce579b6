"""Random kills: nobody hangs, everybody names the victim, and a job that restarts goes on from its checkpoint. Two hosts as network namespaces."""

import json
import os
import subprocess
import sys

import pytest

import elastic_kills
import kills


@pytest.mark.parametrize("count", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_every_other_rank_names_the_victim(count):
    counts, wrong, _ = kills.kills(count, seed=1000)
    assert not wrong and sum(counts.values()) == count


TRAINS = """
import json, os, signal, sys
import cresset, cresset.distributed as dist
folder, kills = sys.argv[1], json.loads(sys.argv[2])
dist.init_process_group("gloo")
rank, attempt = dist.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"]
cresset.manual_seed(0)
module = cresset.nn.Linear(4, 1)
optimizer = cresset.optim.Adam(module.parameters(), lr=0.05)
step, path = 0, folder + "/checkpoint.pt"
if os.path.exists(path):
    held = cresset.load(path)
    step = held["step"]
    module.load_state_dict(held["module"])
    optimizer.load_state_dict(held["optimizer"])
ddp = cresset.nn.parallel.DistributedDataParallel(module)
while step < 12:
    if kills.get(attempt) == [step, rank]:
        os.kill(os.getpid(), signal.SIGKILL)
    cresset.manual_seed(100 * step + rank)
    x = cresset.randn(8, 4)
    loss = (ddp(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach())
    step += 1
    if rank == 0:
        with open(folder + "/losses", "a") as losses:
            losses.write(json.dumps([step, loss.item()]) + "\\n")
        cresset.save({"step": step, "module": module.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()
dist.destroy_process_group()
"""


def losses(folder, deaths):
    """The loss of each step; one that was repeated counts as it was in the end."""
    folder.mkdir()
    script = folder / "script.py"
    script.write_text(TRAINS)
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=3"]
    command = [sys.executable, "-m", "cresset.distributed.run", *options, str(script), str(folder), json.dumps(deaths)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(line) for line in (folder / "losses").read_text().splitlines()), ended.stderr


def test_restarts_go_on_from_the_checkpoint(tmp_path):
    undisturbed, _ = losses(tmp_path / "undisturbed", {})
    killed, said = losses(tmp_path / "killed", {"0": [3, 1], "1": [7, 0], "2": [7, 1]})
    assert killed == undisturbed and len(killed) == 12 and said.count("exitcode  : -9") == 3 and "restart 3 of 3" in said


@pytest.mark.parametrize("count", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_a_job_that_is_killed_again_and_again_learns_what_an_undisturbed_one_does(count):
    done, hangs, unclear, different, _ = elastic_kills.kills(count, seed=1000)
    assert (done, hangs, unclear, different) == (count, [], [], [])


def test_what_counts_as_unclear():
    log = "  exitcode  : -9 (pid: 3)\ncresset.distributed.DistBackendError: [rank 0] barrier: rank 1 did not take part.\n"
    assert elastic_kills.unclear(log, 2) == [] and elastic_kills.unclear(log, 3) == ["3 kills, and 2 reports of them"]


def shell(*words):
    return subprocess.run(words, capture_output=True, text=True)


@pytest.fixture
def two_hosts():
    """Two network namespaces that are connected: [(words before a command in it, its address), …]."""
    names = [f"cresset{os.getpid()}{side}" for side in "ab"]
    links = [f"c{os.getpid() % 100000}{side}" for side in "ab"]
    if os.geteuid() != 0 or shell("ip", "netns", "add", names[0]).returncode != 0:
        pytest.skip("network namespaces are not permitted here (they need root and `ip`)")
    try:
        shell("ip", "netns", "add", names[1])
        made = shell("ip", "link", "add", links[0], "netns", names[0], "type", "veth", "peer", "name", links[1], "netns", names[1])
        if made.returncode != 0:
            pytest.skip(f"no pair of virtual Ethernet devices: {made.stderr.strip()}")
        hosts = []
        for i, (name, link) in enumerate(zip(names, links)):
            inside, address = ["ip", "netns", "exec", name], f"10.77.0.{i + 1}"
            for words in (["addr", "add", f"{address}/24", "dev", link], ["link", "set", link, "up"], ["link", "set", "lo", "up"]):
                assert shell(*inside, "ip", *words).returncode == 0
            hosts.append((inside, address, link))
        yield hosts
    finally:
        for name in names:
            shell("ip", "netns", "del", name)


OVER_THE_NETWORK = """
import sys, time
from datetime import timedelta
import cresset, cresset.distributed as dist
dist.init_process_group("gloo", timeout=timedelta(seconds=float(sys.argv[1])))
for n in (4, 100_000):
    x = cresset.full((n,), float(dist.get_rank() + 1))
    dist.all_reduce(x)
    assert x.unique().tolist() == [3.0]
print("good", flush=True)
try:
    while len(sys.argv) > 2:
        dist.all_reduce(cresset.ones(4))
except dist.DistBackendError as error:
    print(error, flush=True)
dist.destroy_process_group()
"""


def ranks_on(hosts, *arguments):
    started = []
    for rank, (inside, _, link) in enumerate(hosts):
        told = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": hosts[0][1], "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": link}
        command = [*inside, sys.executable, "-c", OVER_THE_NETWORK, *arguments]
        started.append(subprocess.Popen(command, env=os.environ | told, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return started


def test_two_hosts_over_a_network_that_loses_packets(two_hosts):
    for inside, _, link in two_hosts:
        shell(*inside, "tc", "qdisc", "add", "dev", link, "root", "netem", "loss", "2%")  # where it is permitted
    for process in ranks_on(two_hosts, "60"):
        out, err = process.communicate(timeout=100)
        assert out == "good\n", err


def test_two_hosts_and_a_link_that_goes_down(two_hosts):
    processes = ranks_on(two_hosts, "2", "on")
    for process in processes:
        assert process.stdout.readline() == "good\n"
    inside, _, link = two_hosts[1]
    assert shell(*inside, "ip", "link", "set", link, "down").returncode == 0
    for rank, process in enumerate(processes):
        out, err = process.communicate(timeout=40)
        assert f"[rank {rank}]" in out and (f"rank {1 - rank} did not take part" in out or f"rank {1 - rank} is gone" in out or "the store does not answer" in out), err
