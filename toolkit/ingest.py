"""Reads captures, kernel logs and flight logs, recognised by content, into a workspace; each file only once.

One transaction per input, captures first, so that a log finds its flow. How octets become
rows is in toolkit/capture.py, toolkit/logs and toolkit/flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hindflight.toolkit.capture import CaptureStream, check_mergeable, is_stream, shown
from hindflight.toolkit.capture_writer import CAPTURE_TABLES, Progress, silent, write_capture
from hindflight.toolkit.errors import CaptureError, MachineError, WorkspaceError
from hindflight.toolkit.files import sha256_of
from hindflight.toolkit.flight import FlightReading
from hindflight.toolkit.flight.writer import write_flight_log
from hindflight.toolkit.log_writer import Joining, write_log
from hindflight.toolkit.logs import KINDS, LogReading
from hindflight.toolkit.recognition import kind_of
from hindflight.toolkit.sender_view.mark import NOTE
from hindflight.toolkit.units import counted
from hindflight.toolkit.workspace import Transaction, Workspace

SpanOf = Callable[[Sequence[Path]], tuple[int | None, int | None]]
"""Called with the files of a capture; returns times (ns since 1970) from and to which it is read, None for all."""


def all_of_it(_paths: Sequence[Path]) -> tuple[int | None, int | None]:
    """Read a capture from its start to its end."""
    return None, None


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of one input. `known`: it was in the workspace already and nothing was done."""

    path: Path
    kind: str
    input_id: int
    known: bool
    issues: int
    note: str


