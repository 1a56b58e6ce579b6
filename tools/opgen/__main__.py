"""Command line of the operator generator: generate, tree, outputs, where, show, check."""

import argparse
import sys
from pathlib import Path

import emit_autocast
import emit_autograd
import emit_batching
import emit_cpu
import emit_functions
import emit_names
import emit_ops
import emit_python
import emit_symbols
import query
import tree_view
from output import Output
from table import Table, TableError


def build(table, folder):
    out = Output(folder)
    for emitter in (emit_functions, emit_ops, emit_cpu, emit_autograd, emit_autocast, emit_batching, emit_names, emit_symbols, emit_python):
        emitter.emit(table, out)
    return out


def main(argv):
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(prog="opgen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    tree = commands.add_parser("tree", help="brings the headers that this tree's own sources see up to date")
    tree.add_argument("--out", required=True, type=Path, help="folder of the generated tree")
    for name in ("generate", "outputs", "check", "where", "show"):
        sub = commands.add_parser(name)
        sub.add_argument("--tables", default=root / "src/ops", type=Path, help="folder of *.toml (default: src/ops)")
        if name in ("generate", "outputs"):
            sub.add_argument("--out", required=True, type=Path, help="folder of the generated tree")
        if name in ("where", "show"):
            sub.add_argument("name", help="operator: add, add.Tensor or aten::add.Tensor")
    args = parser.parse_args(argv)
    if args.command == "tree":
        tree_view.write(root, args.out)
        return 0
    try:
        table = Table(args.tables)
        if args.command == "generate":
            build(table, args.out).write()
        elif args.command == "outputs":
            for group, path, _ in build(table, args.out).files:
                print(f"{group}\t{args.out / path}")
        elif args.command == "where":
            print(query.where(table, root, args.name))
        elif args.command == "show":
            print(query.show(table, root, args.name))
        elif args.command == "check":
            build(table, args.tables)
            missing = query.check(table, root)
            print("\n".join(missing) or f"{len(table.rows())} rows, {len(table.ops())} operators: all well.")
            return 1 if missing else 0
    except TableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
