"""`hindflight series SOURCE --flow ID`: cwnd, ssthresh, RTT and phase of one sender over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.layout import Wide, print_fitting
from hindflight.cli.output import AsCsv, AsJson, Row, print_csv, print_json
from hindflight.cli.times import From, To, Utc
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.schema import SOURCES
from hindflight.toolkit.times import seconds_text, span, utc_text

if TYPE_CHECKING:
    from hindflight.toolkit.source import Tables

_SHOWN = ("phase", "cwnd_bytes", "flight_bytes", "ssthresh_bytes")
_SHOWN_LAST = ("snd_wnd_bytes",)
_SHOWN_MS = {"srtt ms": "srtt_ns", "rto ms": "rto_ns"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("series")(series)


def series(
    source: Annotated[Path, typer.Argument(help="Capture or workspace.")],
    flow: Annotated[int, typer.Option("--flow", help="Flow, as `hindflight flows` numbers them.")],
    origin: Annotated[
        str, typer.Option("--source", help=f"Where the values come from: {', '.join(SOURCES)}; all without it.")
    ] = "",
    run: Annotated[int, typer.Option("--run", help="Replay run; 0 is the capture and its logs.")] = 0,
    from_: From = "",
    to: To = "",
    utc: Utc = False,
    wide: Wide = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Print cwnd, RTT and phase of a flow over time. Seconds count from the first TCP segment of the run."""
    from hindflight.toolkit.source import open_source

    if origin and origin not in SOURCES:
        raise HindflightError(f"there is no source {origin}", f"sources: {', '.join(SOURCES)}")
    with open_source(source, ("flows", "instruments")) as tables:
        start_ns = _start_ns(tables, run, flow)
        wanted = span(from_, to, start_ns)
        rows = [
            row
            for row in _rows(tables, run, flow)
            if origin in ("", row["source"]) and wanted.overlaps(row["t_ns"], row["t_ns"])
        ]
    if as_json:
        print_json({"flow_id": flow, "run_id": run, "start_ns": start_ns, "series": [_timed(r, utc) for r in rows]})
    elif as_csv:
        names = ["time_utc" if utc else "t_s", "source", *_values(rows)]
        print_csv(names, [_shown(row, start_ns, utc, names) for row in rows])
    else:
        several = len({row["source"] for row in rows}) > 1
        names = ["time_utc" if utc else "t_s", *(["source"] if several or not origin else []), *_SHOWN, *_SHOWN_LAST]
        shown = [_shown(row, start_ns, utc, names) | _times_ms(row) for row in rows]
        order = [name for name in names if name not in _SHOWN_LAST]
        print_fitting([*order, *_SHOWN_MS, *_SHOWN_LAST], shown, wide)


def _start_ns(tables: Tables, run: int, flow: int) -> int:
    """The time from which seconds count. HindflightError: there is no such flow."""
    import pyarrow.compute as pc

    from hindflight.toolkit.captured_flow import run_start_ns

    this = (pc.field("run_id") == run) & (pc.field("flow_id") == flow)
    if not tables.workspace.table("flows", ["flow_id"], this).num_rows:
        of_run = f" in run {run}" if run else ""
        raise HindflightError(f"there is no flow {flow}{of_run}", "`hindflight flows SOURCE` lists them")
    return run_start_ns(tables.workspace, run)


def _rows(tables: Tables, run: int, flow: int) -> list[Row]:
    import pyarrow.compute as pc

    this = (pc.field("run_id") == run) & (pc.field("flow_id") == flow)
    data = tables.workspace.table("instruments", None, this).to_pylist()
    return sorted(data, key=lambda row: (row["t_ns"], row["leg"], SOURCES.index(row["source"])))


def _values(rows: list[Row]) -> list[str]:
    keys = ("run_id", "flow_id", "t_ns", "source")
    return [name for name in (rows[0] if rows else {}) if name not in keys]


def _timed(row: Row, utc: bool) -> Row:
    return row | {"time_utc": utc_text(row["t_ns"])} if utc else row


def _times_ms(row: Row) -> dict[str, str | None]:
    return {name: None if row[ns] is None else f"{row[ns] / 1e6:.1f}" for name, ns in _SHOWN_MS.items()}


def _shown(row: Row, start_ns: int, utc: bool, names: list[str]) -> dict[str, Any]:
    time = utc_text(row["t_ns"]) if utc else seconds_text(row["t_ns"], start_ns)
    return {name: time if name in ("t_s", "time_utc") else row[name] for name in names}
