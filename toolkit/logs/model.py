"""What a kernel log says about one connection, before anybody knows which flow of the workspace it is.

Holds arrays and knows no file format; `hindflight.toolkit.logs.join` adds the flow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.schema import PHASES, TABLES, conform

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True, slots=True)
class LogIssue:
    """A row of `issues` that lacks only its input."""

    record: int
    offset: int
    kind: str
    text: str


@dataclass(slots=True)
class KernelLog:
    """One connection's log: a row of `instruments` per time in `t_ns`, and every variable as it was logged.

    `columns` holds columns of `instruments` by name, all as long as `t_ns`; those left out are null. `sends` is
    false where the logging host only received data: cwnd is then not the data sender's.
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

    @property
    def start_ns(self) -> int:
        """Time of the first row."""
        return int(self.t_ns[0])

    @property
    def end_ns(self) -> int:
        """Time of the last row."""
        return int(self.t_ns[-1])

    def in_order(self) -> KernelLog:
        """Put the rows in order of time, and say so in `issues` where they were not."""
        back = np.flatnonzero(np.diff(self.t_ns) < 0)
        if len(back):
            order = np.argsort(self.t_ns, kind="stable")
            self.t_ns, self.phase = self.t_ns[order], self.phase[order]
            self.columns = {name: values[order] for name, values in self.columns.items()}
            self.numbers = {name: values[order] for name, values in self.numbers.items()}
            self.texts = {name: [values[i] for i in order] for name, values in self.texts.items()}
            text = f"time runs backwards {len(back)} times; the rows were put in order"
            self.issues.append(LogIssue(int(back[0]) + 2, 0, "log_order", text))
        return self

    def instruments(self, flow_id: int) -> pa.Table:
        """Return the rows of `instruments` for flow `flow_id`."""
        import pyarrow as pa

        rows = len(self.t_ns)
        data: dict[str, Any] = {
            "run_id": np.zeros(rows, np.uint32),
            "flow_id": np.full(rows, flow_id, np.uint32),
            "leg": np.zeros(rows, np.uint8),
            "t_ns": self.t_ns,
            "source": pa.array([self.source]).take(pa.array(np.zeros(rows, np.int64))),
            "phase": pa.array(PHASES).take(pa.array(self.phase)),
        }
        for column in TABLES["instruments"].columns:
            if column.name in self.columns:
                values = self.columns[column.name]
                data[column.name] = pa.array(values.data, mask=np.ma.getmaskarray(values))
            elif column.name not in data:
                data[column.name] = pa.nulls(rows)
        return conform("instruments", pa.table(data))

    def variables(self, flow_id: int) -> pa.Table:
        """Return the rows of `variables` for flow `flow_id`: each variable at the times when it changed."""
        import pyarrow as pa

        parts = []
        for name, values in self.numbers.items():
            at = _changes(values)
            parts.append((self.t_ns[at], name, pa.array(values[at]), pa.nulls(len(at), pa.string())))
        for name, texts in self.texts.items():
            at = _changes(np.asarray(texts))
            parts.append((self.t_ns[at], name, pa.nulls(len(at), pa.int64()), pa.array([texts[i] for i in at])))
        rows = sum(len(part[0]) for part in parts)
        names = pa.array([name for _, name, _, _ in parts], pa.string())
        table = pa.table(
            {
                "flow_id": np.full(rows, flow_id, np.uint32),
                "t_ns": np.concatenate([part[0] for part in parts]),
                "source": pa.array([self.source]).take(pa.array(np.zeros(rows, np.int64))),
                "name": names.take(pa.array(np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts]))),
                "value": pa.chunked_array([part[2] for part in parts], pa.int64()),
                "text": pa.chunked_array([part[3] for part in parts], pa.string()),
            }
        )
        return conform("variables", table.sort_by([("t_ns", "ascending"), ("name", "ascending")]))


def _changes(values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Indices at which a series starts or takes another value."""
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def null_where(values: Numbers, absent: npt.NDArray[np.bool_]) -> Masked:
    """Return `values` with null where `absent`."""
    return np.ma.MaskedArray(values, mask=absent)


def unwrapped(values: Numbers, first: int) -> Numbers:
    """Return 32-bit sequence numbers as 64-bit distances from `first`: each less than 2^31 from the one before."""
    steps = np.diff(values, prepend=first) & 0xFFFFFFFF
    return np.cumsum(np.where(steps < 0x80000000, steps, steps - 0x100000000))
