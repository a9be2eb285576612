"""Channel traces on disk: a `channel` table as Parquet, with estimates and unknowns in its metadata.

See docs/channels/extract.md and docs/tables.md.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.channels.estimate import STRETCH_ESTIMATES, Estimate, LinkStretch
from hindflight.toolkit.errors import ChannelError, MachineError
from hindflight.toolkit.files import write_whole
from hindflight.toolkit.schema import SCHEMA_VERSION, conform
from hindflight.toolkit.seal import EMPTY_SEAL, PARQUET_KEY, sealed

if TYPE_CHECKING:
    import pyarrow as pa

MAX_RATE_BPS = 1e13
"""Maximum rate in bit/s, as in the engine; more is probably an error of the unit."""

MAX_REASON_CHARS = 120
"""Maximum number of characters of a library's error in a message."""

METADATA_KEY = b"hindflight.channel"
"""Key of the Parquet metadata that holds estimates, unknowns, counts and source as JSON."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A channel table with estimates, unknowns and counts; `source` describes its input (name, sha256, flow_id, and
    `rebuilt`: how a capture at the sender was made from one at the receiver).

    `stretches` are the link between two of its steps, as a capture shows them; none where it was not captured.
    `bursts_or_outages` are the first and the last position of each run of losses that the queue did not make, but of
    which the capture does not show whether they were a burst or an outage. Other losses whose cause is not known may be
    the queue's.
    """

    channel: pa.Table
    estimates: Sequence[Estimate] = ()
    unknowns: Sequence[str] = ()
    counts: dict[str, int] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)
    stretches: Sequence[LinkStretch] = ()
    bursts_or_outages: Sequence[tuple[int, int]] = ()

    def estimate(self, name: str) -> Estimate | None:
        """Return the estimate called `name`; None if there is none."""
        return next((e for e in self.estimates if e.name == name), None)

    def packets(self) -> pa.Table:
        """Return the rows of kind packet."""
        return _of_kind(self.channel, "packet")

    def intervals(self) -> pa.Table:
        """Return the rows of kind interval."""
        return _of_kind(self.channel, "interval")


