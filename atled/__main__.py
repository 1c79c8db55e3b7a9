"""The command line: `python -m atled`, and the command `atled`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import atled
from atled.checkpoints import cli
from atled.checkpoints.format import CheckpointError
from atled.data import download
from atled.inspect import doctor
from atled.jax import port


def main(args: Sequence[str] | None = None) -> int:
    """Run a command of `atled`; returns the exit status."""
    parser = argparse.ArgumentParser("atled", description="Command line tools of atled.")
    parser.add_argument("--version", action="version", version=f"atled {atled.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="checkpoint | data | doctor | port")
    cli.add(subparsers)
    download.add(subparsers)
    doctor.add(subparsers)
    port.add(subparsers)
    options = parser.parse_args(args)
    try:
        return options.run(options)
    except CheckpointError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
