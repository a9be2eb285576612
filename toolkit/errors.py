"""The tree of errors that a user can meet, and suggestions for an unknown name.

Every package may import this module; it imports nothing of ours.

HindflightError
├── CaptureError     the input is not a capture, or cannot be read
├── LogError         the input is not a kernel log, or belongs to no flow of the workspace
├── WorkspaceError   the folder is not a workspace, or is damaged
├── UnknownTableError  there is no table of this name; a KeyError and an AttributeError too
├── QueryError       the SQL is not one SELECT, or fails
├── ChannelError     a channel trace cannot be extracted, read or used
├── ScenarioError    a scenario file is wrong: key path and allowed values
├── ControllerError  a controller in Python raises, or leaves an invalid window
├── ReportError      a report cannot be drawn from these tables
└── MachineError     disk, permission or memory (exit code 3)
"""

from __future__ import annotations

from collections.abc import Iterable

MIN_SIMILARITY = 0.6
"""Minimum similarity (0 to 1) of a name that is suggested."""
MAX_DIFFERENCE = 0.05
"""How much less similar than the best match another suggested name may be."""


def did_you_mean(given: str, names: Iterable[str], *, lead: str = "") -> str:
    """Return `lead` and a question that suggests the best matches of `given` among `names`; "" without a match."""
    from difflib import SequenceMatcher

    similarity = {name: SequenceMatcher(None, name, given.lower()).ratio() for name in names}
    enough = max(MIN_SIMILARITY, max(similarity.values(), default=0) - MAX_DIFFERENCE)
    best = " or ".join(repr(name) for name in similarity if similarity[name] >= enough)
    return best and f"{lead}did you mean {best}?"


class HindflightError(Exception):
    """What happened, in one line; `hint` says what to do next. Exit code 2 unless a subclass says otherwise.

    `others` has a line for each further error of the same input; the text of the error is all lines.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None, others: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.others = others

    def __str__(self) -> str:
        return "\n".join((self.message, *self.others))


class CaptureError(HindflightError):
    """The input is not a capture, or cannot be read."""


class LogError(HindflightError):
    """The input is not a kernel log, or belongs to no flow of the workspace."""


class WorkspaceError(HindflightError):
    """The folder is not a workspace, or is damaged."""


class UnknownTableError(HindflightError, KeyError, AttributeError):
    """There is no table of this name. A KeyError and an AttributeError too, as mappings and attributes require."""

    __str__ = Exception.__str__  # That of KeyError would quote the message.


class QueryError(HindflightError):
    """The SQL is not one SELECT, or fails."""


class ChannelError(HindflightError):
    """A channel trace cannot be extracted, read or used."""


class ScenarioError(HindflightError):
    """A scenario file is wrong; the message names the key path and the allowed values."""


class ControllerError(HindflightError):
    """A controller in Python raised, or left an invalid window; the cause is what it raised."""


class ReportError(HindflightError):
    """A report cannot be drawn from these tables."""


class MachineError(HindflightError):
    """The machine's fault: disk full, no permission, out of memory."""

    exit_code = 3


AT_SENDER = "at-sender.pcapng"
"""Name of a capture at the receiver that was rebuilt as its sender's."""


def rebuild_hint(number: int) -> str:
    """Return what to do where flow `number` was captured at the receiver, and the sender's capture is needed."""
    return f"rebuild its sender's: hindflight export CAPTURE --format pcapng --at-sender --flow {number} -o {AT_SENDER}"
