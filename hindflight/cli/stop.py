"""How SIGINT and SIGTERM end the command: with 130 and 143, one line on stderr, and nothing half written.

While a command runs the handler raises an exception, so that what is half written is taken away. Before and after that
nothing is, and it ends the process at once. Imports nothing heavy: it is there before the rest is imported. Until then
both signals do what they do to Python as it starts.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
_AGAIN_S = 0.25
"""Time in seconds after which an end that did not happen is asked for again."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Python ends by SIGINT after a plain KeyboardInterrupt in code that `exec` ran, even if it was caught."""


class _Stop:
    """The exit code that a signal has asked for, and whether there may be something to take away."""

    asked: int | None = None
    unwinds = False


def handle() -> None:
    """Handle both signals from here on, except one that is ignored, as SIGINT is in the background of a shell."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is default:
            signal.signal(number, _end)
    signal.signal(signal.SIGALRM, _end)
    sys.unraisablehook = _report_unraisable


def unwind(unwinds: bool) -> None:
    """Say whether from here on there may be something to take away."""
    _Stop.unwinds = unwinds
    if not unwinds:
        signal.setitimer(signal.ITIMER_REAL, 0)


def asked() -> int | None:
    """Return the exit code that a signal has asked for."""
    return _Stop.asked


def line(code: int) -> str:
    """Return what is said where the command ends with `code`."""
    return f"hindflight: {'interrupted' if code == INTERRUPTED else 'terminated'}"


def _end(number: int, _frame: FrameType | None) -> None:
    code = _CODES.get(signal.Signals(number), _Stop.asked or TERMINATED)
    _Stop.asked = code
    if not _Stop.unwinds:
        os.write(2, f"{line(code)}\n".encode())
        os._exit(code)
    if isinstance(sys.exc_info()[1], (KeyboardInterrupt, SystemExit)):
        return  # It is being taken away.
    # A library that calls Python from C may drop the exception, and Python drops one in a destructor.
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    if code == INTERRUPTED:
        raise Interrupted
    sys.exit(code)


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Report an exception that was dropped, unless a signal raised it: that is raised again."""
    if _Stop.asked is None:
        sys.__unraisablehook__(unraisable)
