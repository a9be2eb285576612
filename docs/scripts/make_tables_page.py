"""Writes docs/tables.md: how the tables are joined, and every column of the schema.

`python -m docs.scripts.make_tables_page` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES, Column, Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"

INTRO = f"""# Tables

Everything that hindflight reads or computes is stored in these tables, and all later steps read only them. They are
declared in `toolkit/schema`; `python -m docs.scripts.make_tables_page` writes this page from the declarations.
Schema version: {SCHEMA_VERSION}. A reader refuses tables of a newer version.

## How they are joined

* `run_id` and `flow_id` together are the key of `flows`. Rows of captures and logs have `run_id` 0. Each replay
  has a separate number, and one row in `runs`.
* `segments`, `instruments` and `events` belong to a flow by these two. `leg` distinguishes the connections
  into which a split proxy divides a flow.
* `record` in `events` and `channel` is the `record` of a row in `segments`, where the evidence for an event
  can be looked up. In Wireshark it is the frame number.
* `instruments` has the state of the data sender. It can have several sources: `inferred` from the capture, `tcp_info`
  or `web100` from the sender's kernel, `replay` from the engine.
* `variables` has the other variables of a kernel log, with names and units, at the times at which they changed.
* `pairs` joins the flows of two captures of one connection, packet by packet: `flow_id` and `record` in the first,
  `other_flow_id` and `other_record` in the other. `clocks` says how their clocks differ.
* `input_id` in `flows` and `issues` is that of an input in the workspace's `manifest.json`.
* Times are whole nanoseconds. Sequence numbers are unwrapped to 64 bits and relative to the first of their direction.

## In a workspace

A workspace is a folder: `manifest.json`, which lists inputs (with SHA-256), commands, versions and parts, and Parquet
files `TABLE-NNNNNN.parquet`. A part never changes, and files that the manifest does not list are ignored. The metadata
of the Parquet files have the unit and the meaning of each column. Values of earlier schema versions are replaced when a
table is read.

In `hindflight query` every table is a view with its name. Enumerations are text, `sack` is a list.
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
