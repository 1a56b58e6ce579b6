"""`python -m cresset.distributed.run`: starts the ranks of this machine, with torchrun's options; see docs/guide/distributed.md.

Every option can be given as an environment variable PET_<NAME> too.
"""

import argparse
import os
import sys
import uuid

from cresset import distributed

if not distributed.is_available():
    raise ImportError(f"cresset.distributed.run: {distributed._NOT_BUILT}")
from cresset.distributed._launcher import Job, RanksFailed, Signalled, launch

__all__ = ["get_args_parser", "main", "parse_args", "run"]


def _default(name, value):
    return os.environ.get("PET_" + name.upper(), value)


def get_args_parser():
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m cresset.distributed.run", description="Start the ranks of this machine.", allow_abbrev=False)

    def option(name, value, text, kind=str, short=(), **more):
        names = [*short, "--" + name] + (["--" + name.replace("-", "_")] if "-" in name else [])
        parser.add_argument(*names, type=kind, default=kind(_default(name.replace("-", "_"), value)), help=text, **more)

    def flag(name, text, short=()):
        names = [*short, "--" + name] + (["--" + name.replace("-", "_")] if "-" in name else [])
        parser.add_argument(*names, action="store_true", default=_default(name.replace("-", "_"), "0") == "1", help=text)

    option("nnodes", "1", "Number of machines.")
    option("nproc-per-node", "1", "Ranks on each machine: a number, auto, cpu or gpu.")
    option("rdzv-backend", "static", "How machines find each other: static (--node-rank says which this is) or c10d (they number themselves).")
    option("rdzv-endpoint", "", "host:port of the store that the launchers meet at.")
    option("rdzv-id", "none", "The name of this job.")
    option("rdzv-conf", "", "More for the rendezvous: join_timeout=SECONDS.")
    flag("standalone", "One machine, any free port.")
    option("max-restarts", "0", "How often all ranks are started again after one failed.", int)
    option("monitor-interval", "0.1", "Seconds between looks at the ranks.", float)
    option("start-method", "spawn", "Without effect: ranks are programs of their own.", choices=["spawn", "fork", "forkserver"])
    option("role", "default", "A name for the ranks.")
    flag("module", "The script is a module, as with python -m.", ["-m"])
    flag("no-python", "The script is a program of its own, not for Python.")
    option("log-dir", "", "A folder for logs; without one a temporary folder.")
    option("redirects", "0", "Streams that go to files: 1 stdout, 2 stderr, 3 both, 0:1,1:3 by local rank.", short=["-r"])
    option("tee", "0", "Streams that go to files and to the console, as --redirects.", short=["-t"])
    option("local-ranks-filter", "", "Only these local ranks show on the console: 0,1.")
    option("node-rank", "0", "Which machine this is, for static.", int)
    option("master-addr", "127.0.0.1", "The address of machine 0, for static.")
    option("master-port", "29500", "Its port.", int)
    option("local-addr", "", "The address of this machine.")
    option("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "Signals that are passed on to the ranks, and end them.")
    option("shutdown-timeout", os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"), "Seconds that ranks have to end after a signal, before SIGKILL.", int)
    parser.add_argument("training_script", help="The program.")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="Its arguments.")
    return parser


def parse_args(args):
    """The options of a command line."""
    return get_args_parser().parse_args(args)


def _ranks_here(text):
    if text.isdigit() and int(text) > 0:
        return int(text)
    import cresset

    accelerators = cresset.accelerator.device_count() if text in ("auto", "gpu") and cresset.accelerator.is_available() else 0
    if text == "gpu" and not accelerators:
        raise ValueError("--nproc-per-node gpu: an accelerator was required; there is none. Use cpu or a number.")
    if text in ("auto", "cpu", "gpu"):
        return accelerators or os.cpu_count()
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _streams(text, ranks):
    """The streams of each local rank, of "3" or "0:1,1:3": 0 none, 1 stdout, 2 stderr, 3 both."""
    try:
        if ":" not in text:
            chosen = dict.fromkeys(range(ranks), int(text))
        else:
            chosen = {int(rank): int(streams) for rank, streams in (pair.split(":") for pair in text.split(","))}
        if not all(0 <= streams <= 3 for streams in chosen.values()):
            raise ValueError
    except ValueError:
        raise ValueError(f"--redirects or --tee: 0, 1, 2, 3 or rank:number,… was required; {text} was given.") from None
    return [chosen.get(rank, 0) for rank in range(ranks)]


def _nodes(text):
    least, _, most = text.partition(":")
    if not least.isdigit() or int(least) < 1 or most not in ("", least):
        raise ValueError(f"--nnodes: a number of machines was required; {text} was given. Launching with machines that come and go is not part of Cresset.")
    return int(least)


def _endpoint(args):
    """(host, port) of the store; port 0 for any."""
    if args.standalone:
        return "localhost", 0
    if not args.rdzv_endpoint and args.rdzv_backend == "static":
        return args.master_addr, args.master_port
    host, _, port = args.rdzv_endpoint.rpartition(":") if ":" in args.rdzv_endpoint else (args.rdzv_endpoint, "", "")
    if port and not port.isdigit():
        raise ValueError(f"--rdzv-endpoint: host:port was required; {args.rdzv_endpoint} was given.")
    return host.strip("[]") or "localhost", int(port or 29400)


def _job(args):
    if args.rdzv_backend not in ("static", "c10d"):
        raise ValueError(f"--rdzv-backend: static or c10d was required; {args.rdzv_backend} was given.")
    if args.no_python and args.module:
        raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
    command = [] if args.no_python else [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
    command += (["-m"] if args.module else []) + [args.training_script, *args.training_script_args]
    ranks = _ranks_here(args.nproc_per_node)
    conf = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    host, port = _endpoint(args)
    return Job(
        command=command, name=args.training_script, ranks=ranks, nodes=1 if args.standalone else _nodes(args.nnodes),
        node=args.node_rank if args.rdzv_backend == "static" and not args.standalone else (0 if args.standalone else None),
        host=host, port=port, run_id=str(uuid.uuid4()) if args.standalone else args.rdzv_id, max_restarts=args.max_restarts, interval=args.monitor_interval,
        role=args.role, log_dir=args.log_dir, redirects=_streams(args.redirects, ranks), tee=_streams(args.tee, ranks),
        shown={int(r) for r in args.local_ranks_filter.split(",")} if args.local_ranks_filter else None,
        signals=[s.strip() for s in args.signals_to_handle.split(",") if s.strip()], shutdown_timeout=args.shutdown_timeout,
        join_timeout=float(conf.get("join_timeout", conf.get("timeout", 600))),
    )  # fmt: skip


def run(args):
    """Start the ranks and wait for them. RanksFailed when one failed more often than it may; Signalled after a signal."""
    launch(_job(args))


def main(args=None):
    """The command; its exit status."""
    try:
        run(parse_args(args))
    except (RanksFailed, Signalled, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
