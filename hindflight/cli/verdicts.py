"""`hindflight verdicts SOURCE`: what happened to one flow, each verdict with packets, evidence and probability."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import paragraph, print_fitting
from hindflight.cli.output import SHOWN_ROWS, AsJson, print_json, say
from hindflight.toolkit.times import seconds_text

if TYPE_CHECKING:
    from hindflight.flow_verdicts import Verdict, Verdicts


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verdicts")(verdicts)


def verdicts(
    source: Annotated[Path, typer.Argument(help="Capture or workspace.")],
    flow: Annotated[int | None, typer.Option("--flow", help="Flow [default: the one with most data].")] = None,
    about: Annotated[
        str,
        typer.Option(
            "--about", help="capture, vantage, proxy, shape, interruption, retransmission, need, loss, reordering."
        ),
    ] = "",
    wide: Annotated[bool, typer.Option("--wide", help="List all verdicts, however many.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what happened to a flow: retransmissions, losses, outages, shapes, each with its evidence.

    A probability is the share of such verdicts that were right on recordings whose truth is known.
    """
    from dataclasses import asdict

    from hindflight.flow_verdicts import ABOUT, verdicts_on
    from hindflight.toolkit.errors import HindflightError

    if about and about not in ABOUT:
        raise HindflightError(f"--about {about}: no such verdicts", f"allowed: {', '.join(ABOUT)}")
    found = verdicts_on(source, flow)
    chosen = [one for one in found.verdicts if about in ("", one.about)]
    if as_json:
        print_json({**asdict(found), "verdicts": [asdict(one) for one in chosen]})
    else:
        _print(found, chosen, wide)


def _print(found: Verdicts, chosen: list[Verdict], wide: bool) -> None:
    counts = Counter((one.about, one.verdict) for one in chosen)
    first = {(one.about, one.verdict): one for one in reversed(chosen)}
    rows = [
        {"about": about, "verdict": verdict, "number": number, "probability": _share(first[about, verdict])}
        for (about, verdict), number in counts.items()
    ]
    if rows:
        print_fitting(list(rows[0]), rows, title=f"Verdicts on flow {found.flow}")
    listed = chosen if wide else chosen[:SHOWN_ROWS]
    for one in listed:
        sure = "" if one.probability is None else f" ({one.probability:.3f})"
        at = seconds_text(one.t_ns, found.start_ns)
        paragraph(f"{_packets(one)}, {at} s, {one.about}: {one.verdict}{sure}. {one.evidence}", "    ")
    if len(chosen) > len(listed):
        say(f"the first {len(listed)} of {len(chosen)} verdicts; --wide gives all, --about those of one kind")
    if not chosen:
        say(f"no such verdict on flow {found.flow}")
    if found.without_channel is not None:
        paragraph(f"No verdicts about losses and outages: {found.without_channel}")
    paragraph("Packets as Wireshark numbers them. No probability: a definition, or never judged.")


def _packets(one: Verdict) -> str:
    if one.first_packet is None and one.last_packet is None:
        return "no packet"
    if one.first_packet == one.last_packet:
        return f"packet {one.first_packet}"
    return f"packets {one.first_packet or 'not captured'} to {one.last_packet or 'not captured'}"


def _share(one: Verdict) -> str:
    return "" if one.probability is None else f"{one.probability:.3f}"
