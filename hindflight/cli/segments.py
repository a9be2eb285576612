"""`hindflight segments SOURCE`: TCP segments of a capture or workspace, in the order of the capture."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hindflight.cli.filters import Flow, Host, Port, Run, Sources, Where, names, print_selected
from hindflight.cli.layout import Wide
from hindflight.cli.output import AsCsv, AsJson, Row, say
from hindflight.cli.times import From, To, Utc
from hindflight.toolkit.times import seconds_text, utc_text

_FLAGS = ((2, "S"), (1, "F"), (4, "R"), (8, "P"), (32, "U"), (64, "E"), (128, "W"), (256, "e"), (16, "."))
"""Letters of the flags, those of tcpdump."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("segments")(segments)


def segments(
    sources: Sources,
    profile: Annotated[
        str, typer.Option("--profile", help="Analyse as another program: wireshark, with its fields; all of a capture.")
    ] = "",
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
    """List TCP segments. `packet` is the number that Wireshark shows; sequence numbers are relative.

    Flags are those of tcpdump: S SYN, F FIN, R RST, P PSH, . ACK, U URG, E ECE, W CWR, e AE. Seconds count from
    the first TCP segment. --csv and --json give every column of the table.
    """
    from hindflight.selection import Selection, selected

    if profile:
        from hindflight.cli.profile import print_segments, refuse_conditions

        conditions = {"--flow": flow, "--host": host, "--port": port, "--where": where, "--run": run}
        refuse_conditions("segment", {**conditions, "--from": from_, "--to": to, "--utc": utc})
        print_segments(sources, profile, wide, "json" if as_json else "csv" if as_csv else "")
        return
    with selected(sources, "segments", Selection(flow, host, port, from_, to, where, run)) as found:
        if not print_selected("segments", found, lambda row: _shown(row, found.start_ns, utc), (as_json, as_csv), wide):
            say(f"no such segment in {names(sources)}")


def _shown(row: Row, start_ns: int, utc: bool) -> dict[str, Any]:
    """The columns of the table, the most important first."""
    rtt_ns, sack = row["rtt_ns"], row["sack"]
    return {
        "packet": row["record"],
        **({"time [UTC]": utc_text(row["t_ns"])} if utc else {"time [s]": seconds_text(row["t_ns"], start_ns)}),
        "flow": row["flow_id"],
        "way": row["direction"],
        "flags": flag_letters(row["flags"]),
        "seq": row["seq"],
        "ack": row["ack"],
        "payload": row["payload_bytes"],
        "mark": _mark(row),
        "window": row["wnd_bytes"],
        "RTT [ms]": None if rtt_ns is None else f"{rtt_ns / 1e6:.3f}",
        "flight": row["flight_bytes"],
        "SACK": " ".join(f"{left}-{right}" for left, right in zip(sack[::2], sack[1::2], strict=True)) or None,
        "TSval": row["ts_val"],
        "TSecr": row["ts_ecr"],
        "IP ID": row["ip_id"],
        "TTL": row["ttl"],
        "leg": row["leg"],
    }


def _mark(row: Row) -> str | None:
    if row["retransmission"]:
        return "retrans"
    return "dup ACK" if row["dup_ack"] else None


def flag_letters(flags: int) -> str:
    """Return TCP flags as letters."""
    return "".join(letter for bit, letter in _FLAGS if flags & bit)
