"""`hindflight flows SOURCE`: the connections of a capture or workspace, most payload first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hindflight.cli.filters import Flow, Host, Port, Run, Sources, Where, names
from hindflight.cli.layout import Wide, print_fitting
from hindflight.cli.output import AsCsv, AsJson, Row, print_csv, print_json, say
from hindflight.cli.times import From, To, Utc
from hindflight.selection import Selection
from hindflight.toolkit.text import endpoint
from hindflight.toolkit.times import seconds_text, utc_text

Profile = Annotated[
    str, typer.Option("--profile", help="Count as another program: tcptrace, with its fields. SOURCE is a capture.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("flows")(flows)


def flows(
    sources: Sources,
    profile: Profile = "",
    flow: Flow = None,
    host: Host = "",
    port: Port = None,
    where: Where = "",
    run: Run = 0,
    from_: From = "",
    to: To = "",
    utc: Utc = False,
    wide: Wide = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List the TCP connections. Payload, retransmissions and RTT are those of the side that sends more."""
    form = "json" if as_json else "csv" if as_csv else ""
    chosen = (host, where, run, from_, to, utc)
    if profile:
        from hindflight.cli.profile import print_flows, refuse_conditions

        conditions = {"--flow": flow, "--host": host, "--port": port, "--where": where, "--run": run, "--utc": utc}
        refuse_conditions("connection", conditions)
        print_flows(sources, profile, (from_, to), wide, form)
    elif any(source.is_dir() for source in sources) or flow is not None or port is not None or any(chosen):
        _print_chosen(sources, Selection(flow, host, port, from_, to, where, run), utc, wide, form)
    else:
        from hindflight.cli.profile import print_all_flows
        from hindflight.toolkit.capture import FlowStream

        if (
            print_all_flows(
                FlowStream(sources, json=form != "csv"),
                lambda row, start_ns: _shown(row, start_ns, False),
                wide,
                form,
            )
            == 0
        ):
            say(_nothing(sources, 0, 0))


def _print_chosen(sources: list[Path], selection: Selection, utc: bool, wide: bool, form: str) -> None:
    from hindflight.selection import selected

    with selected(sources, "flows", selection) as found:
        data, start_ns = found.rows.table(), found.start_ns
    rows = data.to_pylist()
    rows.sort(key=lambda row: (-row[f"{row['data_direction']}_payload_bytes"], row["flow_id"]))
    if not rows:
        say(_nothing(sources, selection.run, found.flows))
    if form == "json":
        print_json({"start_ns": start_ns, "flows": [_with_utc(row) if utc else row for row in rows]})
    elif form == "csv":
        print_csv(data.column_names, rows)
    elif rows:
        shown = [_shown(row, start_ns, utc) for row in rows]
        print_fitting(list(shown[0]), shown, wide)


def _nothing(sources: list[Path], run: int, flows: int) -> str:
    where = f"{names(sources)} in run {run}" if run else names(sources)
    return f"none of the {flows} TCP connections in {where} was chosen" if flows else f"no TCP connections in {where}"


def _with_utc(row: Row) -> Row:
    return row | {"start_utc": utc_text(row["start_ns"]), "end_utc": utc_text(row["end_ns"])}


def _shown(row: Row, start_ns: int, utc: bool) -> dict[str, Any]:
    """The columns of the table, the most important first, for the direction that carries the data."""
    way = row["data_direction"]
    a, b = endpoint(row["a_addr"], row["a_port"]), endpoint(row["b_addr"], row["b_port"])
    sender, receiver = (a, b) if way == "a2b" else (b, a)
    return {
        "flow": row["flow_id"],
        "sender": sender,
        "receiver": receiver,
        **({"start [UTC]": utc_text(row["start_ns"])} if utc else {}),
        "seconds": f"{(row['end_ns'] - row['start_ns']) / 1e9:.3f}",
        "payload bytes": row[f"{way}_payload_bytes"],
        "retrans": row[f"{way}_retransmitted_segments"],
        "RTOs": row[f"{way}_rtos"],
        "RTT min [ms]": _ms(row[f"{way}_rtt_min_ns"]),
        **({} if utc else {"start [s]": seconds_text(row["start_ns"], start_ns)}),
        "data segments": row[f"{way}_data_segments"],
        "RTT mean [ms]": _ms(row[f"{way}_rtt_mean_ns"]),
        "captured at": row["vantage"],
    }


def _ms(ns: int | None) -> str | None:
    return None if ns is None else f"{ns / 1e6:.3f}"
