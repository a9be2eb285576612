"""How SIGINT and SIGTERM end the command: with 130 and 143, one line on stderr, and nothing half written.

While a command runs the handler raises an exception, so that what is half written is removed. Before and after that
there is nothing to remove, and the handler ends the process at once. Imports nothing heavy: it is there before the rest
is imported. Until then both signals do what they do to Python as it starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
_AGAIN_S = 0.25
"""Time in seconds after which the exception is raised again if the command has not ended."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Python ends by SIGINT after a plain KeyboardInterrupt in code that `exec` ran, even if it was caught."""


class _State:
    """The exit code of the first signal, whether a command runs, and whether its end by a signal has been reported."""

    code: int | None = None
    runs = False
    reported = False


def handle() -> None:
    """Handle both signals from here on, except one that is ignored, as SIGINT is in the background of a shell."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is default:
            signal.signal(number, _on_signal)
    signal.signal(signal.SIGALRM, _on_signal)
    sys.unraisablehook = _report_unraisable


def set_running(runs: bool) -> None:
    """Set whether a command runs, which may have something to remove at its end."""
    _State.runs = runs
    if not runs:
        signal.setitimer(signal.ITIMER_REAL, 0)


def requested() -> int | None:
    """Return the exit code that the first signal requested."""
    return _State.code


def report(code: int) -> None:
    """Write on stderr that a signal ended the command, once. No further signal changes anything."""
    if _State.reported:
        return
    _State.reported = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        with contextlib.suppress(ValueError):  # The object of stderr may be closed.
            print(_message(code), file=sys.stderr, flush=True)
    except OSError:
        # Its descriptor is. The interpreter would write the rest of its buffer at exit, fail, and exit with 120.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _message(code: int) -> str:
    return f"hindflight: {'interrupted' if code == INTERRUPTED else 'terminated'}"


def _on_signal(number: int, _frame: FrameType | None) -> None:
    if _State.reported:
        return
    if _State.code is None:
        _State.code = _CODES.get(signal.Signals(number), TERMINATED)
    if not _State.runs:
        with contextlib.suppress(OSError):  # Stderr may be closed.
            os.write(2, f"{_message(_State.code)}\n".encode())
        os._exit(_State.code)
    # A library that calls Python from C may drop the exception, and Python drops one in a destructor.
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    handled = sys.exc_info()[1]
    if _is_ending(handled) or (handled is not None and number == signal.SIGALRM):
        return  # What is half written is being removed.
    if _State.code == INTERRUPTED:
        raise Interrupted
    sys.exit(_State.code)


def _is_ending(handled: BaseException | None) -> bool:
    """Return whether an exception that ends the command is being handled, also where the handling raised others."""
    while handled is not None:
        if isinstance(handled, (KeyboardInterrupt, SystemExit)):
            return True
        handled = handled.__context__
    return False


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Report an exception that was dropped, unless a signal raised it: that is raised again."""
    if _State.code is None:
        sys.__unraisablehook__(unraisable)
