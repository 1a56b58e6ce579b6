"""Runs real programs and packages that were written for PyTorch on Cresset, and compares their numbers with PyTorch's.

    CRESSET_ORACLE_PYTHON=/path/to/python tools/run_programs [--only REGEX] [--markdown FILE] [--json FILE]

programs.toml beside this file lists them: packages, each with a job in jobs/, and programs of a source tree, each with command lines. Both are
fetched into --workplace (default build/programs), where pip installs the packages into a virtual environment of their own: what the
manifest calls `plain` with its dependencies, `bare` without, so nothing replaces `torch`. CRESSET_ORACLE_PYTHON names an interpreter of the
same Python version with PyTorch, whose answers are made in the same run; --keep takes those that an earlier run made for the same job. --source NAME=FOLDER takes a
tree that is there already, --offline installs and fetches nothing. The exit status is 1 when something fails or differs that known.toml does not list.
"""

import argparse
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import table
from workplace import HERE, Workplace


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="entries whose `group/name` matches")
    parser.add_argument("--workplace", type=Path, default=HERE.parents[1] / "build/programs")
    parser.add_argument("--oracle", type=Path, default=os.environ.get("CRESSET_ORACLE_PYTHON"), help="the interpreter with PyTorch")
    parser.add_argument("--source", action="append", default=[], metavar="NAME=FOLDER", help="a source tree that is there already")
    parser.add_argument("--offline", action="store_true", help="install and fetch nothing")
    parser.add_argument("--keep", action="store_true", help="take PyTorch's answers of an earlier run")
    parser.add_argument("--seconds", type=float, default=600, help="for one job on one side")
    parser.add_argument("--imports", action="store_true", help="packages: only import them, with Cresset alone")
    parser.add_argument("--markdown", type=Path, help="write the table for the documentation")
    parser.add_argument("--json", type=Path, help="write all answers")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the end of the output of what fails")
    options = parser.parse_args()
    if not options.oracle and not options.imports:
        parser.error("an interpreter with PyTorch is needed: set CRESSET_ORACLE_PYTHON or --oracle")
    return options


def main():
    options = parse()
    manifest = tomllib.loads((HERE / "programs.toml").read_text())
    known = tomllib.loads((HERE / "known.toml").read_text())
    entries = [
        {"group": group, "name": name, **entry}
        for group, rows in manifest["entries"].items() for name, entry in rows.items() if re.search(options.only, f"{group}/{name}")
    ]  # fmt: skip
    place = Workplace(options, manifest)
    place.prepare(entries)
    rows = []
    for entry in entries:
        row = place.run(entry)
        rows.append(row)
        print(table.line(row), flush=True)
        if options.verbose and row["verdict"] not in ("equal", "imports"):
            print(row.get("output", ""), flush=True)
    print(table.summary(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if options.markdown:
        options.markdown.write_text(table.page(options.markdown.read_text() if options.markdown.exists() else "", rows))
    unlisted = [row for row in rows if row["verdict"] in ("fails", "differs") and row["id"] not in known]
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
