"""`hindflight limits SOURCE`: what limited the sender of one flow over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import paragraph, print_fitting
from hindflight.cli.output import AsJson, print_json
from hindflight.toolkit.times import seconds_text

if TYPE_CHECKING:
    from hindflight.replay.scenario.limits import Limits
    from hindflight.toolkit.captured_flow import Flow

LONGEST = 10
"""Times that are listed, the longest ones."""

MEANING = {
    "network": "cwnd: the sender waited for ACKs, recovered or timed out",
    "receiver": "the next segment did not fit into the receiver's window",
    "application": "everything that was written had been sent",
    "pacing": "a timer of the sender, not an ACK, released the next segment",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("limits")(limits)


def limits(
    source: Annotated[Path, typer.Argument(help="Capture taken at the data sender, or workspace.")],
    flow: Annotated[int | None, typer.Option("--flow", help="Flow [default: the one with most data].")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what limited a sender: network, receiver, application or pacing, as shares of its time."""
    from hindflight.captured_link import sender_limits

    chosen, found, start_ns = sender_limits(source, flow)
    if as_json:
        from dataclasses import asdict

        spans = [asdict(span) for span in found.spans]
        print_json({"flow": chosen.number, "shares": found.shares(), "spans": spans})
    else:
        _print(chosen, found, start_ns)


def _print(chosen: Flow, found: Limits, start_ns: int) -> None:
    shares = [
        {"limit": name, "share %": f"{100 * share:.1f}", "meaning": MEANING[name]}
        for name, share in found.shares().items()
    ]
    print_fitting(list(shares[0]), shares, title=f"What limited the sender of flow {chosen.number}")
    longest = sorted(found.spans, key=lambda span: span.start_ns - span.end_ns)[:LONGEST]
    rows = [
        {
            "limit": span.limit,
            "from [s]": seconds_text(span.start_ns, start_ns),
            "to [s]": seconds_text(span.end_ns, start_ns),
            "until packet": span.record,
        }
        for span in sorted(longest, key=lambda span: span.start_ns)
    ]
    if rows:
        print_fitting(list(rows[0]), rows, title="The longest times")
    paragraph("Seconds count from the first TCP segment; packets as Wireshark numbers them.")
