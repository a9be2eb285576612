"""Reads captures into tables: the typed interface of the native reader.

Does not depend on workspaces or the command line. A damaged record becomes a row of `issues`; only a file that is not a
capture raises an error. toolkit/schema describes the tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hindflight import _native
from hindflight.toolkit.errors import CaptureError, HindflightError, MachineError
from hindflight.toolkit.files import note_content
from hindflight.toolkit.schema import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

STANDARD_INPUT = "-"
"""The path that means standard input."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A capture, or the files of one, to be merged in the order of time."""

BATCH_ROWS = 65_536
"""Rows of a batch of `segments`: some 10 MB."""


class Traffic(NamedTuple):
    """How much there was of one kind of traffic; `frame_bytes` sums lengths on the wire."""

    packets: int
    frame_bytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a capture holds, as far as it has been read.

    `link_type` names those of all interfaces; `resolution_ns` is the coarsest of theirs; `snaplen_bytes` 0 where the
    file sets no limit. `other` counts what is not a TCP segment, by kind: udp, icmp, arp, tcp_fragment (fragments after
    the first), other_ip, not_ip, undecoded (each of these is an issue as well). Packets outside the times asked for are
    counted in `outside_window_packets` and nowhere else.
    """

    compression: str
    link_type: str
    snaplen_bytes: int
    resolution_ns: int
    start_ns: int | None
    end_ns: int | None
    packets: int
    tcp: Traffic
    other: dict[str, Traffic]
    outside_window_packets: int
    bytes_read: int
    bytes_total: int


class CaptureStream:
    """An open capture, read once from front to back with constant memory per live connection.

    Iterate over `batches()`; `flows()`, `events()`, `instruments()`, `others()` and `issues()` give the rows that have
    become certain since their last call, so that a long capture can be written away batch by batch. After the last
    batch all rows are there.
    """

    def __init__(  # noqa: PLR0913 - named ones, each with its default
        self,
        path: Paths,
        *,
        first_flow_id: int = 1,
        input_id: int | Sequence[int] = 0,
        from_ns: int | None = None,
        to_ns: int | None = None,
        outer: bool = False,
        fix_clock: bool = False,
    ) -> None:
        """Open `path`, recognised by its contents: pcap, pcapng, snoop or ERF; plain, xz, gzip, zstd, bzip2 or lz4.

        `-` is standard input; named pipes are read too. Several paths, each with its `input_id`, are the files of one
        capture, merged in the order of time; their order does not matter, and records are counted through. Times are
        since 1970-01-01 UTC; packets before `from_ns` or not before `to_ns` are skipped. With `outer`, tunnels are
        not opened and their packets are rows of `others`. With `fix_clock`, the times of a clock that was set, or of
        two clocks, are corrected; the files are then read several times. CaptureError if a file is missing or not a
        capture that can be read, MachineError if the system refuses to read it.
        """
        self.paths = _listed(path)
        if fix_clock:
            _check_clock_can_be_fixed(self.paths, from_ns, to_ns)
        self.path = self.paths[0]
        input_ids = [input_id] if isinstance(input_id, int) else list(input_id)
        with _refusals(self.paths):
            self._reader = _native.CaptureReader(
                self.paths,
                first_flow_id=first_flow_id,
                input_ids=input_ids,
                from_ns=from_ns,
                to_ns=to_ns,
                outer=outer,
                fix_clock=fix_clock,
            )

    def first_time_ns(self) -> int | None:
        """Return the time of the first TCP segment, None without any. This consumes the segment."""
        batch = next((batch for batch in self.batches(1) if batch.num_rows), None)
        return None if batch is None else int(batch["t_ns"][0].as_py())

    def batches(self, max_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `segments` in the order of the capture, at most `max_rows` (1 to 2**24) at a time.

        A batch comes at least every 65,536 packets without a segment, if need be without a row.
        """
        while (columns := self._reader.read_batch(max_rows)) is not None:
            yield _typed("segments", columns)

    def flows(self) -> pa.Table:
        """Return the rows of `flows` whose connection has ended since the last call."""
        return _table("flows", self._reader.flows)

    def events(self) -> pa.Table:
        """Return the rows of `events` since the last call, in the order in which they became certain."""
        return _table("events", self._reader.events)

    def instruments(self) -> pa.Table:
        """Return the rows of `instruments` (source `inferred`) since the last call."""
        return _table("instruments", self._reader.instruments)

    def others(self) -> pa.Table:
        """Return the rows of `others` since the last call."""
        return _table("others", self._reader.others)

    def issues(self) -> pa.Table:
        """Return the rows of `issues` since the last call."""
        return _table("issues", self._reader.issues)

    def progress(self) -> tuple[int, int]:
        """Return the octets of the file read so far, and all of them (0 where it has no size)."""
        return self._reader.progress()

    def sha256(self) -> str | None:
        """Return the SHA-256 of a pipe that has been read to its end, None for files."""
        return self._reader.sha256()

    def summary(self) -> Summary:
        """Return what has been read so far, counted."""
        found = self._reader.summary()
        bytes_read, bytes_total = self._reader.progress()
        return Summary(
            compression=found["compression"],
            link_type=found["link_type"],
            snaplen_bytes=found["snaplen_bytes"],
            resolution_ns=found["resolution_ns"],
            start_ns=found["start_ns"],
            end_ns=found["end_ns"],
            packets=found["packets"],
            tcp=Traffic(*found["tcp"]),
            other={kind: Traffic(*count) for kind, count in found["other"].items()},
            outside_window_packets=found["outside_window_packets"],
            bytes_read=bytes_read,
            bytes_total=bytes_total,
        )


