"""Libraries that read flight logs: optional, imported when a log needs them, and never trusted with a damaged file."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from hindflight.toolkit.errors import HindflightError, LogError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.flight.model import Samples
from hindflight.toolkit.logs.octets import LogFile
from hindflight.toolkit.text import printable


def library(name: str, file: LogFile, what: str) -> ModuleType:
    """Import the module `name`, which reads `file`, `what` it is. LogError: it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        text = f"{file.name} is {what}, and {name.partition('.')[0]}, which reads it, is not installed"
        raise LogError(text, "install it: pip install 'hindflight[flight]'") from None


@contextlib.contextmanager
def unpacked_file(file: LogFile) -> Iterator[Path]:
    """Give the name of a file with the content of `file`, for libraries that open it themselves."""
    with contextlib.ExitStack() as held:
        with plain_os_errors(f"copying {file.name} to a temporary file"):
            copy = held.enter_context(tempfile.NamedTemporaryFile(prefix="hindflight-", suffix=".bin"))
            for chunk in file.chunks():
                copy.write(chunk)
            copy.flush()
        yield Path(copy.name)


class _Said(io.TextIOBase):
    """Takes what a library prints; keeps the first line and counts the others."""

    def __init__(self) -> None:
        self.first = ""
        self.lines = 0

    def write(self, text: str, /) -> int:
        """Take in `text`."""
        self.first = self.first or text.strip()[:200]
        self.lines += text.count("\n")
        return len(text)


def guarded(file: LogFile, read: Callable[[], Iterator[Samples]]) -> Iterator[Samples]:
    """Yield what `read` does; what the library prints, and an error that ends the log, become issues."""
    said = _Said()
    yield from _guarded(file, read, said)
    if said.lines:
        text = f"{said.lines} messages of the library about damage, the first: {printable(said.first)}"
        file.issues.add(0, 0, "log_damaged", text)


def _guarded(file: LogFile, read: Callable[[], Iterator[Samples]], said: _Said) -> Iterator[Samples]:
    samples = read()
    number = 0
    while True:
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                part = next(samples, None)
        except (HindflightError, MemoryError):
            raise
        except Exception as error:
            text = f"the rest of the log cannot be read: {type(error).__name__} {error}"[:300]
            file.issues.add(number, 0, "log_damaged", printable(" ".join(text.split())))
            return
        if part is None:
            return
        number += len(part.t_ns)
        yield part