@dataclass(frozen=True, slots=True)
class Ingest:
    """How inputs are read into `workspace`: for which `command`, and which flow the logs belong to, if given.

    With `merge`, all captures are the files of one, for example a ring buffer. `clock_offset_ns` is added to the times
    of the logs. With `outer`, tunnels are not opened; with `fix_clock`, the times of captures are corrected.
    """

    workspace: Workspace
    command: str
    flow_id: int | None = None
    progress: Progress = silent
    span_of: SpanOf = all_of_it
    merge: bool = False
    clock_offset_ns: int | None = None
    outer: bool = False
    fix_clock: bool = False

    def __call__(self, paths: Iterable[Path]) -> list[Ingested]:
        """Read `paths`. All are checked before the first is read.

        A pipe is checked when it is read. CaptureError, LogError: an input is neither a capture nor a log, or a log
        fits no flow; the inputs before it are in the workspace then.
        """
        given = list(paths)
        kinds = {path: kind_of(path) if path.is_file() else None for path in given}
        files = [path for path in given if kinds[path] is None]
        if self.merge and files:
            check_mergeable(files)
        captures = [files] if self.merge and files else [[path] for path in dict.fromkeys(files)]
        for path in files:
            if not is_stream(path):
                CaptureStream(path)
        done = [one for capture in captures for one in self._capture(capture)]
        return done + [self._log(path, kind) for path, kind in kinds.items() if kind is not None]

    def _capture(self, paths: Sequence[Path]) -> list[Ingested]:
        """Read one capture, whose files are merged."""
        digests = {path: "" if is_stream(path) else sha256_of(path) for path in paths}
        limits = self.span_of(paths)
        options = self._capture_options(limits)
        known = [found for path, sha256 in digests.items() if sha256 and (found := self._known(path, sha256, options))]
        if len(known) == len(paths):
            return known
        if known:
            raise CaptureError(
                f"{known[0].path} is {known[0].note}: merged again, its packets would count twice",
                "merge the files into a new workspace",
            )
        try:
            with self.workspace.transaction(self.command) as transaction:
                return self._read_capture(digests, limits, options, transaction)
        except _AlreadyHereError as found:
            return [found.entry]

    def _capture_options(self, limits: tuple[int | None, int | None]) -> str:
        """The options on which the rows of a capture depend, times in ns since 1970."""
        named = {"--from": limits[0], "--to": limits[1]}
        times = [f"{name} {ns}" for name, ns in named.items() if ns is not None]
        given = {"--outer": self.outer, "--fix-clock": self.fix_clock}
        return " ".join([*(name for name, is_given in given.items() if is_given), *times])

    def _log_options(self) -> str:
        """The options on which the rows of a log depend."""
        flow = [] if self.flow_id is None else [f"--flow {self.flow_id}"]
        offset = [] if self.clock_offset_ns is None else [f"--clock-offset {self.clock_offset_ns / 1e9:.9g}"]
        return " ".join([*flow, *offset])

    def _read_capture(
        self, digests: dict[Path, str], limits: tuple[int | None, int | None], options: str, transaction: Transaction
    ) -> list[Ingested]:
        input_ids = [
            transaction.add_input(path, "capture", sha256, options)
            if sha256
            else transaction.add_stream(path, "capture", options)
            for path, sha256 in digests.items()
        ]
        paths = list(digests)
        from_ns, to_ns = limits
        stream = CaptureStream(
            paths,
            first_flow_id=transaction.next_flow_id,
            input_id=input_ids,
            from_ns=from_ns,
            to_ns=to_ns,
            outer=self.outer,
            fix_clock=self.fix_clock,
        )
        rows = write_capture(stream, transaction, CAPTURE_TABLES, self.progress)
        if not all(digests.values()):
            self._complete_stream(stream, transaction, input_ids[0], options)
        files = {input_id: path for input_id, path in zip(input_ids, paths, strict=True) if digests[path]}
        rebuilt = transaction.mark_rebuilt(files)
        note = (
            f"{counted(rows['segments'], 'segment')}, {counted(rows['flows'], 'flow')}{f', {NOTE}' if rebuilt else ''}"
        )
        transaction.note(input_ids[0], note)
        merged = f"merged with {shown(paths[0])}"
        for input_id in input_ids[1:]:
            transaction.note(input_id, merged)
        notes = [(note, rows["issues"])] + [(merged, 0)] * (len(paths) - 1)
        return [
            Ingested(path, "capture", input_id, False, issues, text)
            for path, input_id, (text, issues) in zip(paths, input_ids, notes, strict=True)
        ]

    def _complete_stream(self, stream: CaptureStream, transaction: Transaction, input_id: int, options: str) -> None:
        """Say what was read of a pipe; _AlreadyHereError: the workspace holds it."""
        sha256 = stream.sha256()
        if sha256 is None:
            raise MachineError(f"{shown(stream.path)} was not read to its end")
        known = self._known(stream.path, sha256, options)
        if known is not None:
            raise _AlreadyHereError(known)
        transaction.complete_stream(input_id, stream.progress()[0], sha256)

    def _log(self, path: Path, kind: str) -> Ingested:
        sha256 = sha256_of(path)
        options = self._log_options()
        known = self._known(path, sha256, options)
        if known is not None:
            return known
        self.progress(path, 0.0)
        with self.workspace.transaction(self.command) as transaction:
            input_id = transaction.add_input(path, kind, sha256, options)
            note, issues = self._write_log(path, kind, transaction, input_id)
            transaction.note(input_id, note)
        self.progress(path, 1.0)
        return Ingested(path, kind, input_id, False, issues, note)

    def _write_log(self, path: Path, kind: str, transaction: Transaction, input_id: int) -> tuple[str, int]:
        if kind in KINDS:
            joining = Joining(self.workspace, self.flow_id, self.clock_offset_ns)
            return write_log(LogReading(path, kind), joining, transaction, input_id)
        reading = FlightReading(path, kind)
        return write_flight_log(reading, self.workspace, transaction, input_id, self.clock_offset_ns)

    def _known(self, path: Path, sha256: str, options: str) -> Ingested | None:
        """What the workspace holds of a file. WorkspaceError: it was read with other options than `options`."""
        entry = self.workspace.find_input(sha256)
        if entry is None:
            return None
        here = f"already here as input {entry.input_id}"
        if entry.options != options:
            read, asked = (
                text or "none of --from, --to, --outer, --fix-clock, --flow, --clock-offset"
                for text in (entry.options, options)
            )
            raise WorkspaceError(
                f"{shown(path)} is {here}, read with other options: {read}; now {asked}",
                "leave the options as they were, or read it into a new workspace",
            )
        return Ingested(path, entry.kind, entry.input_id, True, 0, here)


class _AlreadyHereError(Exception):
    """Ends a transaction in which a pipe turned out to deliver a capture that the workspace holds."""

    def __init__(self, entry: Ingested) -> None:
        super().__init__(entry.note)
        self.entry = entry
