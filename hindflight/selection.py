"""Rows of one table of a capture or workspace, chosen by flow, address, port, time and an expression.

`hindflight flows`, `segments` and `events` and the functions of the same names use it. The expression is SQL as in
`hindflight query`: DuckDB parses and evaluates it, without access to files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from hindflight.toolkit.captured_flow import run_start_ns
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.times import Span, span

if TYPE_CHECKING:
    import polars as pl

    from hindflight.toolkit.query import Rows
    from hindflight.toolkit.source import Tables
    from hindflight.toolkit.workspace import Workspace

MAX_PORT = 65_535

Source = Path | str | Sequence[Path | str]
"""A capture, a workspace, or the files of one capture."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows: those that meet every condition that is given.

    `flow` is a flow_id. `host` is an address or a network (10.0.0.0/8) of either end, `port` a port of either end.
    `from_time` and `to_time` are seconds since the first TCP segment of the run, or UTC in ISO 8601; `to_time` itself
    is not included, and a row with a duration is chosen if any part of it is between them. `where` is a boolean SQL
    expression over the columns of the table. `run` is a replay run, 0 for what was captured.
    """

    flow: int | None = None
    host: str = ""
    port: int | None = None
    from_time: str = ""
    to_time: str = ""
    where: str = ""
    run: int = 0


class Conditions(TypedDict, total=False):
    """The conditions of a `Selection`, for functions that take them by name."""

    flow: int | None
    host: str
    port: int | None
    from_time: str
    to_time: str
    where: str
    run: int


@dataclass(frozen=True, slots=True)
class Selected:
    """The chosen rows of one table, read as they are asked for.

    Times count from `start_ns`; `flows` is how many connections the run has, chosen or not.
    """

    rows: Rows
    start_ns: int
    flows: int


@contextmanager
def selected(source: Source, table: str, selection: Selection) -> Iterator[Selected]:
    """Open a capture or workspace and give the rows of `table` that `selection` names, for the length of the block.

    Several paths are the files of one capture, merged in the order of time.

    HindflightError: there is no such flow, host or time; QueryError: the expression is not one.
    """
    from hindflight.toolkit.source import open_source

    needed = None if "select" in selection.where.lower() else ("flows", table)  # A subquery may use any table.
    with open_source(source, needed) as tables:
        yield select(tables, table, selection)


def select(tables: Tables, table: str, selection: Selection) -> Selected:
    """Return the rows of `table` that `selection` names; errors as those of `selected`."""
    from hindflight.toolkit.query import choose

    workspace = tables.workspace
    start_ns, flows = _run(workspace, selection)
    limits = span(selection.from_time, selection.to_time, start_ns)
    conditions = [f"run_id = {selection.run}", *_of_time(table, limits), *_of_flow(workspace, selection)]
    return Selected(choose(workspace, table, conditions, selection.where), start_ns, flows)


def frame_of(source: Source, table: str, selection: Selection) -> pl.DataFrame:
    """Return the rows of `table` that `selection` names; errors as those of `selected`."""
    import polars as pl

    with selected(source, table, selection) as found:
        return pl.DataFrame(found.rows.table())


def _run(workspace: Workspace, selection: Selection) -> tuple[int, int]:
    """Time of the first TCP segment of the run, and how many flows it has.

    HindflightError if the flow that is asked for does not exist.
    """
    import pyarrow.compute as pc

    flows = workspace.table("flows", ["flow_id"], pc.field("run_id") == selection.run)["flow_id"].to_pylist()
    if selection.flow is not None and selection.flow not in flows:
        of_run = f" in run {selection.run}" if selection.run else ""
        raise HindflightError(f"there is no flow {selection.flow}{of_run}", "`hindflight flows SOURCE` lists them")
    return run_start_ns(workspace, selection.run), len(flows)


def _of_time(table: str, limits: Span) -> list[str]:
    start, end = {
        "flows": ("start_ns", "end_ns"),
        "events": ("t_ns", "coalesce(end_ns, t_ns)"),
    }.get(table, ("t_ns", "t_ns"))
    after = [] if limits.from_ns is None else [f"{end} >= {limits.from_ns}"]
    return after if limits.to_ns is None else [*after, f"{start} < {limits.to_ns}"]


def _of_flow(workspace: Workspace, selection: Selection) -> list[str]:
    """Conditions for the flow: its number, and its ends."""
    conditions = [] if selection.flow is None else [f"flow_id = {selection.flow}"]
    ends = [f"run_id = {selection.run}"]
    if selection.port is not None:
        if not 0 <= selection.port <= MAX_PORT:
            raise HindflightError(f"{selection.port} is not a port", f"a port is 0 to {MAX_PORT}")
        ends.append(f"{selection.port} IN (a_port, b_port)")
    if selection.host:
        addresses = ", ".join(f"'{address}'" for address in _addresses(workspace, selection.host))
        ends.append(f"(a_addr IN ({addresses}) OR b_addr IN ({addresses}))" if addresses else "false")
    if len(ends) > 1:
        # Only numbers, and addresses that ipaddress has parsed.
        conditions.append(f"flow_id IN (SELECT flow_id FROM flows WHERE {' AND '.join(ends)})")  # noqa: S608
    return conditions


def _addresses(workspace: Workspace, host: str) -> list[str]:
    """The addresses in the workspace that are `host`, or in that network."""
    try:
        network = ip_network(host.strip("[]"), strict=False)
    except ValueError:
        raise HindflightError(
            f"{host!r} is not an address", "give an IPv4 or IPv6 address, or a network such as 10.0.0.0/8"
        ) from None
    flows = workspace.table("flows", ["a_addr", "b_addr"])
    known = {*flows["a_addr"].unique().to_pylist(), *flows["b_addr"].unique().to_pylist()}
    return sorted(text for text in known if ip_address(text) in network)
