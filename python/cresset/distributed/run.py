"""`python -m cresset.distributed.run`: starts the ranks of this machine, with torchrun's options; see docs/guide/distributed.md.

Every option can be given as an environment variable PET_<NAME> too.
"""

import argparse
import os
import runpy
import shutil
import signal
import socket
import sys
import threading
import uuid
from importlib import metadata

from cresset import distributed

if not distributed.is_available():
    raise ImportError(f"cresset.distributed.run: {distributed._NOT_BUILT}")
from cresset.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from cresset.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from cresset.distributed.elastic.rendezvous import RendezvousError
from cresset.distributed.elastic.rendezvous.utils import _parse_rendezvous_config, parse_rendezvous_endpoint
from cresset.distributed.elastic.utils import macros
from cresset.distributed.launcher.api import LaunchConfig, elastic_launch

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "parse_min_max_nnodes", "run"]


def _default(name, value):
    return os.environ.get("PET_" + name.upper(), value)


def get_args_parser():
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m cresset.distributed.run", description="Start the ranks of this machine.")

    def option(name, value, text, kind=str, short=(), **more):
        names = [*short, "--" + name] + (["--" + name.replace("-", "_")] if "-" in name else [])
        parser.add_argument(*names, type=kind, default=kind(_default(name.replace("-", "_"), value)), help=text, **more)

    def flag(name, text, short=()):
        names = [*short, "--" + name] + (["--" + name.replace("-", "_")] if "-" in name else [])
        parser.add_argument(*names, action="store_true", default=_default(name.replace("-", "_"), "0") == "1", help=text)

    option("nnodes", "1", "Number of machines, or the least and the most: 1:4.")
    option("nproc-per-node", "1", "Ranks on each machine: a number, auto, cpu or gpu.")
    option("rdzv-backend", "static", "How machines find each other: static (--node-rank says which this is) or c10d (they number themselves).")
    option("rdzv-endpoint", "", "host:port of the store that the launchers meet at.")
    option("rdzv-id", "none", "The name of this job.")
    option("rdzv-conf", "", "More for the rendezvous: join_timeout=SECONDS,last_call_timeout=SECONDS.")
    flag("standalone", "One machine, any free port.")
    option("max-restarts", "0", "How often all ranks are started again after one failed.", int)
    option("monitor-interval", "0.1", "Seconds between looks at the ranks.", float)
    flag("run-path", "The script runs by runpy in its rank, as if it were imported as __main__.")
    option("start-method", "spawn", "Without effect: ranks are programs of their own.", choices=["spawn", "fork", "forkserver"])
    option("event-log-handler", "null", "Where events go.")
    option("role", "default", "A name for the ranks.")
    flag("module", "The script is a module, as with python -m.", ["-m"])
    flag("no-python", "The script is a program of its own, not for Python.")
    option("logs-specs", "", "The class of logs, an entry point of the group torchrun.logs_specs.")
    option("log-dir", "", "A folder for logs; without one a temporary folder.")
    option("redirects", "0", "Streams that go to files: 1 stdout, 2 stderr, 3 both, 0:1,1:3 by local rank.", short=["-r"])
    option("tee", "0", "Streams that go to files and to the console, as --redirects.", short=["-t"])
    option("local-ranks-filter", "", "Only these local ranks show on the console: 0,1.")
    option("node-rank", "0", "Which machine this is, for static.", int)
    option("master-addr", "127.0.0.1", "The address of machine 0, for static.")
    option("master-port", "29500", "Its port.", int)
    option("local-addr", "", "The address of this machine.")
    parser.add_argument(
        "--numa-binding", "--numa_binding", choices=["node", "socket", "exclusive", "core-complex"], help="Which processors each rank runs on."
    )
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

    accelerators = 0
    if text in ("auto", "gpu"):
        found = cresset.cuda if cresset.cuda.is_available() else cresset.accelerator
        accelerators = found.device_count() if found.is_available() else 0
    if text == "gpu" and not accelerators:
        raise ValueError("--nproc-per-node gpu: an accelerator was required; there is none. Use cpu or a number.")
    if text in ("auto", "cpu", "gpu"):
        return accelerators or os.cpu_count()
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def parse_min_max_nnodes(nnodes):
    """(least, most) of "2" or "2:4". RuntimeError for other texts."""
    parts = nnodes.split(":")
    if len(parts) > 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def _streams(option, text):
    try:
        return Std.from_str(text)
    except ValueError:
        raise ValueError(f"{option}: 0, 1, 2, 3 or rank:number,… was required; {text} was given.") from None


def _logs_class(name):
    if not name:
        return DefaultLogsSpecs
    found = metadata.entry_points().select(group="torchrun.logs_specs")
    if not found.select(name=name):
        raise ValueError(f"Could not find entrypoint under 'torchrun.logs_specs[{name}]' key")
    return found[name].load()


