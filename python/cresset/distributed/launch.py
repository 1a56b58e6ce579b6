"""`python -m cresset.distributed.launch`: the older form of `run`, which gives each script its --local-rank as well, unless --use-env is there."""

from cresset.distributed.run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args):
    """The options of a command line."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", default=False, action="store_true", help="The rank is only in the variable LOCAL_RANK.")
    return parser.parse_args(args)


def launch(args):
    """Start the ranks and wait for them."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    run(args)


def main(args=None):
    """The command."""
    launch(parse_args(args))


if __name__ == "__main__":
    main()
