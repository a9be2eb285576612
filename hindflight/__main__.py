"""The `hindflight` command: handles SIGINT and SIGTERM and runs the command line."""

from __future__ import annotations

import sys

from hindflight.cli import stop


def main() -> int:
    """Run the command line and return its exit code."""
    stop.handle()
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
