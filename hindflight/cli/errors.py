"""From exception to exit code: one line and a hint on stderr, never a traceback unless `--debug` asks for it.

2 the user's mistake, 3 the machine's, 1 ours, 130 interrupted, 143 terminated, 141 when nobody reads our output.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from hindflight.cli import stop
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.text import printable

OURS, USER, MACHINE, BROKEN_PIPE = 1, 2, 3, 141


def run(command: Callable[[list[str]], Any], arguments: list[str]) -> int:
    """Run `command` with `arguments` less `--debug`, and return the exit code; every error is reported in one line."""
    words, debug = _without_debug(arguments)
    try:
        result = command(words)
        sys.stdout.flush()
    except Exception as error:
        result = stop.requested()
        # What Python or a library makes of the exception that a signal raised is no error; a failure of ours may be.
        if result is None or isinstance(error, HindflightError | OSError):
            code = _report(error, debug)
            result = code if result is None else result
        if debug and not isinstance(error, BrokenPipeError):
            traceback.print_exc()
    except KeyboardInterrupt:
        result = stop.INTERRUPTED
    except SystemExit as end:
        # Typer turns a broken pipe into this before we see it.
        result = BROKEN_PIPE if isinstance(end.__context__, BrokenPipeError) else end.code
    code = result if isinstance(result, int) else 0
    if code in {stop.INTERRUPTED, stop.TERMINATED}:
        stop.report(code)
    return code


def _report(error: Exception, debug: bool) -> int:
    from hindflight.toolkit.files import os_error

    match error:
        case HindflightError():
            shown, code = error, error.exit_code
        case BrokenPipeError():
            # What is still buffered has nowhere to go; without this the interpreter complains at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        case typer.TyperException() if type(error).__name__ == "NoArgsIsHelpError":
            print(getattr(error, "format_message", lambda: str(error))())  # A group alone asks for its help.
            return 0
        case typer.TyperException():
            _say(_usage(error), "hindflight --help, or hindflight COMMAND --help")
            return USER
        case MemoryError():
            _say("out of memory", "give a part of the capture, or a machine with more memory")
            return MACHINE
        case OSError():
            shown = os_error(error, f"using {error.filename}" if error.filename else "reading or writing")
            code = shown.exit_code
        case _:
            _say(
                f"this is a bug in hindflight: {type(error).__name__}: {_line(str(error))}",
                "please report it" if debug else "run again with --debug and report what it prints",
            )
            return OURS
    for line in (shown.message, *shown.others):
        _say(_line(line))
    _hint(shown.hint)
    return code


def _usage(error: Exception) -> str:
    message = getattr(error, "format_message", lambda: str(error))()
    return _line(message)


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [word for word in arguments[:end] if word != "--debug"]
    return words + arguments[end:], len(words) < end


def _line(text: str) -> str:
    """Return the message of another library in one line."""
    return " ".join(text.split()).rstrip(".")


def _say(message: str, hint: str | None = None) -> None:
    print(f"hindflight: {printable(message)}", file=sys.stderr)
    _hint(hint)


def _hint(hint: str | None) -> None:
    if hint:
        print(f"  hint: {printable(hint)}", file=sys.stderr)
