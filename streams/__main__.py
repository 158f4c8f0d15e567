"""`python -m streams`: the commands of the application."""

import argparse
import sys

COMMANDS = {"worker": "one worker against a broker that is already there"}


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m streams")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    options = parser.parse_args()
    sys.exit(_run(options))


def _run(options: argparse.Namespace) -> int:
    from streams.settings import Settings
    from streams.worker import run_worker

    run_worker(Settings())
    return 0


if __name__ == "__main__":
    main()
