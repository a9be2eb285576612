"""`hindflight events SOURCE`: losses, retransmissions, timeouts and more, in order of time."""

from __future__ import annotations

from typing import Any

import typer

from hindflight.cli.filters import Flow, Host, Port, Run, Sources, Where, names, print_selected
from hindflight.cli.layout import Wide
from hindflight.cli.output import AsCsv, AsJson, Row, say
from hindflight.cli.times import From, To, Utc
from hindflight.toolkit.times import seconds_text, utc_text


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("events")(events)


def events(
    sources: Sources,
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
    """List what happened to the flows. Losses, retransmissions with their mechanism, timeouts, recoveries.

    `packet` is the number that Wireshark shows. Seconds count from the first TCP segment. --csv and --json give
    every column of the table.
    """
    from hindflight.selection import Selection, selected

    with selected(sources, "events", Selection(flow, host, port, from_, to, where, run)) as found:
        if not print_selected("events", found, lambda row: _shown(row, found.start_ns, utc), (as_json, as_csv), wide):
            say(f"no such event in {names(sources)}")


def _shown(row: Row, start_ns: int, utc: bool) -> dict[str, Any]:
    """The columns of the table, the most important first."""
    end_ns, spurious = row["end_ns"], row["spurious"]
    return {
        "packet": row["record"],
        **({"time [UTC]": utc_text(row["t_ns"])} if utc else {"time [s]": seconds_text(row["t_ns"], start_ns)}),
        "flow": row["flow_id"],
        "way": row["direction"],
        "event": row["kind"],
        "cause": row["cause"],
        "mechanism": row["mechanism"],
        "seq": row["seq_start"],
        "end of seq": row["seq_end"],
        "copy": row["copy"],
        "seconds": None if end_ns is None else f"{(end_ns - row['t_ns']) / 1e9:.3f}",
        "spurious": None if spurious is None else "yes" if spurious else "no",
        "leg": row["leg"],
        "evidence": row["evidence"],
    }
