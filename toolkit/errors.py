"""The one tree of errors a user can meet. Ground floor: every room may import it; it imports nothing.

HindflightError
├── CaptureError     the input is no capture, or cannot be read
├── LogError         the input is no kernel log, or belongs to no flow here
├── WorkspaceError   the folder is not a workspace, or is damaged
├── QueryError       the SQL is not one SELECT, or fails
├── ChannelError     a channel trace cannot be extracted, read or used
├── ScenarioError    a scenario file is wrong: key path and allowed values
├── ControllerError  a controller in Python raises, or leaves no window
├── ReportError      a report cannot be drawn from these tables
└── MachineError     disk, permission or memory (exit code 3)
"""

from __future__ import annotations


class HindflightError(Exception):
    """What happened, in one line; `hint` says what to do next. Exit code 2 unless a subclass says otherwise."""

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class CaptureError(HindflightError):
    """The input is no capture, or cannot be read."""


class LogError(HindflightError):
    """The input is no kernel log, or belongs to no flow here."""


class WorkspaceError(HindflightError):
    """The folder is not a workspace, or is damaged."""


class QueryError(HindflightError):
    """The SQL is not one SELECT, or fails."""


class ChannelError(HindflightError):
    """A channel trace cannot be extracted, read or used."""


class ScenarioError(HindflightError):
    """A scenario file is wrong; the message names the key path and the allowed values."""


class ControllerError(HindflightError):
    """A controller in Python raised, or left what is no window; the cause is what it raised."""


class ReportError(HindflightError):
    """A report cannot be drawn from these tables."""


class MachineError(HindflightError):
    """The machine's fault: disk full, no permission, out of memory."""

    exit_code = 3
