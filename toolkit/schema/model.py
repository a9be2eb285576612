"""What a column and a table are, and the version of them all.

Knows no table. Read toolkit/schema/__init__.py first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA_VERSION = 1
"""Raised whenever a column changes name, type, unit or meaning; readers refuse a newer one."""

Type = Literal["bool", "u8", "u16", "u32", "u64", "i64", "f64", "text", "enum", "list_i64", "bytes"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `unit` is empty for what has none; `values` closes an `enum`."""

    name: str
    type: Type
    unit: str
    meaning: str
    nullable: bool = False
    values: tuple[str, ...] = ()


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
