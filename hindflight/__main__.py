"""The `hindflight` command: handles SIGINT and SIGTERM and runs the command line."""

from __future__ import annotations

import gc
import sys

from hindflight.cli import stop

COLLECTED_AFTER = 20_000
"""New objects between two looks for garbage in cycles. Modules and rows of tables are far more objects than Python's
own 700 are meant for, and hardly any of them are in cycles."""


def main() -> int:
    """Run the command line and return its exit code."""
    stop.handle()
    gc.set_threshold(COLLECTED_AFTER)
    from hindflight.cli.app import main as run

    try:
        stop.set_running(True)
        code = run(sys.argv[1:])
        stop.set_running(False)
    except (KeyboardInterrupt, SystemExit):
        # A signal came before `run` could catch it, or after.
        requested = stop.requested()
        if requested is None:
            raise
        stop.report(requested)
        return requested
    return code


if __name__ == "__main__":
    sys.exit(main())