def _logs(args):
    shown = {int(rank) for rank in args.local_ranks_filter.split(",")} if args.local_ranks_filter else None
    return _logs_class(args.logs_specs)(
        log_dir=args.log_dir or None, redirects=_streams("--redirects", args.redirects), tee=_streams("--tee", args.tee), local_ranks_filter=shown
    )


def _meeting_point(args, conf):
    """(backend, endpoint): where machines meet."""
    if args.standalone:
        return "c10d", "localhost:0"
    if args.rdzv_backend == "static":
        conf.setdefault("rank", args.node_rank)
        return "static", args.rdzv_endpoint or f"{args.master_addr}:{args.master_port}"
    return args.rdzv_backend, args.rdzv_endpoint


def _numa(mode):
    if mode is None:
        return None
    from cresset.numa.binding import AffinityMode, NumaOptions

    return NumaOptions(AffinityMode(mode))


def _own_address(args, backend, endpoint):
    """The address that other machines reach this one by: that of its way to where they meet, unless one is given."""
    if args.local_addr or backend != "c10d":
        return args.local_addr or None
    host, _ = parse_rendezvous_endpoint(endpoint, 29400)
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(address)  # no bytes are sent
                return probe.getsockname()[0]
    except OSError:
        pass
    return None


def _run_script_path(training_script, *training_script_args):
    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def _command(args):
    """(entrypoint, arguments) of a rank."""
    if args.no_python and args.module:
        raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
    arguments = list(args.training_script_args)
    if hasattr(args, "use_env") and not args.use_env:  # the older form, launch
        arguments.insert(0, f"--local-rank={macros.local_rank}")
    if args.run_path:
        return _run_script_path, [args.training_script, *arguments]
    if args.no_python:
        return args.training_script, arguments
    command = ["-u", *(["-m"] if args.module else []), args.training_script, *arguments]
    return os.environ.get("PYTHON_EXEC", sys.executable), command


def config_from_args(args):
    """(LaunchConfig, entrypoint, arguments) of the options. ValueError, or RuntimeError for numbers of machines."""
    entrypoint, arguments = _command(args)
    least, most = (1, 1) if args.standalone else parse_min_max_nnodes(args.nnodes)
    if args.rdzv_backend == "static" and least != most and not args.standalone:
        raise ValueError(f"--nnodes: machines that come and go meet with --rdzv-backend c10d; {args.nnodes} was given with static.")
    conf = _parse_rendezvous_config(args.rdzv_conf)
    backend, endpoint = _meeting_point(args, conf)
    config = LaunchConfig(
        min_nodes=least, max_nodes=most, nproc_per_node=_ranks_here(args.nproc_per_node), logs_specs=_logs(args),
        run_id=str(uuid.uuid4()) if args.standalone else args.rdzv_id, role=args.role, rdzv_endpoint=endpoint, rdzv_backend=backend,
        rdzv_configs=conf, max_restarts=args.max_restarts, monitor_interval=args.monitor_interval, start_method=args.start_method,
        log_line_prefix_template=os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"), local_addr=_own_address(args, backend, endpoint),
        event_log_handler=args.event_log_handler, shutdown_timeout=args.shutdown_timeout,
        numa_options=_numa(args.numa_binding),
    )  # fmt: skip
    return config, entrypoint, arguments


def _on_signal(number, frame):
    raise SignalException(f"the launcher got signal {signal.Signals(number).name}; its ranks were stopped.", signal.Signals(number))


def run(args):
    """Start the ranks and wait for them. ChildFailedError when one failed more often than it may; SignalException after a signal."""
    config, entrypoint, arguments = config_from_args(args)
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = args.signals_to_handle
    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name.strip()) for name in args.signals_to_handle.split(",") if name.strip()]
        before = {number: signal.signal(number, _on_signal) for number in numbers}
    try:
        elastic_launch(config, entrypoint)(*arguments)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    # Nothing is in it; after a failure the errors are.
    if not args.log_dir and args.redirects == args.tee == "0" and isinstance(config.logs_specs, DefaultLogsSpecs):
        shutil.rmtree(config.logs_specs.root_log_dir, ignore_errors=True)


@record
def main(args=None):
    """Start the ranks of a command line and wait for them; the errors of run()."""
    run(parse_args(args))


def _main():
    try:
        main()
    except SignalException as error:
        print(f"the launcher got signal {error.sigval.name}; its ranks were stopped.", file=sys.stderr)
        return 1
    except (ChildFailedError, RendezvousError, RuntimeError, ValueError) as error:
        print(error or type(error).__name__, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