def _of_kind(channel: pa.Table, kind: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return channel.filter(pc.equal(channel["kind"].cast(pa.string()), kind))


def forward_intervals(trace: Trace) -> pa.Table:
    """Return the intervals of the data direction: that of the packets, or else of the first interval."""
    import pyarrow.compute as pc

    intervals, packets = trace.intervals(), trace.packets()
    if intervals.num_rows == 0:
        return intervals
    of = packets if packets.num_rows else intervals
    direction = of["direction"].cast("string")[0]
    return intervals.filter(pc.equal(intervals["direction"].cast("string"), direction))


def write_trace(trace: Trace, path: Path | str, *, force: bool = True) -> None:
    """Write `trace` to `path`, completely or not at all.

    Raises ChannelError if the table is not a valid channel trace, MachineError if the file cannot be written. Without
    `force`, raises HindflightError if the file must not be replaced (toolkit/files.py).
    """
    import pyarrow.parquet as pq

    path = Path(path)
    channel = _checked(trace.channel, str(path))
    note = {
        "estimates": [dataclasses.asdict(estimate) for estimate in trace.estimates],
        "unknowns": list(trace.unknowns),
        "counts": trace.counts,
        "source": trace.source,
        "stretches": [dataclasses.asdict(stretch) for stretch in trace.stretches],
        "bursts_or_outages": [list(run) for run in trace.bursts_or_outages],
    }
    metadata = {**(channel.schema.metadata or {}), METADATA_KEY: json.dumps(note, allow_nan=False).encode()}
    metadata[PARQUET_KEY] = EMPTY_SEAL.encode()
    octets = io.BytesIO()
    pq.write_table(channel.replace_schema_metadata(metadata), octets, compression="zstd", write_page_checksum=True)
    write_whole(path, sealed(octets.getvalue()), force=force)


def read_trace(path: Path | str) -> Trace:
    """Read a channel trace. Raises ChannelError if the file is not one."""
    path = Path(path)
    if path.is_dir():
        raise ChannelError(f"{path}: is a folder, not a channel trace")
    table = _read_parquet(path)
    metadata = table.schema.metadata or {}
    _check_version(metadata, path)
    channel = _checked(table, str(path))
    try:
        return Trace(channel, **_note(metadata.get(METADATA_KEY, b"{}")))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ChannelError(f"{path}: its metadata cannot be read ({_reason(error)})") from None


def _note(text: bytes) -> dict[str, Any]:
    """Return the metadata as arguments of Trace. Raises ValueError, TypeError or AttributeError if it is damaged."""
    note = json.loads(text)
    estimates = _estimates(note.get("estimates", ()))
    stretches = tuple(_stretch(one) for one in note.get("stretches", ()))
    unknowns, counts, source = tuple(note.get("unknowns", ())), note.get("counts", {}), note.get("source", {})
    if not all(type(text) is str for text in (*unknowns, *source.values())):
        raise ValueError("a text is missing")
    if not all(type(count) is int for count in counts.values()):
        raise ValueError("a count is not a whole number")
    return {
        "estimates": estimates, "unknowns": unknowns, "counts": dict(counts), "source": dict(source),
        "stretches": stretches, "bursts_or_outages": tuple(_run(one) for one in note.get("bursts_or_outages", ())),
    }  # fmt: skip


def _run(ends: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last position of a run of losses of the metadata. Raises ValueError or TypeError if they
    are damaged."""
    first, last = ends
    if type(first) is not int or type(last) is not int or not 0 <= first <= last < 2**63:
        raise ValueError("a run of losses has no positions")
    return first, last


def _stretch(row: dict[str, Any]) -> LinkStretch:
    """Return a stretch of the metadata. Raises ValueError, TypeError or KeyError if it is damaged."""
    start_ns, end_ns, packets = (row[name] for name in ("start_ns", "end_ns", "packets"))
    if not all(type(number) is int for number in (start_ns, end_ns, packets)):
        raise ValueError("a number of a stretch is not whole")
    if start_ns > end_ns or packets < 0:
        raise ValueError("a stretch ends before it begins")
    stretch = LinkStretch(start_ns, end_ns, packets, _estimates(row["estimates"]))
    for name in STRETCH_ESTIMATES:
        stretch.estimate(name)
    return stretch


def _estimates(rows: Sequence[dict[str, Any]]) -> tuple[Estimate, ...]:
    """Return estimates of the metadata. Raises ValueError or TypeError if one is damaged."""
    estimates = tuple(Estimate(**row) for row in rows)
    for estimate in estimates:
        numbers = (estimate.value, estimate.low, estimate.high)
        if not all(number is None or (type(number) in (int, float) and math.isfinite(number)) for number in numbers):
            raise ValueError(f"the estimate {estimate.name!r} has a value that is not a number")
    return estimates


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:  # pyarrow opens no file whose name is not UTF-8
            # In this thread alone: threads that still read ahead when a page turns out to be damaged abort the process.
            table = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True).read(use_threads=False)
        # Checks lengths, indices and text, which the reader does not.
        table.validate(full=True)
        return table
    except FileNotFoundError:
        raise ChannelError(f"{path}: there is no such file") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError) as error:
        # A damaged file is an OSError too, but without errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise MachineError(f"{path}: cannot be read: {error.strerror or error}") from error
        hint = "`hindflight channel extract` writes channel traces"
        raise ChannelError(f"{path}: is not a Parquet file, or is damaged ({_reason(error)})", hint) from None


def _reason(error: Exception) -> str:
    """Return what an error of a library says, as one short printable line."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= MAX_REASON_CHARS else f"{line[:MAX_REASON_CHARS]}…"


def _check_version(metadata: dict[bytes, bytes], path: Path) -> None:
    table = metadata.get(b"hindflight.table")
    if table is not None and table != b"channel":
        raise ChannelError(f"{path}: holds the table `{table.decode(errors='replace')}`, not a channel trace")
    version = metadata.get(b"hindflight.schema_version", b"")
    if version.isdigit() and int(version) > SCHEMA_VERSION:
        raise ChannelError(
            f"{path}: was written with schema {int(version)}, this program supports up to {SCHEMA_VERSION}",
            "use a newer hindflight",
        )


def _checked(table: pa.Table, name: str) -> pa.Table:
    """Return `table` as a channel table. Raises ChannelError with the first row that is not valid."""
    import pyarrow as pa

    for late in ("per", "added_ns", "overlap_ns"):
        # Older files lack these columns.
        if late not in table.column_names:
            table = table.append_column(late, pa.nulls(len(table), pa.float64()))
    try:
        channel = conform("channel", table)
    except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
        raise ChannelError(f"{name}: is not a channel table: {_reason(error)}") from None
    if len(channel) == 0:
        raise ChannelError(f"{name}: the channel table is empty")
    for column in ("rate_bps", "ber", "per"):
        values = channel[column].drop_null().to_numpy()
        if not np.all(np.isfinite(values)) or np.any(values < 0):
            raise ChannelError(f"{name}: {column} must be finite and not negative")
        if column != "rate_bps" and np.any(values > 1):
            raise ChannelError(f"{name}: {column} is a probability and cannot be more than 1")
        if np.any(values > MAX_RATE_BPS):
            raise ChannelError(f"{name}: {column} is {values.max():g}; at most {MAX_RATE_BPS:g}")
    for column in ("t_ns", "delay_ns", "added_ns", "overlap_ns"):
        if np.any(channel[column].drop_null().to_numpy() < 0):
            raise ChannelError(f"{name}: {column} must not be negative")
    _check_packets(_of_kind(channel, "packet"), name)
    check_intervals(_of_kind(channel, "interval"), name)
    return channel


def _check_packets(packets: pa.Table, name: str) -> None:
    t_ns = packets["t_ns"].to_numpy()
    backwards = np.flatnonzero(np.diff(t_ns) < 0)
    if len(backwards):
        raise ChannelError(
            f"{name}: is not sorted by time: packet row {backwards[0] + 1} is earlier than the previous one"
        )
    numbered = packets["position"].is_valid()
    if packets.filter(numbered)["position"].to_pylist() != list(range(packets.filter(numbered).num_rows)):
        raise ChannelError(f"{name}: positions of packets must count 0, 1, 2, … in the order of rows")
    nowhere = packets.filter(packets["position"].is_null())
    if any(nowhere["lost"].to_pylist()):
        raise ChannelError(f"{name}: a packet without a position cannot be lost by the channel")


def check_intervals(intervals: pa.Table, name: str) -> None:
    """Raise ChannelError with the first row of kind interval that is not valid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if intervals["end_ns"].null_count:
        raise ChannelError(f"{name}: an interval lacks end_ns")
    start, end = intervals["t_ns"].to_numpy(), intervals["end_ns"].to_numpy()
    if np.any(end < start):
        raise ChannelError(f"{name}: an interval ends before it starts")
    if np.any(np.diff(start) < 0):
        raise ChannelError(f"{name}: is not sorted by time: an interval starts before the one above it")
    lost = intervals["lost"].to_numpy()
    doubly = np.flatnonzero(intervals["per"].is_valid().to_numpy() & intervals["ber"].is_valid().to_numpy() & ~lost)
    if len(doubly):
        raise ChannelError(
            f"{name}: interval {doubly[0] + 1} has both per and ber", "give one of them, leave the other empty"
        )
    outage = lost & pc.equal(intervals["cause"].cast(pa.string()), "outage").to_numpy()
    where = pc.binary_join_element_wise(intervals["hop"], intervals["direction"].cast(pa.string()), " ")
    for link in where.unique():
        of = pc.equal(where, link).to_numpy()
        for down in (False, True):
            # An outage may interrupt a state, whose rate and delay continue after it.
            rows = np.flatnonzero(of & (outage == down) & (end > start))
            over = np.flatnonzero(start[rows[1:]] < end[rows[:-1]])
            if len(over):
                first, second = rows[over[0]] + 1, rows[over[0] + 1] + 1
                raise ChannelError(
                    f"{name}: intervals {first} and {second} overlap, so the state of the link is ambiguous",
                    "only an outage (lost, cause outage) may overlap another interval of its link and direction",
                )
