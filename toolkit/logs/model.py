"""What a kernel log says about one connection, before anybody knows which flow of the workspace it is.

Holds arrays and knows no file format; `hindflight.toolkit.logs.join` adds the flow.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.logs.issues import LogIssue
from hindflight.toolkit.schema import PHASES, TABLES, conform

if TYPE_CHECKING:
    import pyarrow as pa

UTC = "utc"
"""`KernelLog.clock` of a log whose times are since 1970-01-01 UTC."""

MAX_T_NS = 1 << 62
"""Times are below this (year 2116); what is beyond comes from a damaged record."""

BATCH_ROWS = 8192
"""Rows of a part of a log."""

Numbers = npt.NDArray[np.int64]
Masked = np.ma.MaskedArray[Any, Any]
"""An array with a mask: what is masked becomes null."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The four-tuple as the logging host sees it. `opened`: it sent the SYN; None where the log does not say."""

    local_addr: str
    local_port: int
    remote_addr: str
    remote_port: int
    opened: bool | None = None


@dataclass(slots=True)
class KernelLog:
    """A part of one connection's log: a row of `instruments` per time in `t_ns`, and every variable as it was logged.

    A long log comes in several parts. The first `lead` rows of a part repeat the end of the part before it, so that
    differences and changes need no other part; they are not written. `key` is the same for all parts of a connection.

    `columns` holds columns of `instruments` by name, all as long as `t_ns`; those left out are null. `cwnd_pkts` and
    `ssthresh_pkts` stand for the windows of a log that counts segments and does not give their size. `first_una` is set
    where `snd_una` and `snd_nxt` count from this raw sequence number instead of the SYN; `una_shift` is what a reader
    added to the log's count of acknowledged octets, for the parts that follow. `clock` is `utc`, or says what
    the times count from. `sends` is false where the logging host only received data: cwnd is then not the sender's.
    """

    source: str
    t_ns: Numbers
    columns: dict[str, Masked]
    phase: Numbers
    numbers: dict[str, Numbers]
    texts: dict[str, list[str]]
    connection: Connection | None = None
    sends: bool = True
    issues: list[LogIssue] = field(default_factory=list)
    key: Hashable = None
    lead: int = 0
    clock: str = UTC
    cwnd_pkts: Numbers | None = None
    ssthresh_pkts: Masked | None = None
    first_una: int | None = None
    una_shift: int | None = None

    @property
    def start_ns(self) -> int:
        """Time of the first row."""
        return int(self.t_ns[self.lead])

    @property
    def end_ns(self) -> int:
        """Time of the last row."""
        return int(self.t_ns[-1])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.t_ns) - self.lead

    def in_order(self) -> KernelLog:
        """Put the rows in order of time, and say so in `issues` where they were not."""
        back = np.flatnonzero(np.diff(self.t_ns) < 0)
        if len(back):
            order = np.argsort(self.t_ns[self.lead :], kind="stable") + self.lead
            order = np.concatenate((np.arange(self.lead), order))
            self.t_ns, self.phase = self.t_ns[order], self.phase[order]
            self.columns = {name: values[order] for name, values in self.columns.items()}
            self.numbers = {name: values[order] for name, values in self.numbers.items()}
            self.texts = {name: [values[i] for i in order] for name, values in self.texts.items()}
            self.cwnd_pkts = None if self.cwnd_pkts is None else self.cwnd_pkts[order]
            self.ssthresh_pkts = None if self.ssthresh_pkts is None else self.ssthresh_pkts[order]
            text = f"time runs backwards {len(back)} times; the rows were put in order"
            self.issues.append(LogIssue(int(back[0]) + 2 - self.lead, 0, "log_order", text))
        return self

    def last(self) -> KernelLog:
        """Return the last row alone, for the part that follows."""
        return KernelLog(
            self.source,
            self.t_ns[-1:].copy(),
            {name: values[-1:].copy() for name, values in self.columns.items()},
            self.phase[-1:].copy(),
            {name: values[-1:].copy() for name, values in self.numbers.items()},
            {name: values[-1:] for name, values in self.texts.items()},
            self.connection,
            first_una=self.first_una,
            una_shift=self.una_shift,
        )

    def shifted(self, offset_ns: int) -> KernelLog:
        """Return this log with `offset_ns` added to its times."""
        return self if not offset_ns else replace(self, t_ns=self.t_ns + offset_ns)

    def with_segments_of(self, smss_bytes: int) -> KernelLog:
        """Return this log with windows in bytes, if it has them in segments; a segment has `smss_bytes`."""
        columns = dict(self.columns)
        if self.cwnd_pkts is not None:
            columns["cwnd_bytes"] = product(self.cwnd_pkts, np.full_like(self.cwnd_pkts, smss_bytes))
            columns["smss_bytes"] = np.ma.MaskedArray(np.full_like(self.cwnd_pkts, smss_bytes))
        if self.ssthresh_pkts is not None:
            unset = np.ma.getmaskarray(self.ssthresh_pkts)
            columns["ssthresh_bytes"] = null_where(np.where(unset, 0, self.ssthresh_pkts.data) * smss_bytes, unset)
        return replace(self, columns=columns, cwnd_pkts=None, ssthresh_pkts=None)

    def counted_from(self, iss: int | None) -> KernelLog:
        """Return this log with `snd_una` and `snd_nxt` from the SYN with sequence number `iss`, null if it is None."""
        if self.first_una is None:
            return self
        columns = dict(self.columns)
        for name in ("snd_una", "snd_nxt"):
            values = columns.pop(name, None)
            if values is not None and iss is not None:
                columns[name] = values + ((self.first_una - iss) & 0xFFFFFFFF)
        return replace(self, columns=columns, first_una=None)

    def instruments(self, flow_id: int) -> pa.Table:
        """Return the rows of `instruments` for flow `flow_id`."""
        import pyarrow as pa

        data: dict[str, Any] = {
            "run_id": np.zeros(self.rows, np.uint32),
            "flow_id": np.full(self.rows, flow_id, np.uint32),
            "leg": np.zeros(self.rows, np.uint8),
            "t_ns": self.t_ns[self.lead :],
            "source": pa.array([self.source]).take(pa.array(np.zeros(self.rows, np.int64))),
            "phase": pa.array(PHASES).take(pa.array(self.phase[self.lead :])),
        }
        for column in TABLES["instruments"].columns:
            if column.name in self.columns:
                values = self.columns[column.name][self.lead :]
                data[column.name] = pa.array(values.data, mask=np.ma.getmaskarray(values))
            elif column.name not in data:
                data[column.name] = pa.nulls(self.rows)
        return conform("instruments", pa.table(data))

    def variables(self, flow_id: int) -> pa.Table:
        """Return the rows of `variables` for flow `flow_id`: each variable at the times when it changed."""
        import pyarrow as pa

        parts = []
        for name, values in self.numbers.items():
            at = self._changes(values)
            parts.append((self.t_ns[at], name, pa.array(values[at]), pa.nulls(len(at), pa.string())))
        for name, texts in self.texts.items():
            at = self._changes(np.asarray(texts))
            parts.append(
                (self.t_ns[at], name, pa.nulls(len(at), pa.int64()), pa.array([texts[i] for i in at], pa.string()))
            )
        rows = sum(len(part[0]) for part in parts)
        names = pa.array([name for _, name, _, _ in parts], pa.string())
        table = pa.table(
            {
                "flow_id": np.full(rows, flow_id, np.uint32),
                "t_ns": np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)]),
                "source": pa.array([self.source]).take(pa.array(np.zeros(rows, np.int64))),
                "name": names.take(pa.array(np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts]))),
                "value": pa.chunked_array([part[2] for part in parts], pa.int64()),
                "text": pa.chunked_array([part[3] for part in parts], pa.string()),
            }
        )
        return conform("variables", table.sort_by([("t_ns", "ascending"), ("name", "ascending")]))

    def _changes(self, values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """Indices at which a series starts or takes another value, without the leading rows."""
        changed = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
        return changed[changed >= self.lead]


def null_where(values: Numbers, absent: npt.NDArray[np.bool_]) -> Masked:
    """Return `values` with null where `absent`."""
    return np.ma.MaskedArray(values, mask=absent)


def product(values: Numbers, others: Numbers) -> Masked:
    """Return `values` times `others`, null where that is beyond 64 bits, which only a damaged record reaches."""
    beyond = np.abs(values.astype(np.float64) * others.astype(np.float64)) >= 2.0**62
    return null_where(np.where(beyond, 0, values) * others, beyond)


def continued(
    numbers: dict[str, Numbers], texts: dict[str, list[str]], before: KernelLog | None
) -> tuple[dict[str, Numbers], dict[str, list[str]], int]:
    """Put the last row of the part before in front, if it has the same variables; return also how many rows lead."""
    if before is None or before.numbers.keys() != numbers.keys() or before.texts.keys() != texts.keys():
        return numbers, texts, 0
    numbers = {name: np.concatenate((before.numbers[name][-1:], values)) for name, values in numbers.items()}
    return numbers, {name: before.texts[name][-1:] + values for name, values in texts.items()}, 1
