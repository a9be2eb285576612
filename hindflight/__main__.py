"""The `hindflight` command: handles SIGINT and SIGTERM and runs the command line."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_AGAIN_S = 1.0
"""Time in seconds after which an end that did not happen is asked for again."""


def main() -> int:
    """Run the command line and return its exit code."""
    from hindflight.cli.app import main as run

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # A shell ignores it in the background.
        signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    code = run(sys.argv[1:])
    signal.setitimer(signal.ITIMER_REAL, 0)
    return code


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End as Python does on Ctrl-C."""
    if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
        _ask_again(_interrupt)
        raise KeyboardInterrupt


def _terminate(_number: int, _frame: FrameType | None) -> None:
    """End as on Ctrl-C, so that what is half written is taken away."""
    if not isinstance(sys.exc_info()[1], SystemExit):
        _ask_again(_terminate)
        sys.exit(128 + signal.SIGTERM)


def _ask_again(handler: signal._HANDLER) -> None:
    """Call `handler` again later: a library that calls Python from C may drop the exception that the handler raises."""
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


if __name__ == "__main__":
    sys.exit(main())
