"""The `hindflight` command: handles SIGTERM and runs the command line."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command line and return its exit code."""
    from hindflight.cli.app import main as run

    signal.signal(signal.SIGTERM, _terminate)
    return run(sys.argv[1:])


def _terminate(number: int, _frame: FrameType | None) -> None:
    """End as on Ctrl-C, so that what is half written is taken away."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
