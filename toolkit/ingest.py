"""Reads captures and kernel logs, recognised by their contents, into a workspace; each file is read only once.

One transaction per input, captures first, so that a log finds its flow. How octets become
rows is in toolkit/capture.py and toolkit/logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from hindflight.toolkit.capture import CaptureStream
from hindflight.toolkit.capture_writer import CAPTURE_TABLES, Progress, silent, write_capture
from hindflight.toolkit.errors import LogError
from hindflight.toolkit.files import sha256_of
from hindflight.toolkit.logs import KernelLog, log_kind, read_log
from hindflight.toolkit.logs.join import find_flow, own_flow
from hindflight.toolkit.schema import table_from_rows
from hindflight.toolkit.units import counted
from hindflight.toolkit.workspace import Transaction, Workspace

SpanOf = Callable[[Path], tuple[int | None, int | None]]
"""Called with a capture; returns the times (ns since 1970) from and to which it is read, None for no limit."""


def all_of_it(_path: Path) -> tuple[int | None, int | None]:
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
    """How inputs are read into `workspace`: for which `command`, and which flow the logs belong to, if given."""

    workspace: Workspace
    command: str
    flow_id: int | None = None
    progress: Progress = silent
    span_of: SpanOf = all_of_it

    def __call__(self, paths: Iterable[Path]) -> list[Ingested]:
        """Read `paths`. All are checked before the first is read.

        CaptureError, LogError: an input is neither a capture nor a log, or a log fits no flow; the inputs before it
        are in the workspace then.
        """
        kinds = {path: log_kind(path) if path.is_file() else None for path in paths}
        captures = [path for path, kind in kinds.items() if kind is None]
        for path in captures:
            CaptureStream(path)
        return [self._capture(path) for path in captures] + [
            self._log(path, kind) for path, kind in kinds.items() if kind is not None
        ]

    def _capture(self, path: Path) -> Ingested:
        sha256 = sha256_of(path)
        known = self._known(path, sha256)
        if known is not None:
            return known
        with self.workspace.transaction(self.command) as transaction:
            input_id = transaction.add_input(path, "capture", sha256)
            from_ns, to_ns = self.span_of(path)
            stream = CaptureStream(
                path, first_flow_id=transaction.next_flow_id, input_id=input_id, from_ns=from_ns, to_ns=to_ns
            )
            rows = write_capture(stream, transaction, CAPTURE_TABLES, self.progress)
            note = f"{counted(rows['segments'], 'segment')}, {counted(rows['flows'], 'flow')}"
            transaction.note(input_id, note)
        return Ingested(path, "capture", input_id, False, rows["issues"], note)

    def _log(self, path: Path, kind: str) -> Ingested:
        sha256 = sha256_of(path)
        known = self._known(path, sha256)
        if known is not None:
            return known
        self.progress(path, 0.0)
        logs = read_log(path)
        with self.workspace.transaction(self.command) as transaction:
            input_id = transaction.add_input(path, kind, sha256)
            issues: list[dict[str, object]] = []
            try:
                notes = [self._write_log(log, transaction, input_id, issues) for log in logs]
            except LogError as error:
                raise LogError(f"{path.name}: {error}", error.hint) from error
            transaction.write("issues", table_from_rows("issues", issues))
            note = "; ".join(notes) if len(notes) <= _NOTES else f"{len(notes)} connections"
            transaction.note(input_id, note)
        self.progress(path, 1.0)
        return Ingested(path, kind, input_id, False, len(issues), note)

    def _known(self, path: Path, sha256: str) -> Ingested | None:
        entry = self.workspace.find_input(sha256)
        if entry is None:
            return None
        return Ingested(path, entry.kind, entry.input_id, True, 0, f"already here as input {entry.input_id}")

    def _write_log(
        self, log: KernelLog, transaction: Transaction, input_id: int, issues: list[dict[str, object]]
    ) -> str:
        """Join one connection's log to its flow and write it; return what was done with it."""
        match = find_flow(log, self.workspace, self.flow_id)
        if match is not None:
            flow_id, sends = match.flow_id, match.sender
            note = f"{counted(len(log.t_ns), 'row')} to flow {flow_id}: {match.evidence}"
        elif log.connection is not None:
            flow_id, sends = transaction.new_flow_id(), log.sends
            row = own_flow(log, log.connection, flow_id, input_id)
            transaction.write("flows", table_from_rows("flows", [row]))
            rows = counted(len(log.t_ns), "row")
            note = f"{rows} to flow {flow_id}, made for it: no capture here holds this connection"
        else:
            raise LogError("the log names no connection and fits no flow", "say which flow it is: --flow ID")
        if sends:
            transaction.write("instruments", log.instruments(flow_id))
        else:
            text = f"the logging host only received data on flow {flow_id}: its rows are in variables alone"
            issues.append({"record": 0, "offset": 0, "kind": "log_of_receiver", "text": text, "input_id": input_id})
        transaction.write("variables", log.variables(flow_id))
        issues += [asdict(issue) | {"input_id": input_id} for issue in log.issues]
        return note


_NOTES = 3
"""Up to this many connections of one log are listed in its note."""