class TextStream:
    """Rows of a capture as text, in one pass that builds no tables; memory does not depend on its length."""

    _rows: _native.TcptraceRows | _native.WiresharkRows | _native.FlowRows

    def __init__(self, paths: Paths) -> None:
        """Keep the `paths`: of a capture, or of the files of one. CaptureError: they cannot be merged."""
        self.paths = _listed(paths)
        check_mergeable(self.paths)

    def text(self) -> Iterator[bytes]:
        """Yield a line of names and the rows as CSV, or JSON objects with commas between them; can be interrupted."""
        while (text := self._rows.read()) is not None:
            if text:
                yield text

    def issues(self) -> list[tuple[Path, int, int, str]]:
        """Return what was damaged: file, number of the record in it, offset, a sentence. Complete after `text`."""
        return [(self.paths[file], record, offset, text) for file, record, offset, text in self._rows.issues()]


class TcptraceStream(TextStream):
    """The connections of a capture, counted as tcptrace counts; docs/parity.md describes the fields.

    Where there are very many connections, rows of those that have ended come before the end, and out of order.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        json: bool = False,
        from_ns: int | None = None,
        to_ns: int | None = None,
        outer: bool = False,
    ) -> None:
        """Open `paths`; parameters and errors as those of `CaptureStream`."""
        super().__init__(paths)
        with _refusals(self.paths):
            self._rows = _native.TcptraceRows(self.paths, json=json, from_ns=from_ns, to_ns=to_ns, outer=outer)


class WiresharkStream(TextStream):
    """The segments of a capture, analysed as Wireshark analyses them; docs/parity.md describes the fields."""

    def __init__(self, paths: Paths, *, json: bool = False) -> None:
        """Open `paths`; parameters and errors as those of `CaptureStream`."""
        super().__init__(paths)
        with _refusals(self.paths):
            self._rows = _native.WiresharkRows(self.paths, json=json)


class FlowStream(TextStream):
    """The table `flows` of a capture, most payload first; all columns, `input_id` 1."""

    def __init__(self, paths: Paths, *, json: bool = False) -> None:
        """Open `paths`; parameters and errors as those of `CaptureStream`."""
        super().__init__(paths)
        with _refusals(self.paths):
            self._rows = self._flows = _native.FlowRows(self.paths, json=json)

    def totals(self) -> tuple[int, int]:
        """Return the number of flows and the time of the first segment in ns (0 without one), after the first text."""
        flows, start_ns = self._flows.totals()
        return flows, start_ns or 0


def _listed(paths: Paths) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]


def is_stream(path: Path) -> bool:
    """Whether `path` can be read only once: standard input, a named pipe, a device."""
    return str(path) == STANDARD_INPUT or (path.exists() and not path.is_file() and not path.is_dir())


def shown(path: Path) -> str:
    """Return `path` as messages name it."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def check_mergeable(paths: Sequence[Path]) -> None:
    """CaptureError unless `paths` can be the files of one capture: no pipe among several, none twice."""
    if not paths:
        raise CaptureError("no file is given", "give a capture, or the files of one")
    if len(paths) == 1:
        return
    seen: dict[str, Path] = {}
    for path in paths:
        if is_stream(path):
            raise CaptureError(f"{shown(path)} is a pipe and cannot be merged", "save it to a file first")
        if path.is_dir():
            raise CaptureError(f"{path} is a folder, and only captures are merged", "give a workspace alone")
        twin = note_content(path, seen)
        if twin is not None:
            raise CaptureError(
                f"{path} and {twin} have the same content: merged, their packets would count twice",
                "leave one of them out",
            )


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture that fits into memory, as tables."""

    path: Path
    segments: pa.Table
    flows: pa.Table
    events: pa.Table
    instruments: pa.Table
    others: pa.Table
    issues: pa.Table
    summary: Summary


def load_capture(  # noqa: PLR0913 - as those of `CaptureStream`
    path: Paths,
    *,
    first_flow_id: int = 1,
    input_id: int | Sequence[int] = 0,
    from_ns: int | None = None,
    to_ns: int | None = None,
    outer: bool = False,
    fix_clock: bool = False,
) -> Capture:
    """Read all of `path` into memory; parameters and errors as those of `CaptureStream`."""
    import pyarrow as pa

    stream = CaptureStream(
        path,
        first_flow_id=first_flow_id,
        input_id=input_id,
        from_ns=from_ns,
        to_ns=to_ns,
        outer=outer,
        fix_clock=fix_clock,
    )
    segments = pa.Table.from_batches(stream.batches(), arrow_schema("segments"))
    return Capture(
        path=stream.path,
        segments=segments,
        flows=stream.flows(),
        events=stream.events(),
        instruments=stream.instruments(),
        others=stream.others(),
        issues=stream.issues(),
        summary=stream.summary(),
    )


def pcapng_head(application: str, comment: str) -> bytes:
    """Return the head of a pcapng file written by `application`: one Ethernet interface, times in ns."""
    return _native.pcapng_head(application, comment)


def pcapng_packets(rows: pa.RecordBatch) -> bytes:
    """Return `rows` as packets of a pcapng file, headers alone.

    Columns are those of `segments`, `src` and `dst` (4 or 16 octets), `src_port`, `dst_port` and `comment`.
    ValueError: a capture cannot represent a packet; its number and why.
    """
    return _native.pcapng_packets(rows)


def _typed(name: str, columns: _native.Columns) -> pa.RecordBatch:
    """Wrap native columns as rows of table `name`, with its metadata; nothing is copied."""
    import pyarrow as pa

    batch = pa.record_batch(columns)
    schema = arrow_schema(name)
    if not batch.schema.equals(schema):
        raise TypeError(f"the native core's table {name} is not what toolkit/schema declares: {batch.schema}")
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _table(name: str, read: Callable[[], _native.Columns]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([_typed(name, read())])


def _check_clock_can_be_fixed(paths: Sequence[Path], from_ns: int | None, to_ns: int | None) -> None:
    """CaptureError if a file cannot be read twice, or a part is to be cut out by times that are about to change."""
    for path in paths:
        if is_stream(path):
            raise CaptureError(
                f"{shown(path)} can be read only once, --fix-clock takes more", "save it to a file first"
            )
    if (from_ns, to_ns) != (None, None):
        raise CaptureError(
            "--from and --to are times of the capture, which --fix-clock changes",
            "ingest all of it, and give --from and --to to the commands that read the workspace",
        )


@contextmanager
def _refusals(paths: Sequence[Path]) -> Iterator[None]:
    """Raise what the native reader refuses as our errors."""
    try:
        yield
    except OSError as error:
        raise _unreadable(Path(error.filename or paths[0]), error) from error
    except ValueError as error:
        what, hint, index, unknown = error.args
        refused = paths[index]
        if unknown and refused.is_file():
            from hindflight.toolkit.recognition import refusal

            what, hint = refusal(refused, what)
        elif unknown and is_stream(refused):
            hint = "only captures are read from a pipe; save a log to a file, and give that"
        raise CaptureError(f"{shown(refused)} {what}", hint) from error


def _unreadable(path: Path, error: OSError) -> HindflightError:
    if isinstance(error, FileNotFoundError):
        return CaptureError(f"{path} does not exist")
    if os.path.isdir(path):  # unlike Path.is_dir, answers also where a folder above may not be entered
        return CaptureError(f"{path} is a folder", "give a capture file, or a folder that is a workspace")
    if isinstance(error, PermissionError):
        return MachineError(f"{path} may not be read", "check its permissions")
    if path.is_socket():
        return CaptureError(f"{path} is a socket", "give a file, a named pipe, or - for standard input")
    return MachineError(f"{path} cannot be read: {error}")
