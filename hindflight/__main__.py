"""The `hindflight` command: handles SIGINT and SIGTERM and runs the command line."""

from __future__ import annotations

import sys

from hindflight.cli import stop


def main() -> int:
    """Run the command line and return its exit code."""
    stop.handle()
    from hindflight.cli.app import main as run

    try:
        stop.unwind(True)
        code = run(sys.argv[1:])
        stop.unwind(False)
    except (KeyboardInterrupt, SystemExit):
        # A signal came before `run` could catch it, or after.
        stop.unwind(False)
        asked = stop.asked()
        if asked is None:
            raise
        print(stop.line(asked), file=sys.stderr)
        return asked
    return code


if __name__ == "__main__":
    sys.exit(main())
