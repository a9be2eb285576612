"""Writes docs/tables.md: how the tables hang together, and every column as the schema declares it.

`python -m docs.scripts.make_tables_page` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES, Column, Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"

INTRO = f"""# Tables

Everything that hindflight reads or computes becomes rows of these tables, and everything downstream reads only them.
They are declared once, in `toolkit/schema`; `python -m docs.scripts.make_tables_page` writes this page from there.
Schema version: {SCHEMA_VERSION}. A reader refuses tables of a newer version.

## How they hang together

* `run_id` and `flow_id` together are the key of `flows`. What a capture or a log recorded has `run_id` 0; each replay
  has a number of its own, and one row in `runs`.
* `segments`, `instruments` and `events` belong to a flow by these two. `leg` tells the connections apart that a split
  proxy makes of one.
* `record` in `events` and `channel` is the `record` of a row in `segments`: the evidence can be looked up, also in
  Wireshark, where it is the frame number.
* `instruments` always tells of the end that sends the flow's data. Several sources may stand side by side: `inferred`
  from the capture, `tcp_info` or `web100` from the kernel that sent, `replay` from the engine.
* `variables` holds what a kernel log says besides: every variable under its own name, in its own unit, at the times
  when it changed.
* `input_id` in `flows` and `issues` is that of an input in the workspace's `manifest.json`.
* Times are whole nanoseconds. Sequence numbers are unwrapped to 64 bits and relative to the first of their direction.

## In a workspace

A workspace is a folder: `manifest.json`, which lists inputs (with SHA-256), commands, versions and parts, and Parquet
files `TABLE-NNNNNN.parquet`. A part never changes, and a file that the manifest does not list does not count. Unit and
meaning of each column stand in the metadata of the Parquet files.

In `hindflight query` every table is a view of its name. Enumerations are text there, `sack` is a list.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRO, *(_section(table) for table in TABLES.values())])


def _section(table: Table) -> str:
    head = [
        f"## `{table.name}`",
        "",
        f"One row: {table.row}.",
        "",
        "| column | type | unit | meaning |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *(_line(column) for column in table.columns), ""])


def _line(column: Column) -> str:
    values = f" One of: {', '.join(f'`{value}`' for value in column.values)}." if column.values else ""
    null = ", may be null" if column.nullable else ""
    return f"| `{column.name}` | {column.type}{null} | {column.unit} | {column.meaning}.{values} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
