"""The classes of a column and a table, and the version of the schema.

Declares no table. Read toolkit/schema/__init__.py first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA_VERSION = 6
"""Raised whenever a column changes name, type, unit, meaning or values; readers refuse a newer one.

2: `runs.role` under_test, `findings.verdict` fail, `findings.section` what_happened and sensitivity.
3: `segments` has segments_n, ip_checksum and tcp_checksum; numbers of segments of `flows` count them, and it has
corrupted_segments and not_captured_bytes. All are null in workspaces written before.
4: `segments` has clock_fix_ns, null in workspaces written before.
5: `segments.flight_bytes` and `flight_max_bytes` of `flows` are null where the capture shows none of the data that was
acknowledged; they were 0. Of two directions with equal payload, `flows.data_direction` is the one of which more was
acknowledged. `findings.section` may be proxy_faults and `issues.kind` pseudowire; section `setup` has metrics leg_N_begins_at.
6: `runs` has one_way_delay_p50_ns and one_way_delay_p95_ns, null in workspaces written before. In `events`, `undecided` may
have neither record nor copy: it concerns all transmissions of its octets.
"""

Type = Literal["bool", "u8", "u16", "u32", "u64", "i64", "f64", "text", "enum", "list_i64", "bytes"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `unit` is empty for a column without one; `values` lists all values of an `enum`.

    `former` pairs values of earlier schema versions with those by which a reader replaces them.
    """

    name: str
    type: Type
    unit: str
    meaning: str
    nullable: bool = False
    values: tuple[str, ...] = ()
    former: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return the column called `name`; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
