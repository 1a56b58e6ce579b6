"""`cresset conform` and `cresset ops --needed-by`."""

import argparse
import json
import os
import sys
import warnings
from pathlib import Path

import cresset
from cresset.testing import models
from cresset.testing.capabilities import Capabilities
from cresset.testing.devices import check_device, load_backend, out_of_tree_devices
from cresset.testing.samples import row_of

from . import reproduce
from .card import COLUMNS, DTYPES, conform
from .checks import Trial
from .html import card_html
from .needed import load_model, needed_by
from .shadow import Shadow, WrongOperator
from .text import card_text, needed_text


def _parser():
    names = ", ".join(models.MODELS)
    parser = argparse.ArgumentParser(prog="cresset conform", description="Compares a device with the CPU, operator by operator.",
                                     epilog="Exit status: 0 when the score reaches the threshold, and the native share the least one (or the shadow run ends), 1 otherwise, 2 for wrong arguments.")
    parser.add_argument("--device", default="cpu", help="device to check, e.g. mychip or mychip:1")
    parser.add_argument("--load", action="append", default=[], metavar="BACKEND", help="library (.so), Python file or module to load first; repeatable")
    parser.add_argument("--capabilities", type=Path, metavar="FILE.toml", help="what the device can do: dtypes, allow and block lists, tolerances")
    parser.add_argument("--ops", metavar="REGEX", help="only operators whose name contains this")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="dtypes with commas between them (default: %(default)s)")
    parser.add_argument("--checks", default=",".join(COLUMNS), help="columns with commas between them (default: %(default)s)")
    parser.add_argument("--threshold", type=float, default=100.0, metavar="PERCENT", help="least score for exit status 0 (default: %(default)g)")
    parser.add_argument("--min-native", type=float, default=0.0, metavar="PERCENT",
                        help="least share of the operators that run on the device alone and are right, for exit status 0 (default: %(default)g)")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="an operator that takes longer is an error (default: %(default)g)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the card as one HTML file")
    parser.add_argument("--json", action="store_true", help="print the card as JSON")
    parser.add_argument("--reproduce", type=Path, metavar="FOLDER", help="write a script for each wrong operator")
    parser.add_argument("--no-models", action="store_true", help="leave the example models out")
    parser.add_argument("--shadow", metavar="MODEL", help=f"train one step of a model with each operator compared; stop at the first wrong one: {names}, or a Python file")
    parser.add_argument("--needed-by", metavar="MODEL", help="only list the operators that a model needs")
    parser.add_argument("-j", "--jobs", type=_jobs, default=1, metavar="N", help="processes that work on the card, each with the device open; one that ends costs the operator it was at (default: 1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print everything, and progress")
    return parser


def _jobs(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of processes, at least 1, was required; {text} was given")
    return int(text)


def _progress(number, of, name):
    print(f"\r{number + 1}/{of} {name:60.60}", end="\n" if number + 1 == of else "", file=sys.stderr, flush=True)


def _chosen(parser, option, text, known):
    names = tuple(n.strip() for n in text.split(",") if n.strip())
    unknown = [n for n in names if n not in known]
    if unknown:
        parser.error(f"{option}: {', '.join(known)} are known; {', '.join(unknown)} was given")
    return names


def _shadow(options, capabilities):
    build = load_model(options.shadow)
    model, inputs, loss = build(options.device)
    folder = options.reproduce or Path()
    try:
        with Shadow(options.device, folder, capabilities=capabilities, loads=options.load) as shadow:
            models.train_step(model, inputs, loss)
    except WrongOperator as error:
        print(f"wrong after {shadow.compared} calls that agree: {error}")
        return 1
    print(f"{options.shadow} on {options.device}: all {shadow.compared} calls agree with the CPU")
    return 0


def _write_scripts(card, options, capabilities):
    """One script for each wrong operator, of its first wrong dtype; forms other than the functional one are left to the shadow run."""
    written = {}
    for (op, check, dtype), sample in card.samples.items():
        if check in ("forward", "backward") and op not in written:
            trial = Trial(row_of(op), sample, getattr(cresset, dtype), options.device, capabilities)
            call = trial.fresh("cpu")
            reason = next(r.reason for r in card.failures() if (r.op, r.check) == (op, check))
            kwargs = {k: cresset.device(options.device) if k == "device" else v for k, v in call.kwargs.items()}
            written[op] = reproduce.write(options.reproduce, trial.row.op(), call.args, kwargs, options.device, problem=f"{check}: {reason}", loads=options.load)
    for path in written.values():
        print(f"wrote {path}")


def run(parser, options):
    for path in options.load:
        load_backend(path)
    try:
        check_device(options.device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        if first.startswith("Expected one of"):  # the names that PyTorch lists are not those of devices that are here
            first = f"no backend that was found gives the device {options.device!r}."
        here = ", ".join(("cpu", "meta", *out_of_tree_devices()))
        command = f"cresset ops --needed-by {options.needed_by}" if options.needed_by else "cresset conform"
        parser.exit(2, f"{command}: {first}\nDevices here: {here}.\n"
                       f"Next: {command} --device {options.device} --load PATH_OF_BACKEND, or CRESSET_BACKEND_PATH=ITS_FOLDER\n")
    capabilities = Capabilities.load(options.capabilities) if options.capabilities else Capabilities()
    if options.needed_by:
        needed = needed_by(options.needed_by, options.device)
        print(json.dumps(needed.as_dict(), indent=2) if options.json else needed_text(needed))
        return 0
    if options.shadow:
        return _shadow(options, capabilities)
    dtypes, columns = _chosen(parser, "--dtypes", options.dtypes, _all_dtypes()), _chosen(parser, "--checks", options.checks, COLUMNS)
    card = conform(options.device, ops=options.ops, dtypes=dtypes, columns=columns, capabilities=capabilities,
                   with_models=not options.no_models, progress=_progress if options.verbose else None, jobs=options.jobs, loads=options.load,
                   isolated=True, timeout=options.timeout)
    print(json.dumps(card.as_dict(), indent=2) if options.json else card_text(card, options.verbose))
    if options.html:
        options.html.write_text(card_html(card))
    if options.reproduce:
        _write_scripts(card, options, capabilities)
    return 0 if card.score >= options.threshold and card.native_share >= options.min_native else 1


def _all_dtypes():
    return tuple(n for n, v in vars(cresset).items() if isinstance(v, cresset.dtype) and str(v) == f"cresset.{n}")


def main(argv=None):
    parser = _parser()
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    try:
        return run(parser, options)
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stdout = open(os.devnull, "w")
        return 1
    except (ValueError, OSError) as error:
        parser.exit(2, f"cresset conform: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
